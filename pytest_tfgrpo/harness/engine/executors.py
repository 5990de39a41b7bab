"""Executors: how the rollouts of a phase are scheduled; the seam for running them elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harness.protocols import as_metered
from pytest_tfgrpo.harness.run.job import Job

T = TypeVar("T")


class Executor(Protocol):
    """Runs work on items, a bounded number at a time."""

    async def run(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Call `work` on every item, in order of start; return when all calls have ended.

        The first exception of a call cancels the others and is raised.
        """
        ...


class LocalExecutor:
    """Runs work on this process's event loop, at most `concurrency` calls at a time."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency

    async def run(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Call `work` on every item; items are taken from the iterable only when a place is free."""
        source = iter(items)

        async def worker(source: Iterator[T]) -> None:
            for item in source:
                await work(item)

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._concurrency):
                    workers.create_task(worker(source))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None


def open_executor(spec: str, *, concurrency: int) -> Executor:
    """Return the executor that `spec` names; raises SettingError on an unknown one."""
    table: dict[str, Callable[[int], Executor]] = {"local": LocalExecutor}
    if spec not in table:
        raise SettingError(f"unknown executor {spec!r}; known: {', '.join(sorted(table))}")
    return table[spec](concurrency)


def most_in_flight(job: Job) -> int:
    """Return how many rollouts are in flight at most."""
    wanted: int = job.settings["concurrency"]
    metered = as_metered(job.actor)
    served = None if metered is None else metered.concurrency
    return wanted if served is None else min(wanted, served)
