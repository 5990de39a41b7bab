"""How a phase, and with it the run, ends."""

from __future__ import annotations

import asyncio
import sys
from typing import NamedTuple

from pytest_tfgrpo.core.records import RunStatus


class RunEnd(NamedTuple):
    """How a phase ended; the run goes on if it is complete."""

    status: RunStatus
    reason: str = ""
    """Why it is not complete."""

    @property
    def complete(self) -> bool:
        """Whether all was done."""
        return self.status == "complete"


COMPLETE = RunEnd("complete")


def incomplete(reason: str) -> RunEnd:
    """Return the end of what stopped for a reason, and can be resumed."""
    return RunEnd("incomplete", reason)


def interrupted() -> RunEnd:
    """Let this task await again after it was cancelled: what was done is still to be written down.

    The message of the cancellation is the reason, if it has one.
    """
    uncancel()
    error = sys.exc_info()[1]
    return RunEnd("cancelled", str(error.args[0]) if error is not None and error.args else "interrupted")


def uncancel() -> None:
    """Let the present task await again."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
