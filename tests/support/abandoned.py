"""Streams that an application breaks off: garbage collection ends them, in the middle of anything."""

from __future__ import annotations

import gc
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator

LONGEST_S = 60.0
"""A loop of less than a second that takes longer hangs."""


def abandon(begin: Callable[[], Callable[[], object]]) -> None:
    """Break off a stream, as a cycle; `begin` is called now, and what it returns once that is collected."""

    def stream() -> Iterator[None]:
        end = begin()
        try:
            yield
        finally:
            end()

    one = stream()
    next(one)
    cycle: list[object] = [one]
    cycle.append(cycle)
    gc.collect(0)  # it has lived on: the next collection of the youngest is not its end


def repeat_among_collections(step: Callable[[], object], *, times: int, places: int) -> None:
    """Call `step` on a thread of its own, and let what it abandons end at each place of it in turn.

    A place is every second new object; `places` says of how many. All is collected at the end. Raises what
    `step` raises, and AssertionError where it does not end.
    """
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for n in range(times):
                gc.collect(1)
                gc.set_threshold(1, n % places)  # every second object collects the youngest
                step()
        except BaseException as error:  # raised again by the test
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    usual = gc.get_threshold()
    try:
        thread.start()
        thread.join(LONGEST_S)
    finally:
        gc.set_threshold(*usual)
    if thread.is_alive():
        frame = sys._current_frames()[thread.ident or 0]
        raise AssertionError(f"it hangs:\n{''.join(traceback.format_stack(frame)[-12:])}")
    if errors:
        raise errors[0]
    _collect_all()


def _collect_all() -> None:
    """Return once all is collected: while another thread collects, `gc.collect` does nothing."""

    class Last:
        """What is abandoned after all else."""

    last = Last()
    last.itself = last  # type: ignore[attr-defined]
    gone = weakref.ref(last)
    del last
    while gone() is not None:
        gc.collect()
        time.sleep(0)
