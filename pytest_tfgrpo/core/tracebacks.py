"""The end of a traceback, as the message of an error holds it."""

from __future__ import annotations

import traceback

from pytest_tfgrpo.core.text import TRACEBACK

TRACEBACK_CHARS = 2000


def traceback_text(error: BaseException, caller: str) -> str:
    """Return the end of an exception's traceback, without the first frames, those of the file `caller`."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == caller:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).strip()
    return text if len(text) <= TRACEBACK_CHARS else f"{TRACEBACK}:\n  ...\n{text[-TRACEBACK_CHARS:]}"
