"""Canaries say that a runner was changed when one ends as it must not."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.scoring.runners.edits.canaries import CONSONANTS, VOWELS, Canary, judged, random_word
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome

CANARIES = [
    Canary(path="a/test_x.py", text="", pairs=(("wins", "loses"),)),
    Canary(path="test_y.py", text="", pairs=(("rises", "falls"),)),
]
MUST_FAIL = "a test that must fail passed"
NO_PAIR = "no test that must pass passed beside one that must fail"


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"a/test_x.py::wins": "passed", "a/test_x.py::loses": "failed"}, ""),
        ({"a/test_x.py::wins": "passed", "a/test_x.py::loses": "failed", "test_y.py::falls": "failed"}, ""),
        (
            {"a/test_x.py::wins": "passed", "a/test_x.py::loses": "failed", "test_y.py::falls": "passed"},
            MUST_FAIL,
        ),
        ({"a/test_x.py::wins": "passed"}, NO_PAIR),
        ({"a/test_x.py::wins": "passed", "a/test_x.py::loses": "skipped"}, NO_PAIR),
        (
            {"a/test_x.py::wins": "failed", "a/test_x.py::loses": "failed", "test_own.py::it": "passed"},
            NO_PAIR,
        ),
        ({"b/test_x.py::wins": "passed", "b/test_x.py::loses": "failed"}, NO_PAIR),
        ({"a/test_x.py::wins": "passed", "test_y.py::falls": "failed"}, NO_PAIR),
        ({"a/test_x.py::wins": "failed", "a/test_x.py::loses": "failed", "test_own.py::it": "failed"}, ""),
        ({}, ""),
    ],
)
def test_one_pair_ends_as_it_must_and_none_that_must_fail_passes(outcomes: dict[str, str], said: str) -> None:
    assert judged(CANARIES, {id_: CaseOutcome(outcome) for id_, outcome in outcomes.items()}) == said


def test_a_word_is_six_syllables_and_another_each_time() -> None:
    words = {random_word() for _ in range(20)}
    assert len(words) == 20
    for word in words:
        assert len(word) == 12
        assert set(word[::2]) <= set(CONSONANTS)
        assert set(word[1::2]) <= set(VOWELS)
