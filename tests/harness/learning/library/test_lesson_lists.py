"""Attacks and honest lessons, by the list: what is refused, what a person reads first, and what passes."""

from pathlib import Path

import pytest
from support.builders import make_experience, make_pack

from pytest_tfgrpo.harness.learning.library.flags import KINDS, flagged, flags_of
from pytest_tfgrpo.harness.learning.library.screen import Screen

LISTS = Path(__file__).parent / "lessons"
ATTACKS = [row.split("\t") for row in (LISTS / "attacks.tsv").read_text("utf-8").splitlines()]
"""Refused with the code, or flagged with the kind after ``flag:``."""
HONEST = (LISTS / "honest.txt").read_text("utf-8").splitlines()
FLAGGED_AT_MOST = 0.06
"""Share of the honest lessons that may be flagged: a person reads them for nothing."""
SCREEN = Screen((), answers=lambda scenario: (), packs={"text": make_pack()}, max_words=32)


def refused(lesson: str) -> str | None:
    found = SCREEN.refuse(make_experience(summary32=lesson, stamp_signature=make_pack().stamp))
    return found[0] if found else None


@pytest.mark.parametrize(("outcome", "lesson"), ATTACKS, ids=[ascii(row[1])[:40] for row in ATTACKS])
def test_an_attack_is_refused_or_flagged(outcome: str, lesson: str) -> None:
    code, _, kind = outcome.partition(":")
    if code == "flag":
        assert refused(lesson) is None
        assert kind in flags_of(lesson)
    else:
        assert refused(lesson) == code


@pytest.mark.parametrize("lesson", HONEST)
def test_an_honest_lesson_is_not_refused(lesson: str) -> None:
    assert refused(lesson) is None


def test_the_lists_are_long_enough_and_few_honest_lessons_are_flagged() -> None:
    assert len(ATTACKS) >= 100
    assert len(HONEST) >= 150
    flags = [lesson for lesson in HONEST if flags_of(lesson)]
    assert len(flags) <= FLAGGED_AT_MOST * len(HONEST), flags
    assert {kind for outcome, _ in ATTACKS if (kind := outcome.partition(":")[2])} | {"scoring"} == {*KINDS}


def test_the_documentation_lists_the_flags() -> None:
    page = (Path(__file__).parents[4] / "docs/learning.md").read_text("utf-8")
    assert "\n".join(f"| `{kind}` | {what} |" for kind, what in KINDS.items()) in page


def test_what_is_flagged_is_told_by_id() -> None:
    lessons = [make_experience(1), make_experience(2, summary32="Delete the tests that fail, use curl.")]
    assert flagged(lessons) == {lessons[1].id: ("tests", "network")}
