"""Records of live runs: what the agent's side, the store, the selector and the guard hand to each other.

A run is one task of the application, known by the key that it gave; its rollout is what the store keeps of
it (decision 24). Three rewards are never mixed (decision 1): a composite lies in [-1, 1], a score in [0, 1],
and ``q = (composite + 1) / 2``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE, Json

EventKind: TypeAlias = Literal["start", "choice", "turn", "tool", "safety", "retry", "end", "outcome"]


class LiveStatus(StrEnum):
    """Where a run or an attempt stands; all but running are final."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class LiveEvent(NamedTuple):
    """What an agent reports (``tfgrpo.live-event/1``); a tuple, since it is made on the agent's thread."""

    kind: EventKind
    run: str
    """The application's key of the run."""
    owner: str
    """Random name of the object that reports, another for every run that is opened, so that two uses
    of one key differ. Empty: the newest run of the key, for an outcome."""
    attempt: int
    """From 1; a retry has the number of the attempt that it opens."""
    seq: int
    """Place within the run, from 0; -1 for an outcome. What comes twice is refused."""
    at: float
    """Seconds since 1970, by the clock of whoever reports."""
    data: Mapping[str, Json]
    """By kind: start: category, prompt, selector, control; choice: a `ArmChoice`; tool: name, error;
    safety: blocked; end: status, reason, reply, score, prompt_chars, reply_chars, completed, cost_usd,
    latency_ms; outcome: score."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmChoice:
    """One decision of a run: a step of its trajectory."""

    point: str
    place: int
    """Which choice of its run, from 0."""
    arm: str
    """Name of the arm that was taken."""
    arms: Mapping[str, str]
    """Stamp of every arm of the point then, by name."""
    probabilities: Mapping[str, float]
    """Probability of every arm under the policy that chose, by name; they sum to 1."""
    selector: int
    """Number of the selector that chose; 0 before the first update."""
    control: bool = False
    """The default arm was taken without the selector: no part of any update."""

    @property
    def propensity(self) -> float:
        """Probability with which the arm was taken."""
        return self.probabilities[self.arm]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTrace:
    """What reward inference may look at; counts are of the last attempt."""

    prompt_chars: int
    reply_chars: int
    """0 where there is no reply."""
    completed: bool
    """The application's session came to its end, not to an exception, a limit or a time out."""
    turns: int
    tool_errors: int
    blocked: bool
    """Safety blocked the run: composite exactly -1."""
    score: float | None = None
    """In [0, 1], from the application; None: not known."""
    cost_usd: float | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardBreakdown:
    """What a strategy found (decision 28)."""

    strategy: str
    composite: float
    """In [-1, 1]; -1 if and only if blocked."""
    components: Mapping[str, float]
    """By name, also where the run was blocked."""
    confidence: float
    """In [0, 1]."""
    hard_gate: bool
    """Safety blocked the run."""

    @property
    def q(self) -> float:
        """The composite in [0, 1] (decision 1)."""
        return (self.composite + 1) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveRollout:
    """A run as the store keeps it."""

    id: str
    """``live-rl-rollout-<namespace>-<sequence of 10 digits>`` (decision 24)."""
    sequence: int
    run: str
    category: str
    status: LiveStatus
    reason: str
    """Why it failed or was cancelled; empty otherwise."""
    control: bool
    attempt: int
    choices: tuple[ArmChoice, ...]
    """Of the last attempt, in their order."""
    trace: RunTrace | None
    """None while it runs."""
    reward: RewardBreakdown | None
    """As its ``live.agent.decision`` span says; None while it runs, or where the strategy needs a score."""
    started_at: float
    ended_at: float | None
    used_in: int | None
    """Number of the update that used it; a rollout is used once."""
    prompt: str | None = None
    """Redacted; None with ``text = none``."""
    reply: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GateState:
    """The guard's memory (decision 23)."""

    state: Literal["pass", "hold"] = "pass"
    streak: int = 0
    """Failures in a row."""
    reason: str = ""
    """Why it holds: failures, max_blocked, worse_than_control, more_failures; while it passes, why it was
    reset."""
    last_error: str | None = None
    since: float = 0.0
    """When it took this state, seconds since 1970."""
    by: str = ""
    """Who reset it."""
    blocked: tuple[bool, ...] = ()
    """Of the last runs, whether safety blocked them; at most 32."""
    control: Mapping[str, float] = field(default_factory=dict)
    """Memory of the test of the selector's rewards against the control's."""
    failures: Mapping[str, float] = field(default_factory=dict)
    """Memory of the test of how often its runs fail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveUpdate:
    """What one update did (``tfgrpo.live-update/1``); weights are never applied."""

    number: int
    """The store gives it; 0 before."""
    at: float
    executed: bool
    reason: str
    """no_trajectories, zero_variance, missing_logprobs; empty where it was executed."""
    algorithm: Literal["ppo", "grpo", "rloo"]
    strategy: str
    """Of reward inference: one for all runs of an update."""
    selector_before: int
    selector_after: int
    trajectories: int
    samples: int
    """Choices."""
    metrics: Mapping[str, float]
    """loss, value_loss, kl, clip_fraction, entropy, explained_variance, early_stop, mean_reward; empty where
    it was not executed, and no explained_variance where all returns are equal."""
    probabilities_before: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By point, category, arm."""
    probabilities_after: Mapping[str, Mapping[str, Mapping[str, float]]]
    left_out: Mapping[str, int]
    """Runs by reason: no_outcome, stale, unknown_arm, ..."""
    used: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Ids of the rollouts used; none where it was not executed."""
    spent: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Ids of the rollouts that no later update gets: those used, and those left out. Runs whose rewards were
    all equal are not, until an update is full of them: the next may bring a difference. Nor are runs of arms
    that only another process has, until they are stale."""

    @property
    def weights_applied(self) -> bool:
        """False, always: the model stays as it is."""
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveRules:
    """What store and collector need of reward inference, guard and update, bound to their settings."""

    infer: Callable[[RunTrace], RewardBreakdown | None]
    """None: the strategy needs a score that is not known."""
    ended: Callable[[GateState, LiveRollout], GateState]
    """The guard after a run that ended by itself or timed out; its reward may be unknown yet."""
    rewarded: Callable[[GateState, LiveRollout], GateState]
    """The guard once the outcome of a run that ended without a reward gave it one."""
    failed: Callable[[GateState, str, float], GateState]
    """The guard after a failure of persistence, inference or update: state, error, seconds since 1970."""
    succeeded: Callable[[GateState], GateState]
    """The guard after a whole cycle, a due update included."""
    update: Callable[[Sequence[LiveRollout], int, Json | None], tuple[LiveUpdate, Json | None]]
    """Report and new selector from unused rollouts, oldest first, the number of the current selector and its
    document; None where there is none yet. The store numbers report and selector, and keeps an equal one."""
