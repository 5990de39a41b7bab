"""The end of a traceback, as the message of an error holds it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import TracebackType

from pytest_tfgrpo.core.texts.text import TRACEBACK

TRACEBACK_CHARS = 2000


def traceback_text(error: BaseException, caller: str) -> str:
    """Return the end of an exception's traceback, without the first frames, those of the file `caller`.

    Only the exception's type and message where its traceback cannot be formatted.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == caller:
        frames = frames.tb_next
    try:
        text = _formatted(error, frames)
    except Exception:  # noqa: BLE001 - an agent's exception may do anything when it is looked at
        text = f"{type(error).__name__}: {_message(error)}"
    return text if len(text) <= TRACEBACK_CHARS else f"{TRACEBACK}:\n  ...\n{text[-TRACEBACK_CHARS:]}"


def _formatted(error: BaseException, frames: TracebackType | None) -> str:
    """Return a traceback without marks below its lines.

    For these Python parses each line, which raises SystemError before 3.11.8 and 3.12.2 where another
    thread parses at the same time (gh-106905).
    """
    whole = traceback.TracebackException(type(error), error, frames)
    for one in _chain(whole):
        for frame in one.stack:
            frame.colno = frame.end_colno = None
    return "".join(whole.format()).strip()


def _chain(whole: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Yield a traceback with those of its causes, contexts and members; `traceback` cuts circles."""
    waiting = [whole]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [other for other in (one.__cause__, one.__context__, *(one.exceptions or ())) if other]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - likewise
        return "(its message cannot be shown)"
