"""Lessons: what is learned, on what evidence, and the library that holds it; frozen, validated at the edges.

Rewards lie in [0, 1]; ``None`` means unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE

Polarity: TypeAlias = Literal["do", "avoid"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reward:
    """The rewards of the rollouts a lesson rests on; of attempts made elsewhere total_reward for gt_score."""

    gt_score: float | None = field(default=None, metadata=SPARSE)
    total_reward: float | None = field(default=None, metadata=SPARSE)
    """In place of `gt_score`, never beside it: they are different quantities (decision 1)."""
    relative_rank: float = field(metadata=SPARSE)

    @property
    def quantity(self) -> str:
        """Name of the one that it is."""
        return "gt_score" if self.total_reward is None else "total_reward"

    @property
    def value(self) -> float:
        """The one that it is, in [0, 1]; raises ValueError unless it is one of the two."""
        if self.gt_score is None and self.total_reward is not None:
            return self.total_reward
        if self.gt_score is not None and self.total_reward is None:
            return self.gt_score
        raise ValueError("a reward has either gt_score or total_reward")


def from_evidence(reward: Reward) -> str:
    """Return what to add about where a lesson comes from; empty where the run's own agent ran."""
    return "" if reward.total_reward is None else " of production evidence"


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """How much evidence a lesson rests on."""

    groups: int
    rollouts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStat:
    """Use of one tool in the rollouts a lesson rests on: sums over its calls."""

    tool: str
    tokens: int
    latency_ms: float
    cost_usd: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Experience:
    """A lesson of at most 32 words with evidence and stamps (decision 15)."""

    id: str
    """H(run, epoch, group, n); immutable."""
    run_id: str
    task_id: str
    domain: str
    prompt_pack_id: str
    epoch: int
    group_id: str
    summary32: str
    polarity: Polarity
    reward: Reward
    support: Support
    tool_stats: tuple[ToolStat, ...]
    stamp_signature: str
    """Stamp of the prompt pack it was learned under."""
    actor: str
    """Spec of the actor it was learned with."""
    parents: tuple[str, ...] = ()
    """Ids it updates or merges."""
    created_at: str = ""
    """ISO 8601, UTC."""
    manifest_path: str = ""
    """Manifest of its run, relative to the output folder of its task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tombstone:
    """The removal of an experience from the library; the experience itself stays on file."""

    id: str
    """Id of the experience removed."""
    run_id: str
    epoch: int
    reason: str
    created_at: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One proposed change of the library."""

    kind: Literal["add", "update", "merge", "remove"]
    experience: Experience | None = None
    """The new revision; None for a removal."""
    targets: tuple[str, ...] = ()
    """Ids it supersedes: one for update and remove, two or more for merge."""
    reason: str = ""
    groups: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Ids of the groups of this run that its lesson rests on; empty where the optimizer does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An operation that was not applied, and why."""

    operation: Operation
    """Without what looks like a secret: a refusal is shown and kept, a lesson refused for a key too."""
    code: str
    """word_cap, secret, role_marker, url, leak, duplicate, unknown_id, unstamped, size_cap, ..."""
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnedEffects:
    """What one run learned of how much lessons do: where they are about the task, and where they are not.

    Each is (mean, spread, lessons that both are known from), on the logit scale.
    """

    run_id: str
    series: str
    """Key of the run's draws: an equal run shows nothing new."""
    measure: str
    """Stamp of actor, judge, prompt packs and optimizer: only equal ones go on with it."""
    on_topic: tuple[float, float, float]
    elsewhere: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """The active lessons; identified by the content that prompts can see."""

    experiences: tuple[Experience, ...] = ()
    hash: str = ""
    """Stamp of the visible content (not of ids and times)."""
    lineage: tuple[str, ...] = ()
    """Hashes of the libraries before it, oldest first."""
    looks: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=SPARSE)
    """Variants that were evaluated up to its promotion, by the stamp of the eval split."""
    effects: tuple[LearnedEffects, ...] = ()
    """What the runs that made it learned of lessons in general, oldest first; no part of the hash."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposure:
    """What one training group shows of the lessons selected for its prompt."""

    run_id: str
    epoch: int
    scenario: str
    """Stamp of its scenario."""
    domain: str
    series: str
    """Key of its run's draws besides epoch and scenario: if all three are equal it is the same draw."""
    propensity: float
    """Chance with which each lesson was in the prompt."""
    reward: float | None
    """Mean reward of its rollouts that are no errors, in [0, 1]; None when all are, or nothing is known."""
    errors: int
    """Its rollouts that are errors."""
    included: tuple[str, ...]
    """Content keys of the lessons in the prompt."""
    left_out: tuple[str, ...]
    """Content keys of those left out at random."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonTrial:
    """What an epoch's decision rests on for one lesson that coins brought into prompts or kept out."""

    id: str
    key: str
    """Content key: what identifies it over revisions and runs."""
    fate: Literal["accepted", "kept", "returned", "refused", "removed", "replaced"]
    """accepted: new and active; kept: active before; returned: refused before; replaced: by a revision."""
    value: float
    """Expected change of the mean score by it, drawn towards that of the other lessons."""
    sd: float
    """Standard deviation of what is known of `value`."""
    helps: float
    """Probability that it raises the mean score."""
    included: int
    """Dev rollouts so far whose prompt carried it."""
    left_out: int
    """Dev rollouts so far that a coin kept it out of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One comparison of two libraries on the dev split, as older journals hold it."""

    n: int
    """Place among the trials of its epoch, from 1."""
    operations: tuple[Operation, ...]
    """The operations that the tried library has over the active one."""
    before: str
    """Hash of the active library."""
    after: str
    """Hash of the library tried."""
    scenarios: int
    """Dev scenarios compared; those whose prompt is the same under both count as a difference of 0."""
    changed: int
    """Those whose prompt differs: only these run."""
    difference: float | None = None
    """Mean of after - before over the scenarios; None when it was not measured."""
    ci95: tuple[float, float] | None = None
    p: float | None = None
    """One-sided p of the rule: that it is better (``strict``), that it is worse by the margin (``safe``)."""
    p_adjusted: float | None = None
    """`p`, corrected for the parts that are tried after a rejection."""
    rollouts: int = 0
    """Rollouts made for it; those made before are compared again and not counted."""
    errors: int = 0
    """Of the rollouts compared, those that are errors: with them excluded and as 0, both, it must hold."""
    verdict: Literal["accepted", "rejected", "not_tested"] = "not_tested"
    reason: str = ""
    """Why, with figures, for a reader."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """The decision on whether an epoch's candidate became active."""

    rule: Literal["strict", "safe", "off"]
    margin: float
    """Drop that ``safe`` tolerates."""
    alpha: float
    """Doubt that ``strict`` leaves a lesson."""
    scenarios: int
    """Dev scenarios there are."""
    trials: tuple[Trial, ...] = ()
    """Only in older journals."""
    rejected: tuple[Operation, ...] = ()
    """Valid operations that were rejected, with their evidence."""
    note: str = ""
    """Why nothing was decided: too few dev scenarios, nothing proposed, ..."""
    lessons: tuple[LessonTrial, ...] = ()
    """Every lesson that coins decided on, so far known best first."""
    gain: float | None = None
    """What the accepted lessons bring the dev mean, measured on scenarios that did not choose them."""
    gain_sd: float | None = None
    unseen: int = 0
    """Dev scenarios with rollouts so far, of families that training does not see."""
    unseen_gain: float | None = None
    """What lessons that all other scenarios choose bring these alone."""
    unseen_sd: float | None = None
    hit_rate: float | None = None
    """Share of lessons that help where they are about the task, as learned so far."""
    rollouts: int = 0
    """Dev rollouts of the epoch."""
    errors: int = 0
    """Of them, those that are errors: with them left out and as 0, both, a lesson must hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """What one epoch did to the library."""

    epoch: int
    library: Library
    """The library after it."""
    applied: tuple[Operation, ...] = ()
    refused: tuple[Refusal, ...] = ()
    lesson_groups: int = 0
    """Groups that yielded a lesson."""
    informative_groups: int = 0
    note: str = ""
    """For instance that no group was informative."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Failures of the optimizer by reason code: calls, malformed answers, operations."""
    acceptance: Acceptance | None = None
    """What decided on it; None with ``acceptance=off`` or before the decision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeakedAnswer:
    """An active lesson that contains an answer of an eval scenario."""

    experience_id: str
    scenario_id: str
