"""Growth: how the time of some work grows with its size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TIMES = 16
"""How much larger the larger of two sizes is: linear time grows by as much, quadratic time by its square."""
REPEATS = 3


def growth(work: Callable[[int], object], size: int) -> float:
    """Return how many times longer `work` takes at 16 times `size`.

    About 16 says linear, about 256 quadratic time. The processor time of this thread in the fastest repeat is
    compared, without collections of garbage: a busy machine, other threads and what else is in memory count
    nothing. What takes quadratic time ends the comparison early.
    """
    small = min(_spent(work, size) for _ in range(REPEATS))
    large = _spent(work, TIMES * size)
    for _ in range(REPEATS - 1):
        if large < 2 * TIMES * small:
            break
        large = min(large, _spent(work, TIMES * size))
    return large / small


def _spent(work: Callable[[int], object], size: int) -> float:
    collects = gc.isenabled()
    gc.disable()
    started = time.thread_time()
    try:
        work(size)
        return max(time.thread_time() - started, 1e-5)
    finally:
        if collects:
            gc.enable()
