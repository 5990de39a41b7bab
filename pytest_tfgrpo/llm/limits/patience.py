"""Patience: how long a run waits for a server that does not answer, and how often it looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pytest_tfgrpo.retry import backoff_s

FIRST_S, MOST_S, TOTAL_S = 1.0, 30.0, 120.0
"""The first wait, which doubles up to the second figure, and the sum of all."""

Tell = Callable[[str], object]
"""Takes a sentence about a pause for whoever follows the run."""


async def outwait(answers: Callable[[], Awaitable[bool]], notice: Callable[[], object]) -> int | None:
    """Return after how many waits `answers` said so, 0 for none, or None when it did not for TOTAL_S.

    `notice` is called before the first wait.
    """
    clock = asyncio.get_running_loop().time
    began, waits = clock(), 0
    while not await answers():
        left_s = began + TOTAL_S - clock()
        if left_s <= 0:
            return None
        if not waits:
            notice()
        await asyncio.sleep(min(backoff_s(waits, FIRST_S, MOST_S), left_s))
        waits += 1
    return waits
