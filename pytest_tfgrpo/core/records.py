"""Records: what the parts of the harness hand to each other; frozen, keyword-only, validated at the edges.

Scores lie in [0, 1]. Times are seconds (`_s`) or milliseconds (`_ms`), money is US dollars (`_usd`);
``None`` means unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.core.stamp import stamp
from pytest_tfgrpo.core.text import phase_label
from pytest_tfgrpo.core.wire import SPARSE

Json: TypeAlias = Any
"""A value that JSON can hold."""

Split: TypeAlias = Literal["train", "dev", "eval"]
"""train scenarios teach, dev scenarios decide which lessons are kept, eval scenarios measure the result."""
Mode: TypeAlias = Literal["baseline", "train", "dev", "eval"]
Status: TypeAlias = Literal["ok", "failed", "error", "cancelled"]
"""How an attempt ended; cancelled: the run ended first, so that it is no result, and was paid for."""
RunStatus: TypeAlias = Literal["complete", "incomplete", "aborted", "cancelled"]
"""How a run or phase ended; cancelled: by an interrupt. All but complete can be resumed."""
Truth: TypeAlias = Literal["checks", "majority", "judge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One planned check of a scenario."""

    kind: str
    """Name in the table of check kinds."""
    weight: float = 1.0
    """Share in the scenario's score, > 0."""
    params: Mapping[str, Json] = field(default_factory=dict)
    """Parameters of the kind, as validated by its schema."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """One point of a scenario's rubric, which a judge decides with yes or no."""

    text: str
    weight: float = 1.0
    """Share in the judge's score, > 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file that is copied into the workspace of each rollout."""

    name: str
    """Path relative to the scenario file's folder, with forward slashes; also its place in the workspace."""
    path: Path
    """Where it is on disk."""
    sha256: str
    """Stamp of its bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A scenario as an actor sees it: without checks, split, minimum score and expected answers."""

    id: str
    domain: str
    prompt: str
    """The task in words; may be empty when `input` is given."""
    input: Json = None
    """The task as data, for agents that take data."""
    attachments: tuple[str, ...] = ()
    """Names of the files in the workspace."""
    tools: tuple[str, ...] | None = None
    """Names of the tools allowed; None allows every tool the actor has."""
    timeout_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One task with ground truth."""

    id: str
    domain: str
    split: Split
    prompt: str
    input: Json = None
    attachments: tuple[Attachment, ...] = ()
    tools: tuple[str, ...] | None = None
    checks: tuple[Check, ...] = ()
    """Empty only when a marked test function is the checker."""
    min_score: float | None = None
    tags: tuple[str, ...] = ()
    timeout_s: float | None = None
    family: str | None = None
    """Near-duplicates share a family, so that a hash split keeps them on one side."""
    source: str = ""
    """Source of the scenario: ``path:line``."""
    stamp: str = ""
    """Task stamp: sha256 of prompt, input, attachments, tools and checks (decision 8)."""
    checker: str | None = None
    """Node id of the marked test function that checks its rollouts; None for file scenarios."""
    rubric: tuple[Criterion, ...] = ()
    """Criteria of the judge; empty if no judge is used."""
    truth: Truth = "checks"
    """Where `gt_score` comes from: its checks or, without ground truth, the majority or the judge."""

    def task(self) -> Task:
        """Return the part of this scenario that an actor may see."""
        return Task(
            id=self.id,
            domain=self.domain,
            prompt=self.prompt,
            input=self.input,
            attachments=tuple(a.name for a in self.attachments),
            tools=self.tools,
            timeout_s=self.timeout_s,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptPack:
    """Stamped prompt sources for a domain."""

    id: str
    domain: str
    """Domain it serves; ``*`` serves every domain without a pack of its own."""
    stamp: str
    """sha256 of the canonical content: sources in section order, slots, policy (decision 13)."""
    system: str
    inject: tuple[str, ...] = ()
    """Further prompt sections, rendered after the system text."""
    experience_slots: int = 8
    """How many experiences a prompt carries at most."""
    retrieval: Literal["top", "relevant"] = "relevant"
    min_reward: float = 0.0
    """Experiences with a lower raw score are left out."""
    weights: tuple[float, float] = (0.7, 0.3)
    """Weights of gt_score and relative_rank in an experience's raw score."""
    version: str = ""
    """What its author calls this state of it; the stamp does not depend on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """The prompt of an actor: the rendered pack with its experiences, and the scenario's own text."""

    system: str
    user: str

    def __str__(self) -> str:
        return f"{self.system}\n\n{self.user}" if self.system else self.user

    @property
    def stamp(self) -> str:
        """Stamp of the prompt."""
        return stamp([self.system, self.user])


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one model call, as the server counted them."""

    prompt: int
    completion: int
    """Includes `reasoning`."""
    reasoning: int = 0
    """Hidden reasoning tokens, which are paid for like other completion tokens."""
    cached: int = 0
    """Part of `prompt` that the server had in its cache."""

    @property
    def total(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt + self.completion


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One model or tool call of a trajectory."""

    kind: Literal["model", "tool"]
    name: str
    """Tool or model name."""
    input: Json = None
    output: str = ""
    tokens: int = 0
    cost_usd: float | None = None
    latency_ms: float = 0.0
    error: str | None = None
    """What went wrong in this call, if anything did."""
    usage: Usage | None = None
    """Tokens by kind; None when unknown, and for tools."""
    finish: str = ""
    """Why a model stopped, in the words of the chat-completions protocol: stop, length, tool_calls, ..."""
    started_at: str | None = field(default=None, metadata=SPARSE)
    """When it began, ISO 8601 in UTC; None when unknown."""
    extra: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What the agent reported of this call besides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """The ordered steps of a rollout and its final answer; totals are sums over the frames."""

    answer: str
    frames: tuple[Frame, ...] = ()
    latency_ms: float | None = None
    """Duration of the attempt when it was recorded; None for a measured attempt."""
    extra: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What the agent reported beside its answer."""

    @property
    def tokens(self) -> int:
        """Tokens over all frames."""
        return sum(frame.tokens for frame in self.frames)

    @property
    def cost_usd(self) -> float | None:
        """Cost over all frames; None when there is no frame or one frame's cost is unknown."""
        costs = [frame.cost_usd for frame in self.frames]
        if not costs or None in costs:
            return None
        return float(sum(cost for cost in costs if cost is not None))


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a rollout has no usable answer."""

    code: str
    """Short reason code: timeout, crash, garbage, oversize, provider, check, ..."""
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """The result of one check."""

    kind: str
    weight: float
    credit: float
    """Share of the check that passed, in [0, 1]; 0 or 1 for all built-in kinds but `python`."""
    reason: str = ""
    """Why credit was withheld, for a reader; empty when the check passed."""

    @property
    def passed(self) -> bool:
        """True when the check gave full credit."""
        return self.credit >= 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeResult:
    """The judge's result for one rollout, over all its votes."""

    score: float | None
    """Mean of the valid votes, in [0, 1]; None if the judge reached no result."""
    votes: tuple[float, ...] = ()
    """Score of each valid vote, in [0, 1]."""
    asked: int = 1
    """Votes asked for."""
    agreement: float | None = None
    """Share of pairs of votes that agree, over all criteria; None with fewer than two valid votes."""
    reason: str = ""
    """The judge's reasons; if `score` is None, why there is no result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCall:
    """One call of a language model that is no part of a rollout: for learning, or by a judge."""

    key: str
    """Identity in its run, for example ``e1.learn.count-words.critique``; retries have their own."""
    purpose: str
    """``learn`` or ``judge``."""
    epoch: int
    subject: str
    """Scenario id, or empty."""
    model: str
    """Spec of the model: ``openai:<model>@<endpoint>``."""
    fingerprint: str
    """Stamp of model and request."""
    prompt: str
    """The messages, as text."""
    answer: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_ms: float = 0.0
    finish: str = ""
    error: str | None = None
    """Why there is no answer."""

    @property
    def tokens(self) -> int:
        """Tokens used; 0 when unknown."""
        return self.usage.total if self.usage is not None else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """What an agent did to one file of its workspace: wrote it, or with neither text nor hex removed it."""

    name: str
    """Path in the workspace, with forward slashes."""
    text: str | None = None
    hex: str | None = None
    """The bytes of a file that is not UTF-8."""
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """One attempt of an actor at a scenario."""

    rollout_id: str
    group_id: str
    run_id: str
    scenario_id: str
    epoch: int
    mode: Mode
    index: int
    """Place in its group: 0..G-1 (decision 7)."""
    seed: int
    temperature: float
    status: Status
    answer: str = ""
    frames: tuple[Frame, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    """One result per planned check; a check not reached has credit 0 (decision 9)."""
    failure: Failure | None = None
    tokens: int = 0
    cost_usd: float | None = None
    latency_ms: float = 0.0
    experiences: tuple[str, ...] = ()
    """Ids of the experiences that its prompt carried."""
    left_out: tuple[str, ...] = ()
    """Ids of those selected for its prompt but left out at random, to measure their effect."""
    opinion: JudgeResult | None = None
    """The judge's result; None without a judge."""
    prompt_stamp: str = ""
    """Stamp of its prompt."""
    files: tuple[FileChange, ...] | None = ()
    """What it did to its workspace, kept in a recorded run for checks that look there; None: too much."""
    started_at: str | None = field(default=None, metadata=SPARSE)
    """When its actor was asked, ISO 8601 in UTC."""
    extra: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What the agent reported beside its answer."""

    @property
    def trajectory_id(self) -> str:
        """Id of the one attempt that a rollout has today (decision 4)."""
        return f"{self.rollout_id}.a1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The rewarders' scores of one rollout; all null if the rollout is an error."""

    rollout_id: str
    gt_score: float | None
    """Weighted share of planned checks that passed (decision 9)."""
    reward: float | None
    """`gt_score`, or its weighted mean with the scores of additional weighted rewarders."""
    relative_rank: float | None
    """Rank of `reward` in its group, in [0, 1] (decision 10)."""
    advantage: float | None
    """(reward - group mean) / population std; 0 if all rewards are equal (decision 11)."""
    advantage_reason: str = ""
    """``zero_variance`` when the advantage is 0 because the group has no spread."""
    extra: Mapping[str, float | None] = field(default_factory=dict)
    """Scores of additional rewarders by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The G rollouts of one scenario in one epoch, scored."""

    group_id: str
    epoch: int
    mode: Mode
    scenario_id: str
    domain: str
    rollouts: tuple[Rollout, ...]
    scores: tuple[Score, ...]
    """In the order of `rollouts`."""
    informative: bool
    """True when the rewards have spread, so that the group can yield lessons (decision 12)."""

    @property
    def gt_mean(self) -> float | None:
        """Mean gt_score over rollouts that are not errors; None when all are."""
        known = [s.gt_score for s in self.scores if s.gt_score is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One pass of a run over a list of scenarios."""

    epoch: int
    """0 is the baseline sweep."""
    mode: Mode
    temperature: float
    rollouts: int
    """Rollouts per scenario (G)."""
    scenarios: tuple[str, ...]
    """Ids, in order."""
    dev: tuple[str, ...] = ()
    """Ids of the dev scenarios that decide on the lessons of a training epoch; may be empty."""
    lesson_dropout: float = 0.0
    """Probability that each selected experience is left out of a group's prompt (its propensity)."""
    dev_sweep: int = 0
    """Which sweep of the dev split in its epoch this is, from 1; 0 for all other phases."""

    @property
    def label(self) -> str:
        """Name in item ids and messages, as `core.text.phase_label` makes it."""
        return phase_label(self.epoch, self.mode, self.dev_sweep)

    @property
    def seed_phase(self) -> str:
        """Phase of the seed: sweeps share one, so that they pair (decision 8)."""
        return f"train:{self.epoch}" if self.mode == "train" else "sweep"


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseResult:
    """A phase with its groups, in the order of the phase's scenarios."""

    phase: Phase
    groups: tuple[Group, ...]
    status: RunStatus
    library_hash: str
    """Library that its prompts carried."""
    revision: Revision | None = None
    """None for sweeps and for phases that did not complete."""
    skipped_experiences: int = 0
    """Experiences left out at injection because their stamp is not the pack's (decision 13)."""
    excluded: tuple[str, ...] = ()
    """Ids of scenarios whose marked test function skipped them."""
    reason: str = ""
    calls: tuple[ModelCall, ...] = ()
    """Calls of models besides rollouts, in the order of the journal."""
    loose: tuple[Rollout, ...] = ()
    """Rollouts paid for that are in no group: cut short, refused by a budget, or of excluded scenarios."""
    dev: tuple[Group, ...] = ()
    """Groups of the dev split that decided on the revision, over all its sweeps, in order of id."""
    settled: tuple[str, ...] = ()
    """Ids of scenarios that did not run because the gate was already decided."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHeader:
    """What is known of a run before its first rollout: its plan, its result and its journal have it alike."""

    run_id: str
    task_id: str
    started_at: str
    settings: SettingValues
    stamps: Mapping[str, str]
    """Stamps of settings, packs, scenarios, actor and starting library."""
    versions: Mapping[str, str]
    scenarios: tuple[Scenario, ...]
    """The selected scenarios, in order of collection."""
    partial_selection: bool = False
    """True if scenarios were deselected: the result of baseline rules is `not_judged`."""
    identities: Mapping[str, Json] = field(default_factory=dict)
    """Name and identity of actor, optimizer and judge, by role."""
    preflight: Mapping[str, Json] = field(default_factory=dict)
    """What was found before the first rollout: `contamination`, `evaluations`."""
    warnings: tuple[str, ...] = ()


def header_fields(of: RunHeader) -> dict[str, Any]:
    """Return the fields of a header by name, from whatever has them."""
    return {f.name: getattr(of, f.name) for f in fields(RunHeader)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Run(RunHeader):
    """One invocation, whole: all that reports, metrics and the gate are derived from."""

    status: RunStatus
    finished_at: str
    phases: tuple[PhaseResult, ...]
    library_start: Library
    library: Library
    reason: str = ""
    """Why it is not complete."""
    packs: tuple[PromptPack, ...] = ()
    """Prompt packs of its scenarios; empty if an older journal lacks them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckerResult:
    """The result of a marked test function for one rollout."""

    outcome: Literal["score", "error", "skip"]
    """score: it set a score; error: it broke (status ``error``); skip: the scenario is excluded."""
    score: float = 0.0
    """In [0, 1]."""
    reason: str = ""
