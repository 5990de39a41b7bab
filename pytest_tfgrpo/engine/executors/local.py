"""The executor ``local``: coroutines on this process's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pytest_tfgrpo.protocols import Actor

T = TypeVar("T")


class LocalExecutor:
    """Runs work on this process's event loop, at most `places` calls at a time."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.notes: Sequence[str] = ()
        self.warnings: Sequence[str] = ()

    async def run(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Call `work` on every item; items are taken from the iterable only when a place is free."""
        await run_in_order(items, work, self.places)

    def place(self, actor: Actor) -> Actor:
        """Return the actor, which is called here."""
        return actor

    async def aclose(self) -> None:
        """Do nothing: there are no workers."""


async def run_in_order(items: Iterable[T], work: Callable[[T], Awaitable[None]], places: int) -> None:
    """Call `work` on every item, `places` at a time, in order of start; see Executor."""
    source = iter(items)

    async def worker(source: Iterator[T]) -> None:
        for item in source:
            await work(item)

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(places):
                workers.create_task(worker(source))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
