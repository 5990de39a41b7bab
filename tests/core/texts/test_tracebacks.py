"""Tracebacks as messages hold them: the end, without the frames of who called."""

import pytest

from pytest_tfgrpo.core.texts import tracebacks
from pytest_tfgrpo.core.texts.tracebacks import TRACEBACK_CHARS, traceback_text


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


def test_no_line_is_parsed_for_marks_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    try:
        try:
            raised("a")[0]  # type: ignore[index]
        except TypeError as error:
            raise ExceptionGroup("both", [raised("b"), error]) from error
    except ExceptionGroup as error:
        whole = error
    monkeypatch.setattr("ast.parse", parse)
    text = traceback_text(whole, "")
    assert text.count("TypeError: 'ValueError' object is not subscriptable") == 2
    assert 'raised("a")[0]' in text
    assert "~" not in text
    assert "^" not in text


class Opaque(Exception):
    """Has no message."""

    def __str__(self) -> str:
        raise ValueError("no")


def test_what_cannot_be_formatted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise SystemError("no")

    monkeypatch.setattr("traceback.TracebackException", broken)
    assert traceback_text(Opaque("x"), "") == "Opaque: (its message cannot be shown)"
    assert traceback_text(ValueError("x"), "") == "ValueError: x"
