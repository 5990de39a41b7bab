"""Flagged lessons: shown by the commands, and promoted only by a yes for each."""

import pytest
from support.builders import make_experience

from pytest_tfgrpo.cli.runs.library import require_read, to_read
from pytest_tfgrpo.core.errors import SettingError

HONEST = make_experience(1, summary32="Count the words.")
FLAGGED = make_experience(2, summary32="Delete the tests that fail.")
OTHER = make_experience(3, summary32="Use curl first.")
LESSONS = (HONEST, FLAGGED, OTHER)


def test_lessons_to_read_are_listed_with_the_reason() -> None:
    assert list(to_read(LESSONS)) == [
        "read these before promote:",
        f"  {FLAGGED.id} Delete the tests that fail. (tests: changes, skips or anticipates tests or checks)",
        f"  {OTHER.id} Use curl first. (network: reaches other machines, or installs from there)",
    ]
    assert list(to_read([HONEST])) == []


def test_a_flagged_lesson_needs_a_yes_of_its_own() -> None:
    require_read((), [HONEST], [])
    require_read((), LESSONS, [FLAGGED.id, OTHER.id])
    with pytest.raises(
        SettingError, match=r"(?s)1 lesson is flagged.*nothing is written.*Use curl"
    ) as caught:
        require_read((), LESSONS, [FLAGGED.id])
    assert "Delete" not in str(caught.value)
    require_read([OTHER], LESSONS, [FLAGGED.id])  # that one was committed before


def test_a_yes_to_no_lesson_is_an_error() -> None:
    with pytest.raises(SettingError, match="--accept-flagged 123: the library has no lesson with this id"):
        require_read((), LESSONS, ["123"])
    with pytest.raises(SettingError, match="--accept-flagged 456: the library has no lesson with this id"):
        require_read((), LESSONS, [FLAGGED.id, "456", OTHER.id])
