"""What a part of an arena does at one moment, and what it came to, each as a line."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from typing import TYPE_CHECKING, TextIO, TypeVar

from pytest_tfgrpo.core.texts.text import line, money, plural

if TYPE_CHECKING:
    from pytest_tfgrpo.arena.arena import Arena
    from pytest_tfgrpo.arena.trained_side import TrainedSide
    from pytest_tfgrpo.engine.gauge import Reading

T = TypeVar("T")
EVERY_S = 0.2


async def watch(stream: TextIO | None, arena: Arena, part: str, work: Coroutine[object, object, T]) -> T:
    """Return what `work` returns; meanwhile a line of the terminal `stream` shows how far it is."""
    if stream is None:
        return await work

    def write(text: str) -> None:
        width = shutil.get_terminal_size().columns - 1  # a full row would wrap
        stream.write(f"\r{text[:width]}\x1b[K")
        stream.flush()

    async def tick() -> None:
        while True:
            write(live_line(part, arena.gauge.read()))
            await asyncio.sleep(EVERY_S)

    ticker = asyncio.create_task(tick())
    try:
        return await work
    finally:
        ticker.cancel()
        write("")


def live_line(part: str, reading: Reading) -> str:
    """Return what a part of an arena does: ``heuristic  epoch1  24/60 rollouts  2 in flight  $0.02``."""
    words = [line(part)]
    if reading.stage == "learning":
        words.append(f"learns from {plural(reading.groups, 'group')}")
    elif reading.phase is not None:
        words += [reading.phase.label, f"{reading.sweep.done}/{reading.sweep.planned} rollouts"]
    if in_flight := len(reading.attempts.ages_s) + sum(reading.asked.values()):
        words.append(f"{in_flight} in flight")
    if reading.spent_usd:
        words.append(money(reading.spent_usd))
    return "  ".join(words)


def trained_line(name: str, side: TrainedSide, *, on_file: bool) -> str:
    """Return what a side came to: ``heuristic: 60 rollouts, 6 lessons``."""
    if side.failed:
        return f"{name}: {line(side.failed, 300)}"
    made = side.trained
    words = [plural(side.spent.rollouts, "rollout")]
    if side.spent.teacher_calls:
        words.append(plural(side.spent.teacher_calls, "teacher call"))
    if made.library is not None:
        words.append(plural(len(made.library.experiences), "lesson"))
    if made.packs:
        words.append(plural(len(made.packs), "changed prompt pack"))
    return f"{name}: {', '.join(words)}{' (on file)' if on_file else ''}"
