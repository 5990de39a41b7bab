"""Words and values as messages name them."""

from typing import Any

import pytest

from pytest_tfgrpo.core.texts.named_values import OTHERS, nearest, phase_label, same_thing, short


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 120, repr("x" * 120)),
        ("x" * 121, "'" + "x" * 119 + "..."),
        (b"x" * 119, repr(b"x" * 119)),
        ("x" * 10_000_000, "'" + "x" * 119 + "..."),
        (list(range(40)), repr(list(range(40)))[:120] + "..."),
        (None, "None"),
    ],
)
def test_a_value_is_shown_up_to_120_characters(value: object, shown: str) -> None:
    assert short(value) == shown


def test_a_value_nested_too_deeply_is_named_by_its_type() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert short(value) == "a list nested too deeply"
    assert short("abcdef", 4) == "'abc..."


@pytest.mark.parametrize(
    ("ours", "theirs"), [(ours, word) for ours, words in OTHERS.items() for word in words]
)
def test_every_word_of_another_tool_leads_to_the_one_here(ours: str, theirs: str) -> None:
    assert same_thing(theirs, [ours]) == ours
    assert nearest(theirs.upper(), [ours]) == f"; did you mean {ours!r}?"


def test_the_same_thing_is_nearer_than_a_similar_word_and_of_strangers_there_is_no_hint() -> None:
    assert nearest("tool", ["tools", "tool_calls"]) == "; did you mean 'tool_calls'?"
    assert nearest("promt", ["prompt", "input"]) == "; did you mean 'prompt'?"
    assert nearest("is-json", ["json-schema"]) == "; did you mean 'json-schema'?"
    assert nearest("zzz", ["prompt"]) == ""


@pytest.mark.parametrize(
    ("epoch", "mode", "dev", "label"),
    [
        (0, "baseline", 0, "baseline"),
        (0, "placebo", 0, "placebo"),
        (-1, "early", 0, "early"),
        (1, "train", 0, "epoch1"),
        (3, "eval", 0, "epoch3-eval"),
        (1, "evidence", 0, "epoch1-evidence"),
        (1, "dev", 2, "epoch1-dev2"),
    ],
)
def test_phases_have_names(epoch: int, mode: str, dev: int, label: str) -> None:
    assert phase_label(epoch, mode, dev) == label
