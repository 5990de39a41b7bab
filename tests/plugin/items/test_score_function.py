"""What a test function may declare as its score."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_tfgrpo.plugin.items.score_function import MOST_NAMES, Declared, begin, end, score


@pytest.fixture
def declared() -> Iterator[Declared]:
    yield begin()
    end()


@pytest.mark.parametrize("value", [0, 1, 0.5, True])
def test_a_score_is_from_0_to_1(declared: Declared, value: float) -> None:
    score(value)
    assert declared.score == float(value)


@pytest.mark.parametrize("value", [-0.01, 1.01, None, [1]])
def test_anything_else_is_none(declared: Declared, value: float) -> None:
    with pytest.raises(ValueError, match="a score must be a number between 0 and 1"):
        score(value)
    assert declared.score is None


def test_a_rollout_has_scores_of_50_names_of_which_the_last_call_counts(declared: Declared) -> None:
    for n in range(MOST_NAMES):
        score(f"n{n}", 0.25)
    score("n0", 0.75)
    assert declared.named["n0"].value == 0.75
    with pytest.raises(ValueError, match="at most 50 named scores; 'more' is one too many"):
        score("more", 0.5)
    assert len(declared.named) == MOST_NAMES


def test_of_why_a_named_score_is_what_it_is_500_characters_are_kept(declared: Declared) -> None:
    score("tone", 0.5, "q" * 600)
    score("length", 0.5, "y" * 500)
    assert declared.named["tone"].why.count("q") == 500
    assert declared.named["length"].why == "y" * 500


def test_outside_of_a_test_function_there_is_no_score() -> None:
    with pytest.raises(RuntimeError, match="outside a test function"):
        score(0.5)
