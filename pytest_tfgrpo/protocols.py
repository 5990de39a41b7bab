"""What a plugin may supply - actors, rewarders, judges, optimizers - and the arguments of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from pytest_tfgrpo.core.lessons import Experience, LessonTrial, Library, Operation
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import (
    Frame,
    Group,
    JudgeResult,
    Phase,
    PhaseResult,
    Rollout,
    RunHeader,
    Trajectory,
)
from pytest_tfgrpo.core.scenarios import Attachment, Prompt, PromptPack, Scenario, Task, ToolMock
from pytest_tfgrpo.core.wire.wire import Json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_tfgrpo.llm.calls import Calls
    from pytest_tfgrpo.metrics.comparison import Tally
    from pytest_tfgrpo.numerics.arrays import Floats
    from pytest_tfgrpo.sandbox.workspace import Workspace
    from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class ActorCall:
    """The input of an actor for one rollout, without checks and expected answers."""

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
    """A larger answer counts as the agent's failure."""
    part_thoughts: bool = False
    """Thoughts before the answer, as `<think>...</think>`, are no part of it."""
    mocks: tuple[ToolMock, ...] = ()
    """What stands in for tools; only an actor that is Mocking gets some."""
    traceparent: Callable[[], str] | None = None
    """Returns the W3C trace context for spans of the agent's own; None without telemetry."""
    span_counts: SpanCounts | None = None
    """Counts what is not used of the agent's spans."""

    @property
    def scenario(self) -> Task:
        """The same as `task`, its name before 0.2."""
        return self.task


class Actor(Protocol):
    """Solves scenarios; frozen: it learns only through the prompt."""

    name: str
    """The spec that opened it, for example ``command:./agent --fast``."""
    paid: bool
    """True when calls cost money: plain mode then needs ``allow_paid = true``."""
    identity: Mapping[str, Json]
    """What identifies the actor (model, version, settings); the manifest has its stamp."""

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; frames of an exception are counted like any other use.

        Raises AgentFailure if the agent is at fault (status ``failed``, score 0) and ProviderError if the
        provider or the infrastructure is (status ``error``). Any other exception counts as an agent crash.
        """
        ...

    def bound(self, call_count: int) -> Mapping[str, float | None]:
        """Return the declared maximum of `call_count` calls in ``usd`` and ``tokens``; None if unknown."""
        ...

    async def aclose(self) -> None:
        """Release resources; called once, after the last call."""
        ...


@runtime_checkable
class Metered(Protocol):
    """Optional: an actor whose model calls reserve from the run's budget themselves."""

    metered: bool
    """True: the engine reserves and counts nothing for it."""
    concurrency: int | None
    """Most rollouts that it can serve at once; more would wait and exceed their time limits."""


@runtime_checkable
class Foresighted(Protocol):
    """Optional: an actor that knows beforehand which tasks it cannot do."""

    def require(self, tasks: Sequence[tuple[Task, Sequence[Attachment]]]) -> None:
        """Raise ActorError with the first task that it cannot do; each task comes with its files."""
        ...


@runtime_checkable
class Mocking(Protocol):
    """Optional: an actor whose tools a scenario can mock."""

    def require_mocks(self, task: Task, mocks: Sequence[ToolMock]) -> None:
        """Raise ActorError with the first mock that it cannot use in the rollouts of a task."""
        ...


class Session(Protocol):
    """One conversation of an actor: a rollout of several turns, which it remembers."""

    async def answer(self, message: str) -> Trajectory:
        """Return the answer to what the user says, and the calls made for it alone; raises as Actor does."""
        ...

    async def aclose(self) -> None:
        """Release what the conversation held; called once, also after a failure."""
        ...


@runtime_checkable
class Conversational(Protocol):
    """Optional: an actor that can hold a conversation."""

    converses: bool
    """False where it cannot, as it is configured."""

    def open_session(self, call: ActorCall) -> Session:
        """Return a session; `call.prompt.user` is the first message, and its time limit is that of all."""
        ...


def as_conversational(actor: Actor) -> Conversational | None:
    """Return the actor if it can hold a conversation, else None."""
    return actor if isinstance(actor, Conversational) and actor.converses else None


class User(Protocol):
    """The user of one conversation."""

    async def reply(self, answer: str | None) -> Frame | None:
        """Return what the user says after an answer, first to None; None: the conversation is over.

        Raises ProviderError where the user cannot be played, which is no fault of the agent.
        """
        ...


def as_metered(actor: Actor) -> Metered | None:
    """Return the actor if its model calls reserve from the budget themselves, else None."""
    return actor if isinstance(actor, Metered) and actor.metered else None


class GivenAttempts(Protocol):
    """Attempts that were made elsewhere."""

    def filled(self, blank: Rollout) -> Rollout:
        """Return a rollout with the attempt that it stands for; raises EvidenceError."""
        ...


class SweepWatch(Protocol):
    """Follows a final sweep; `settled` once no further scenario can change the gate's result."""

    @property
    def order(self) -> Sequence[str]:
        """Ids of the sweep's scenarios in the order they run."""
        ...

    @property
    def settled(self) -> bool:
        """True once the gate is decided."""
        ...

    def feed(self, finished: Mapping[str, Tally], controls: Mapping[str, Tally]) -> bool:
        """Take scenarios that are finished, here and in a concurrent control; return `settled`."""
        ...


OpenWatch: TypeAlias = Callable[[Phase, Sequence[PhaseResult], str], SweepWatch | None]
"""Returns the watch over a phase, after the results so far, with the library of a hash."""


class Tracing(Protocol):
    """Where the spans of a run go; it receives every record, on the engine's thread."""

    def begin(self, header: RunHeader, *, sent: Collection[str]) -> None:
        """Get ready for a run; `sent` has the ids of what an earlier process of it has sent."""
        ...

    def traceparent(self, rollout_id: str) -> str:
        """Return the W3C trace context of a rollout's span."""
        ...

    def around(self, rollout_id: str, prompt: Prompt) -> AbstractContextManager[None]:
        """Return what surrounds the call of an actor, so that its own spans become children."""
        ...

    def __call__(self, record: object) -> None:
        """Take a record."""
        ...

    def close(self) -> str:
        """Send what is left, within a short time; returns what was lost and why, or nothing."""
        ...


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
    """1 to 64 letters, digits, ``_`` and ``-``: it names a metric."""
    weight: float
    """Weight beside gt_score (which has 1) in the reward that ranks a group; 0 only reports."""

    def __call__(self, batch: RewardBatch) -> Any:
        """Return N results, one per rollout.

        Each is a score in [0, 1] (NaN or None: no score), a pair of score and reason, or a mapping of names
        to those, whose mean is the rewarder's own score. An array of floats is the fastest.
        """
        ...


class Judge(Protocol):
    """Decides each criterion of a rubric with yes or no, over several votes."""

    name: str
    """Spec of the model."""
    identity: Mapping[str, Json]
    """What identifies the judge: model, template, votes."""

    async def ask_judge(self, scenario: Scenario, rollout: Rollout, calls: Calls) -> JudgeResult:
        """Return the judge's result; without one, a score of None and the reason, never a default score.

        Raises BudgetError when a call was not made, and OutageError when no call can be.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningContext:
    """One training epoch as an optimizer sees it."""

    run_id: str
    task_id: str
    epoch: int
    actor: str
    groups: Sequence[Group]
    """All groups of the epoch, in the order of its draw, including those without mixed results."""
    scenarios: Mapping[str, Scenario]
    """Train scenarios by id; eval scenarios are never here (decision 21)."""
    packs: Mapping[str, PromptPack]
    """Pack in use, by domain."""
    library: Library
    """The active library during the epoch."""
    max_words: int
    created_at: str
    """Time to stamp on new experiences."""
    manifest_path: str
    calls: Calls
    """Makes the calls of a language model, so that each is journaled before it has consequences."""
    seed: int
    """Seed of the run."""
    concurrency: int
    """Most calls in flight at once."""
    refused: tuple[tuple[Experience, LessonTrial], ...] = ()
    """Lessons that earlier epochs refused or removed, with what is known of them, the worst first."""

    @property
    def given(self) -> bool:
        """Whether its groups are attempts made elsewhere, whose reward is a total_reward."""
        return bool(self.groups) and self.groups[0].mode == "evidence"


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """The changes that an optimizer proposes; each operation is screened before it is applied."""

    operations: tuple[Operation, ...] = ()
    lesson_groups: frozenset[str] = frozenset()
    """Ids of the groups that yielded a lesson."""
    note: str = ""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Number of failures by reason code; nothing fails silently."""


class Optimizer(Protocol):
    """Turns what the better rollouts did differently into operations on the library."""

    name: str
    identity: Mapping[str, Json]
    """What identifies the optimizer, such as the teacher's name as ``model``; may be empty."""

    async def propose(self, context: LearningContext) -> Proposal:
        """Return the operations that the epoch suggests; equal contexts should give equal proposals."""
        ...
