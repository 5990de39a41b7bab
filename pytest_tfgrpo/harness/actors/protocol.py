"""The one Protocol of actors, and the context that each call gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_tfgrpo.core.records import Attachment, Json, Prompt, Task, Trajectory
from pytest_tfgrpo.harness.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorCall:
    """All that an actor is told about one rollout; it never sees checks or expected answers."""

    scenario: Task
    prompt: Prompt
    temperature: float
    """In [0, 2]."""
    seed: int
    """In [0, 2**63); equal seeds and prompts should give equal answers."""
    workspace: Workspace
    """`workspace.path` is a private folder with the scenario's attachments in it."""
    timeout_s: float
    """The engine cancels the call after this long and scores 0."""
    answer_max_bytes: int
    """A larger answer is the agent's failure."""


class Actor(Protocol):
    """Whatever is asked to solve a scenario; frozen: it learns only through the prompt."""

    name: str
    """The spec it was opened with, for instance ``command:./agent --fast``."""
    paid: bool
    """True when calls cost money: plain mode then needs ``plain = true``."""
    identity: Mapping[str, Json]
    """What makes two actors the same, stamped into the manifest (model, version, settings)."""

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; what an exception carries as frames is counted like any other use.

        Raises AgentFailure when the agent is at fault (status ``failed``, score 0) and ProviderError when we
        or the provider are (status ``error``); any other exception counts as the agent's crash.
        """
        ...

    def bound(self, call_count: int) -> Mapping[str, float | None]:
        """Return the declared maxima of `call_count` calls: ``usd`` and ``tokens``; None where unknown."""
        ...

    async def aclose(self) -> None:
        """Release what the actor holds; called once, after the last call."""
        ...


@runtime_checkable
class Metered(Protocol):
    """What an actor may have besides, when its model calls ask the run's budget themselves."""

    metered: bool
    """True: the engine reserves and counts nothing for it."""
    concurrency: int | None
    """Rollouts that it can serve at once: more would only wait, and run over their time limits."""


@runtime_checkable
class Foresighted(Protocol):
    """What an actor may have besides, when it can tell beforehand what it cannot do."""

    def require(self, tasks: Sequence[tuple[Task, Sequence[Attachment]]]) -> None:
        """Raise ActorError naming the first task, with its files, that it cannot be asked."""
        ...


def as_metered(actor: Actor) -> Metered | None:
    """Return the actor where its model calls ask the budget themselves, else None."""
    return actor if isinstance(actor, Metered) and actor.metered else None
