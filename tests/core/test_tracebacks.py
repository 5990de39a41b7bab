"""Tracebacks as messages hold them: the end, without the frames of who called."""

import pytest

from pytest_tfgrpo.core import tracebacks
from pytest_tfgrpo.core.tracebacks import TRACEBACK_CHARS, traceback_text


def raised(message: str) -> ValueError:
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def test_a_short_traceback_is_whole_and_has_no_frames_of_the_caller() -> None:
    error = raised("no")
    assert traceback_text(error, "").startswith("Traceback (most recent call last):\n  File")
    assert __file__ in traceback_text(error, "")
    assert __file__ not in traceback_text(error, __file__)
    assert traceback_text(error, __file__).endswith("ValueError: no")


def test_of_a_long_traceback_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = traceback_text(raised("x" * TRACEBACK_CHARS + "end"), "")
    assert text == f"Traceback (most recent call last):\n  ...\n{'x' * (TRACEBACK_CHARS - 3)}end"
    whole = traceback_text(raised("no"), "")
    monkeypatch.setattr(tracebacks, "TRACEBACK_CHARS", len(whole))
    assert traceback_text(raised("no"), "") == whole
