"""Results of marked test functions: the engine waits for them, the test run delivers them."""

from __future__ import annotations

import asyncio

from pytest_tfgrpo.core.records import CheckerResult

NOT_RUN = "its test function did not run"


class CheckerResults:
    """What test functions found, by rollout id; used on the event loop only."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[CheckerResult | None]] = {}
        self._closed: list[str] = []
        self.missing = ""
        """Why a phase is incomplete: missing results; empty if none is missing."""

    async def of(self, rollout_id: str) -> CheckerResult | None:
        """Return the judgement of a rollout once it is given, or None once its epoch is closed."""
        future = self._future(rollout_id)
        if not future.done() and rollout_id.startswith(tuple(self._closed)):
            self._miss(rollout_id)
        return await future

    def settle(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Deliver a result; the first one counts."""
        future = self._future(rollout_id)
        if not future.done():
            future.set_result(checker_result)

    def close(self, prefix: str) -> None:
        """Say that no judgement of rollouts whose id starts with `prefix` will come any more."""
        self._closed.append(prefix)
        for rollout_id, future in self._futures.items():
            if rollout_id.startswith(prefix) and not future.done():
                self._miss(rollout_id)

    def _future(self, rollout_id: str) -> asyncio.Future[CheckerResult | None]:
        if rollout_id not in self._futures:
            self._futures[rollout_id] = asyncio.get_running_loop().create_future()
        return self._futures[rollout_id]

    def _miss(self, rollout_id: str) -> None:
        self.missing = self.missing or f"{rollout_id}: {NOT_RUN}"
        self._future(rollout_id).set_result(None)
