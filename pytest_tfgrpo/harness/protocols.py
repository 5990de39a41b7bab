"""The seams that a plugin may supply: actors, rewarders, judges, optimizers, and what each is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_tfgrpo.core.lessons import Library, Operation
from pytest_tfgrpo.core.records import (
    Attachment,
    Group,
    Json,
    JudgeResult,
    Prompt,
    PromptPack,
    Rollout,
    Scenario,
    Task,
    Trajectory,
)
from pytest_tfgrpo.harness.sandbox.workspace import Workspace

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_tfgrpo.llm.calls import Calls
    from pytest_tfgrpo.numerics.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorCall:
    """All that an actor is told about one rollout; it never sees checks or expected answers."""

    task: Task
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

    @property
    def scenario(self) -> Task:
        """The same as `task`, its name before 0.2."""
        return self.task


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


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardBatch:
    """N rollouts of K whole groups; arrays run over rollouts (``_N``)."""

    rollouts: tuple[Rollout, ...]
    scenarios: Mapping[str, Scenario]
    group_N: npt.NDArray[np.intp]
    """Index of each rollout's group, 0..K-1, ascending."""
    scored_N: npt.NDArray[np.bool_]
    """False for rollouts that are errors; their score must be NaN and is ignored."""
    gt_N: Floats
    """gt_score of each rollout; NaN for errors."""


class Rewarder(Protocol):
    """Scores rollouts; pure: equal batches give equal scores, and no group influences another."""

    name: str
    weight: float
    """Weight beside gt_score (which has 1) in the reward that ranks a group; 0 only reports."""

    def __call__(self, batch: RewardBatch) -> Any:
        """Return N scores in [0, 1] (NaN: no score), as an array or sequence of floats."""
        ...


class Judge(Protocol):
    """Decides each criterion of a rubric with yes or no, over several votes."""

    name: str
    """Spec of the model that judges."""
    identity: Mapping[str, Json]
    """What makes two judges the same: model, template, votes."""

    async def ask_judge(self, scenario: Scenario, rollout: Rollout, calls: Calls) -> JudgeResult:
        """Return a verdict or, with score None, why there is none; never a default score.

        Raises BudgetError when a call was not made.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningContext:
    """One training epoch as an optimizer sees it."""

    run_id: str
    task_id: str
    epoch: int
    actor: str
    groups: tuple[Group, ...]
    """All groups of the epoch, in the order of its draw; also those without spread."""
    scenarios: Mapping[str, Scenario]
    """Train scenarios by id; eval scenarios are never here (decision 21)."""
    packs: Mapping[str, PromptPack]
    """Pack in use, by domain."""
    library: Library
    """The library in force during the epoch."""
    max_words: int
    created_at: str
    """Time to stamp on new experiences."""
    manifest_path: str
    calls: Calls
    """Through which a language model is asked, so that each call is journaled before it has consequences."""
    seed: int
    """Seed of the run."""
    concurrency: int
    """Calls in flight at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """What an optimizer would do to the library; every operation is screened before it is applied."""

    operations: tuple[Operation, ...] = ()
    lesson_groups: frozenset[str] = frozenset()
    """Ids of the groups that carried a lesson."""
    note: str = ""
    failures: Mapping[str, int] = field(default_factory=dict)
    """What failed on the way, by reason code; nothing fails silently."""


class Optimizer(Protocol):
    """Turns what the better rollouts did differently into operations on the library."""

    name: str
    identity: Mapping[str, Json]
    """What makes two optimizers the same: the teacher's name as ``model`` and the like; empty without any."""

    async def propose(self, context: LearningContext) -> Proposal:
        """Return the operations that the epoch suggests; equal contexts should give equal proposals."""
        ...
