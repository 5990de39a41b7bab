"""Python's garbage collector during a run, which makes few cycles and many objects that live long."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

EVERY = 50_000
"""New objects after which a collection looks at them; 700 by default, which takes a tenth of a run."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Let the collector run once in EVERY new objects; nothing changes where it runs that seldom already."""
    usual = gc.get_threshold()
    if not 0 < usual[0] < EVERY:  # 0: it does not run at all
        yield
        return
    gc.set_threshold(EVERY, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def give_back() -> None:
    """Give the system the memory back that a burst of work took, where the C library can."""
    import ctypes  # short runs have no use for it

    gc.collect()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
