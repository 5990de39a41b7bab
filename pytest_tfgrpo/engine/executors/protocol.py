"""The seams of executors: how rollouts are scheduled, and workers that make an actor's calls elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from pytest_tfgrpo.protocols import Actor

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply

T = TypeVar("T")

GRACE_S = 5.0
"""How long the call of a worker may take to end after it was cancelled; then its worker is ended."""


class Executor(Protocol):
    """Runs the rollouts of a run; the driver keeps all but the calls of the actor."""

    places: int
    """Rollouts in flight at most."""
    notes: Sequence[str]
    """What to say of the workers when the run begins."""
    warnings: Sequence[str]
    """What to know of them after the run."""

    async def run(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Call `work` on every item, in order of start; return when all calls have ended.

        An item is taken only when a place is free. The first exception of a call cancels the others and is
        raised.
        """
        ...

    def place(self, actor: Actor) -> Actor:
        """Return whom to call for an actor: itself, or a stand-in whose calls are made elsewhere."""
        ...

    async def aclose(self) -> None:
        """End all workers; called once, after the last call."""
        ...


class LeasedWorker(Protocol):
    """A worker that one rollout has for itself."""

    async def ask(self, turn: AgentTurn) -> WorkerReply:
        """Return what the agent answers; what kills its worker is the agent's failure, and a reply too.

        Cancelled, it cancels the agent, and returns what that still says within `GRACE_S`; else the agent is
        ended, and CancelledError raised. Raises ProviderError with the code LOST_WORKER where the worker was
        lost through no fault of the agent.
        """
        ...

    async def end(self, id_: str) -> None:
        """End the conversation of an attempt."""
        ...


class AgentWorkers(Protocol):
    """Where the calls of an actor are made."""

    def lease(self) -> AbstractAsyncContextManager[LeasedWorker]:
        """Return a worker for one rollout; no time limit runs while one is waited for."""
        ...
