"""Cancelling: work in a thread that ends, with the programs it waits for, once another thread says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOOK_S = 0.5
"""Seconds between two looks while a program runs."""


class Cancelled(Exception):
    """The work was cancelled; the programs that it had started are gone."""


_cancelled: ContextVar[Callable[[], bool]] = ContextVar("cancelled", default=lambda: False)


@contextmanager
def cancelled_by(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Cancel what this thread does in here once `cancelled` returns True."""
    token = _cancelled.set(cancelled)
    try:
        yield
    finally:
        _cancelled.reset(token)


def require_going() -> None:
    """Raise Cancelled where the work of this thread was cancelled."""
    if _cancelled.get()():
        raise Cancelled
