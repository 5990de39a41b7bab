"""Records: what the parts of the harness hand to each other; frozen, keyword-only, validated at the edges.

Scores lie in [0, 1]. Times are seconds (`_s`) or milliseconds (`_ms`), money is US dollars (`_usd`);
``None`` means unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.named_scores import NamedScore
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.texts.named_values import nearest, phase_label
from pytest_tfgrpo.core.wire.wire import AMOUNTS, FINITE, SHARES, SPARSE, Json

Mode: TypeAlias = Literal["early", "baseline", "placebo", "evidence", "train", "dev", "eval"]
TRAINING: frozenset[Mode] = frozenset({"evidence", "train"})
"""Modes of phases whose groups give lessons; in ``evidence`` no agent runs, as attempts exist already."""
Status: TypeAlias = Literal["ok", "failed", "error", "cancelled"]
"""How an attempt ended; cancelled: the run ended first, so that it is no result, and was paid for."""
RunStatus: TypeAlias = Literal["complete", "incomplete", "aborted", "cancelled"]
"""How a run or phase ended; cancelled: by an interrupt. All but complete can be resumed."""


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
    """One model or tool call of a trajectory; in a conversation also one message of the user."""

    kind: Literal["model", "tool", "user"]
    name: str
    """Tool or model name; of the user ``script``, or the model that plays it."""
    input: Json = None
    """Of the user the agent's answer that it replies to; None at first."""
    output: str = ""
    """Of the user what it says."""
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
    sampled: Sampled | None = field(default=None, metadata=SPARSE)
    """Log-probabilities of a model's tokens; None unless they were requested."""
    thoughts: str = field(default="", metadata=SPARSE)
    """What a model thought before its output, which nothing scores."""
    inside: int = field(default=0, metadata=SPARSE)
    """How many frames before it the tool call is in which it was made; 0: in none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """The ordered steps of a rollout and its final answer; totals are sums over the frames."""

    answer: str
    frames: tuple[Frame, ...] = ()
    latency_ms: float | None = field(default=None, metadata=AMOUNTS)
    """Duration of the attempt when it was recorded; None for a measured attempt."""
    extra: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What the agent reported beside its answer."""
    decoy: str | None = field(default=None, metadata=SPARSE)
    """Of a recorded attempt, as in `Rollout`."""

    @property
    def tokens(self) -> int:
        """Tokens over all frames."""
        return sum(frame.tokens for frame in self.frames)

    @property
    def cost_usd(self) -> float | None:
        """Cost over all frames; None when no frame has one, or that of a model call is unknown.

        A tool without a cost costs nothing.
        """
        costs = [f.cost_usd for f in self.frames if f.kind == "model" or f.cost_usd is not None]
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
    weight: float = field(metadata=AMOUNTS)
    credit: float = field(metadata=SHARES)
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

    score: float | None = field(metadata=SHARES)
    """Mean of the valid votes, in [0, 1]; None if the judge reached no result."""
    votes: tuple[float, ...] = field(default=(), metadata=SHARES)
    """Score of each valid vote, in [0, 1]."""
    asked: int = 1
    """Votes requested."""
    agreement: float | None = field(default=None, metadata=SHARES)
    """Share of pairs of votes that agree, over all criteria; None with fewer than two valid votes."""
    reason: str = ""
    """The judge's reasons; if `score` is None, why there is no result."""
    criteria: Mapping[str, float] = field(default_factory=dict, metadata={**SPARSE, **SHARES})
    """Share of the valid votes that call each criterion met, by its name; empty in older journals."""


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
    cost_usd: float | None = field(default=None, metadata=AMOUNTS)
    latency_ms: float = field(default=0.0, metadata=AMOUNTS)
    finish: str = ""
    error: str | None = None
    """Why there is no answer."""
    started_at: str | None = field(default=None, metadata=SPARSE)
    """When it began, ISO 8601 in UTC; None in older journals."""

    @property
    def tokens(self) -> int:
        """Tokens used; 0 when unknown."""
        return self.usage.total if self.usage is not None else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """What an agent did to one file of its workspace: wrote, linked or, with none of these, removed it."""

    name: str
    """Path in the workspace, with forward slashes."""
    text: str | None = None
    hex: str | None = None
    """The bytes of a file that is not UTF-8."""
    executable: bool = False
    link: str | None = field(default=None, metadata=SPARSE)
    """Where it leads, if it is a symbolic link."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A picture that an answer names."""

    name: str
    """Path in the workspace, with forward slashes."""
    type: str = ""
    data: str = ""
    """In base64; empty where it is not kept."""
    why: str = ""
    """Why not."""


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
    tokens: int = field(default=0, metadata=AMOUNTS)
    cost_usd: float | None = field(default=None, metadata=AMOUNTS)
    latency_ms: float = field(default=0.0, metadata=AMOUNTS)
    experiences: tuple[str, ...] = ()
    """Ids of the experiences that its prompt carried."""
    left_out: tuple[str, ...] = ()
    """Ids of those that fit its prompt but were left out at random, to measure their effect."""
    opinion: JudgeResult | None = None
    """The judge's result; None without a judge."""
    prompt_stamp: str = ""
    """Stamp of its prompt."""
    files: tuple[FileChange, ...] | None = ()
    """What it did to its workspace, kept in a recorded run for checks that look there; None: too much."""
    files_kept: bool = field(default=False, metadata=SPARSE)
    """True where `files` is all that it did: its run was recorded, and its checks may look there."""
    started_at: str | None = field(default=None, metadata=SPARSE)
    """When its actor was called, ISO 8601 in UTC."""
    extra: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What the agent reported beside its answer."""
    decoy: str | None = field(default=None, metadata=SPARSE)
    """Where it repeated its run's decoy: ``answer``, or the name of a file; None: nowhere."""
    tossed: tuple[str, ...] | None = field(default=None, metadata=SPARSE)
    """Of `experiences`, those that a coin could have left out; None in sweeps, and in older journals."""
    scores: tuple[NamedScore, ...] = field(default=(), metadata=SPARSE)
    """What its marked test function scored by name."""
    pictures: tuple[Picture, ...] = field(default=(), metadata=SPARSE)
    """Those of its workspace that its answer names."""

    if not TYPE_CHECKING:  # a type checker still finds what there is not

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with the nearest name."""
            hint = "" if name.startswith("_") else nearest(name, self.__slots__)
            raise AttributeError(f"'Rollout' object has no attribute {name!r}{hint}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The rewarders' scores of one rollout; all null if the rollout is an error."""

    rollout_id: str
    gt_score: float | None = field(metadata=SHARES)
    """Weighted share of planned checks that passed (decision 9)."""
    reward: float | None = field(metadata=SHARES)
    """`gt_score`, or its weighted mean with the scores of additional weighted rewarders."""
    relative_rank: float | None = field(metadata=SHARES)
    """Rank of `reward` in its group, in [0, 1] (decision 10)."""
    advantage: float | None = field(metadata=FINITE)
    """(reward - group mean) / population std; 0 if all rewards are equal (decision 11)."""
    advantage_reason: str = ""
    """``zero_variance`` when the advantage is 0 because the group has no spread."""
    extra: Mapping[str, float | None] = field(default_factory=dict)
    """Scores of additional rewarders by name; ``style.warmth`` is the part `warmth` of `style`."""
    evidence: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)
    """Why these are what they are, in the rewarder's words, by the same names; without secrets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The G rollouts of one scenario in one epoch, scored."""

    group_id: str
    epoch: int
    mode: Mode
    scenario_id: str
    domain: str
    rollouts: Sequence[Rollout]
    """A tuple; in a long run they lie in a file, and are read when somebody looks at them."""
    scores: tuple[Score, ...]
    """In the order of `rollouts`."""
    informative: bool
    """True when the rewards have spread, so that the group can yield lessons (decision 12)."""
    shared: bool = field(default=False, metadata=SPARSE)
    """True in a final sweep whose library left the prompt as it is: it counts for the baseline sweep too."""
    as_placebo: bool = field(default=False, metadata=SPARSE)
    """True in a final sweep whose prompt has no lessons, or no others could be had: the placebo shares it."""

    @property
    def errors(self) -> int:
        """How many rollouts nothing scored; attempts made elsewhere have a reward, if no gt_score."""
        return sum(score.reward is None for score in self.scores)

    @property
    def gt_mean(self) -> float | None:
        """Mean gt_score over rollouts that are not errors; None when all are."""
        known = [s.gt_score for s in self.scores if s.gt_score is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One pass of a run over a list of scenarios."""

    epoch: int
    """0 is the baseline sweep, -1 the part of it that runs before training, -2 the placebo sweep."""
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
    concurrent: bool = field(default=False, metadata=SPARSE)
    """True for a baseline or placebo sweep that runs pair by pair with the final one, which comes after."""
    sizes: Mapping[str, int] = field(default_factory=dict, metadata=SPARSE)
    """Rollouts of each scenario, by id, where attempts exist already; empty: `rollouts` each."""

    @property
    def trains(self) -> bool:
        """Whether lessons are learned from its groups."""
        return self.mode in TRAINING

    @property
    def asks(self) -> bool:
        """Whether the actor runs; else its rollouts exist already."""
        return self.mode != "evidence"

    def rollouts_of(self, scenario_id: str) -> int:
        """Return how many rollouts one of its scenarios has."""
        return self.sizes[scenario_id] if self.sizes else self.rollouts

    @property
    def planned(self) -> int:
        """How many rollouts it has in all."""
        return sum(self.sizes.values()) if self.sizes else self.rollouts * len(self.scenarios)

    @property
    def is_control(self) -> bool:
        """Whether it is the baseline sweep, or the part of it that runs before training."""
        return self.mode in ("early", "baseline")

    @property
    def sweeps(self) -> bool:
        """Whether it runs the eval split."""
        return self.is_control or self.mode in ("placebo", "eval")

    @property
    def label(self) -> str:
        """Name in item ids and messages, as `core.texts.named_values.phase_label` makes it."""
        return phase_label(self.epoch, self.mode, self.dev_sweep)

    @property
    def seed_phase(self) -> str:
        """Phase of the seed: sweeps share one, so that they pair (decision 8)."""
        return f"train:{self.epoch}" if self.mode == "train" else "sweep"


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseResult:
    """A phase with its groups, in the order of the phase's scenarios."""

    phase: Phase
    groups: Sequence[Group]
    """A tuple; in a long run they lie in a file, and each access reads one again."""
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
    shared: tuple[Group, ...] = field(default=(), metadata=SPARSE)
    """Groups of the final sweep that count here too, by score but not by cost: their prompts are the same."""

    @property
    def with_dev(self) -> Iterator[Group]:
        """Groups, then those of the dev split, each read when it is its turn."""
        return chain(self.groups, self.dev)

    @property
    def counted(self) -> Sequence[Group]:
        """Groups whose scores count here, in the order of the phase's scenarios."""
        if not self.shared:
            return self.groups
        by_id = {group.scenario_id: group for group in (*self.groups, *self.shared)}
        return tuple(by_id[id_] for id_ in self.phase.scenarios if id_ in by_id)


def with_shared(results: Iterable[PhaseResult]) -> tuple[PhaseResult, ...]:
    """Return results in order of epoch; sweeps beside the final one get its groups that serve them too."""
    known = sorted(results, key=lambda result: result.phase.epoch)
    final = [g for r in known if r.phase.mode == "eval" for g in r.groups if g.shared or g.as_placebo]
    return tuple(
        replace(r, shared=own)
        if r.phase.concurrent and (own := tuple(g for g in final if serves(g, r.phase.mode)))
        else r
        for r in known
    )


def serves(group: Group, mode: Mode) -> bool:
    """Return whether a group of the final sweep counts in the sweep of `mode` beside it too."""
    return group.as_placebo if mode == "placebo" else group.shared


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHeader:
    """What is known of a run before its first rollout: its plan, its result and its journal have it alike."""

    run_id: str
    task_id: str
    started_at: str
    settings: Mapping[str, Json]
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
class Reference:
    """The old version that the baseline sweep of a run uses, for the gate to compare the final sweep with."""

    name: str
    """Path of its file or folder, as the setting has it."""
    kind: Literal["library", "packs", "placebo"]
    """What of it is old, the rest is that of the run; placebo: its lessons stand in the wrong places."""
    stamp: str
    """Of the library's lessons, or of the packs."""
    library: Library
    packs: tuple[PromptPack, ...]

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        named = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        return f"{named} ({self.stamp[:12]})"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointUse:
    """What a run found out about an endpoint of language models whose concurrency adapts."""

    endpoint: str
    concurrency: int
    """Calls in flight that it was allowed at the end."""
    lowest: int
    highest: int
    """Both of the time since it showed a limit."""
    found: bool
    """Whether it showed one: refused a call as one too many, or became slower for nothing."""
    calls: int
    refused: int
    """Calls refused with 429, 503 or 529, all made again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceUse:
    """Where the price of a model's tokens is from."""

    model: str
    table: str
    """Name of the table and its date or version."""


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
    reference: Reference | None = None
    """What its baseline sweep used in place of what it started with; None in most runs."""
    endpoints: tuple[EndpointUse, ...] = field(default=(), metadata=SPARSE)
    """Endpoints whose concurrency adapted, as they were at the end."""
    prices: tuple[PriceUse, ...] = field(default=(), metadata=SPARSE)
    """What the costs of its models were counted by."""

    @property
    def is_plain(self) -> bool:
        """Whether it only swept the eval split, as it does without ``--tfgrpo``."""
        phases = [result.phase for result in self.phases]
        return bool(phases) and all(p.sweeps and p.epoch <= 1 for p in phases)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckerResult:
    """The result of a marked test function for one rollout."""

    outcome: Literal["score", "error", "skip"]
    """score: it set a score; error: it broke (status ``error``); skip: the scenario is excluded."""
    score: float = 0.0
    """In [0, 1]."""
    reason: str = ""
    scores: tuple[NamedScore, ...] = field(default=(), metadata=SPARSE)
    """What it scored by name, whatever its outcome is."""
