"""What the test run delivers for rollouts of marked test functions: the engine waits for it."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from pytest_tfgrpo.core.records import CheckerResult
from pytest_tfgrpo.protocols import Actor

NOT_RUN = "its test function did not run"
Delivered = TypeVar("Delivered")


class Deliveries(Generic[Delivered]):
    """Values by rollout id, of which each comes once or never; used on the event loop only."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[Delivered | None]] = {}
        self._closed: list[str] = []
        self.missing = ""
        """Why a phase is incomplete: missing values; empty if none is missing."""

    async def of(self, rollout_id: str) -> Delivered | None:
        """Return the value of a rollout once it is there, or None once its epoch is closed."""
        future = self._future(rollout_id)
        if not future.done() and rollout_id.startswith(tuple(self._closed)):
            self._miss(rollout_id)
        return await future

    def settle(self, rollout_id: str, value: Delivered) -> None:
        """Deliver a value; the first one counts."""
        future = self._future(rollout_id)
        if not future.done():
            future.set_result(value)

    def await_again(self, rollout_id: str) -> None:
        """Forget what was delivered for a rollout: another value will come."""
        self._futures.pop(rollout_id, None)

    def close(self, prefix: str) -> None:
        """Say that nothing will come any more for rollouts whose id starts with `prefix`."""
        self._closed.append(prefix)
        for rollout_id, future in self._futures.items():
            if rollout_id.startswith(prefix) and not future.done():
                self._miss(rollout_id)

    def _future(self, rollout_id: str) -> asyncio.Future[Delivered | None]:
        if rollout_id not in self._futures:
            self._futures[rollout_id] = asyncio.get_running_loop().create_future()
        return self._futures[rollout_id]

    def _miss(self, rollout_id: str) -> None:
        self.missing = self.missing or f"{rollout_id}: {NOT_RUN}"
        self._future(rollout_id).set_result(None)


class FromTests:
    """What the marked test functions of a run deliver."""

    def __init__(self) -> None:
        self.agents = Deliveries[Actor]()
        """The agent of a rollout, once the fixtures of its test function are set up."""
        self.checker_results = Deliveries[CheckerResult]()
        """What they find."""

    def close(self, prefix: str) -> None:
        """Say that none will run any more for rollouts whose id starts with `prefix`."""
        self.agents.close(prefix)
        self.checker_results.close(prefix)

    @property
    def missing(self) -> str:
        """Why a phase is incomplete; empty if nothing is missing."""
        return self.agents.missing or self.checker_results.missing
