"""Scenarios and prompt packs: the tasks of an actor, frozen, validated at the edges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import SPARSE, Json

Split: TypeAlias = Literal["train", "dev", "eval"]
"""train scenarios teach, dev scenarios decide which lessons are kept, eval scenarios measure the result."""


Truth: TypeAlias = Literal["checks", "majority", "judge"]
NAME_MAX = 40
"""Characters of a criterion's text that may name it."""
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One planned check of a scenario."""

    kind: str
    """Name in the table of check kinds."""
    weight: float = 1.0
    """Share in the scenario's score, > 0."""
    params: Mapping[str, Json] = field(default_factory=dict)
    """Parameters of the kind, as validated by its schema."""
    negated: bool = field(default=False, metadata=SPARSE)
    """True where the scenario says ``not: true``: it passes what the kind fails."""
    turn: int | None = field(default=None, metadata=SPARSE)
    """The turn of a conversation, from 1, after which it looks: at its answer and steps; None: at the end."""

    @property
    def title(self) -> str:
        """Its kind as results name it, for example ``not contains``."""
        return f"not {self.kind}" if self.negated else self.kind

    @property
    def content(self) -> list[Json]:
        """What makes it this check, for stamps: weight, kind and parameters."""
        found: list[Json] = [self.kind, self.weight, self.params, *(["not"] if self.negated else [])]
        return found if self.turn is None else [*found, self.turn]


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """One point of a scenario's rubric, which a judge decides with yes or no."""

    text: str
    weight: float = 1.0
    """Share in the judge's score, > 0."""
    name: str | None = field(default=None, metadata=SPARSE)
    """Names its metric ``judge.NAME``; None: its text does."""


def criterion_names(rubric: Sequence[Criterion]) -> tuple[str, ...]:
    """Return the name of each criterion, all different: its own, else what its text comes to."""
    taken = {criterion.name for criterion in rubric}
    names = []
    for criterion in rubric:
        name = criterion.name
        if name is None:
            first, n = _worded(criterion.text), 1
            name = first
            while name in taken:
                n += 1
                name = f"{first}-{n}"
            taken.add(name)
        names.append(name)
    return tuple(names)


def _worded(text: str) -> str:
    """Return a text as a name: its words, with its hash where they are not all of it."""
    folded = text.casefold()
    words = "-".join(_WORD.findall(folded))
    if folded.isascii() and 0 < len(words) <= NAME_MAX:
        return words
    return f"{words[:NAME_MAX].rstrip('-') or 'criterion'}-{stamp(text)[:6]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedUser:
    """Whom a language model plays in a conversation; no agent ever sees it."""

    goal: str
    """What it wants of the agent."""
    persona: str = ""
    """Who it is, and how it talks."""
    knows: str = ""
    """What it knows and can answer."""
    stop: str = ""
    """When it ends the conversation; by default once the goal is reached, or cannot be."""
    max_turns: int = 10
    """Messages that it says at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file that is copied into the workspace of each rollout."""

    name: str
    """Path relative to the scenario file's folder, with forward slashes; also its place in the workspace."""
    path: Path
    """Where it is on disk."""
    sha256: str
    """Stamp of its bytes."""
    overlay: bool = field(default=False, metadata=SPARSE)
    """True for help that lies beside the task: it is taken out again before anything is graded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceArchive:
    """The tar.gz of which each rollout's workspace is made."""

    archive: str
    """Path relative to the scenario file's folder, with forward slashes."""
    path: Path
    """Where it is on disk."""
    sha256: str
    """Stamp of its bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorldStep:
    """What sets up the world of each rollout, or tears it down: a Python callable or a command."""

    target: str = ""
    """The callable, as module:callable; empty where it is a command."""
    command: tuple[str, ...] = ()
    """The words of the command, as written."""
    timeout_s: float = 60.0
    files: tuple[Attachment, ...] = ()
    """The words that name files beside the scenario file, which the command runs with."""
    sha256: str = field(default="", metadata=SPARSE)
    """Of the code of the callable; empty where that is installed, and not of the project."""

    @property
    def argv(self) -> list[str]:
        """The command line, with the files beside the scenario file by their paths."""
        paths = {file.name: str(file.path) for file in self.files}
        return [paths.get(word, word) for word in self.command]

    @property
    def content(self) -> dict[str, Json]:
        """What makes it this step, for stamps: the callable, or the command and its files."""
        if self.target:
            return {"python": self.target} | ({"sha256": self.sha256} if self.sha256 else {})
        return {"command": list(self.command), "files": [[file.name, file.sha256] for file in self.files]}

    @property
    def written(self) -> dict[str, Json]:
        """The step as a scenario file has it."""
        what: dict[str, Json] = {"python": self.target} if self.target else {"command": list(self.command)}
        return {**what, "timeout_s": self.timeout_s}


MockKind: TypeAlias = Literal["returns", "raises", "sequence", "python", "recorded", "real"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MockCase:
    """What a tool answers to some calls, in place of the tool."""

    kind: MockKind
    value: Json = None
    """What it returns or raises; the results in a row; a callable as module:callable; the recorded calls;
    nothing where the real tool answers."""
    when: Mapping[str, Json] | None = field(default=None, metadata=SPARSE)
    """What the arguments of a call have at least; None: any call."""
    file: str = field(default="", metadata=SPARSE)
    """The recording, as written."""
    sha256: str = field(default="", metadata=SPARSE)
    """Of the file with a callable; empty where that is installed, and not of the project."""

    @property
    def content(self) -> list[Json]:
        """What makes it this case, for stamps."""
        return [self.kind, self.value, self.when, *([self.sha256] if self.sha256 else [])]

    @property
    def written(self) -> dict[str, Json]:
        """The case as a scenario file has it."""
        value = self.file if self.kind == "recorded" else True if self.kind == "real" else self.value
        return ({} if self.when is None else {"when": self.when}) | {self.kind: value}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolMock:
    """What stands in for a tool in the rollouts of a scenario."""

    tool: str
    """Its name; ``*`` stands for all that have no mock of their own."""
    cases: tuple[MockCase, ...]
    """The first that fits a call answers it."""

    @property
    def content(self) -> list[Json]:
        """What makes it this mock, for stamps."""
        return [self.tool, [case.content for case in self.cases]]


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
    """Of one kind: intervals count families, and a hash split keeps one together."""
    source: str = ""
    """Source of the scenario: ``path:line``."""
    stamp: str = ""
    """Task stamp: sha256 of prompt, input, attachments, tools and checks, and of workspace, environment,
    turns, user, setup, teardown, mocks, rubric, truth and checker where there are any (decision 8)."""
    checker: str | None = None
    """Node id of the marked test function that checks its rollouts; None for file scenarios."""
    checker_sha256: str = field(default="", metadata=SPARSE)
    """Of the source of that function without its decorators; empty where there is none to be read."""
    rubric: tuple[Criterion, ...] = ()
    """Criteria of the judge; empty if no judge is used."""
    hashed: bool | None = field(default=None, metadata=SPARSE, compare=False)
    """True where its file names no split, so that a hash of its family chose it."""
    truth: Truth = "checks"
    """Where `gt_score` comes from: its checks or, without ground truth, the majority or the judge."""
    workspace: WorkspaceArchive | None = field(default=None, metadata=SPARSE)
    """What the workspace of each rollout holds before its attachments; None: nothing."""
    environment: str | None = field(default=None, metadata=SPARSE)
    """Stamp of the environment that programs in the workspace run with; None: there is none of its own."""
    agents: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Names of those of a list of agents that try it; all where there is none, or a single actor."""
    fixtures: tuple[str, ...] | None = field(default=None, metadata=SPARSE)
    """Fixtures of its test function that are set up before its agent is asked, for each rollout anew and one
    rollout at a time; the first makes the agent, or is empty. None: its fixtures are set up to check."""
    setup: WorldStep | None = field(default=None, metadata=SPARSE)
    """What runs in the workspace of each rollout before its agent."""
    teardown: WorldStep | None = field(default=None, metadata=SPARSE)
    """What runs there after the checks, whatever became of the agent."""
    turns: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """What the user says in a conversation, in order; the first is `prompt`. Empty: one question."""
    user: SimulatedUser | None = field(default=None, metadata=SPARSE)
    """Who goes on after the first of `turns` where a model plays the user; None: the turns are all."""
    mocks: tuple[ToolMock, ...] = field(default=(), metadata=SPARSE)
    """What stands in for its tools; empty: they are real."""
    overlay: tuple[Attachment, ...] = field(default=(), metadata=SPARSE)
    """Files that its agents find in the workspace and that are never graded, such as a skill on trial."""
    recorded_stamp: str | None = field(default=None, metadata=SPARSE)
    """Its stamp when the recording was made that answers, where its checks have changed since."""

    @property
    def seen(self) -> dict[str, Json]:
        """What an agent meets of it, for stamps: all of the task but checks, rubric, truth and teardown."""
        content: dict[str, Json] = {
            "prompt": self.prompt,
            "input": self.input,
            "attachments": [[attachment.name, attachment.sha256] for attachment in self.attachments],
            "tools": None if self.tools is None else list(self.tools),
        }
        if self.workspace is not None:
            content["workspace"] = self.workspace.sha256
        if self.environment is not None:
            content["environment"] = self.environment
        if self.setup is not None:
            content["setup"] = self.setup.content
        if self.mocks:
            content["mocks"] = [mock.content for mock in self.mocks]
        if self.turns:
            content["turns"] = list(self.turns)
        if self.user is not None:
            content["user"] = asdict(self.user)
        return content

    @property
    def seed_stamp(self) -> str:
        """The stamp that the seeds of its rollouts come from: in a replay that of the recorded run."""
        return self.recorded_stamp or self.stamp

    @property
    def steps(self) -> dict[str, WorldStep]:
        """What sets up and tears down its world, by name; empty where nothing does."""
        both = {"setup": self.setup, "teardown": self.teardown}
        return {name: step for name, step in both.items() if step is not None}

    @property
    def wording(self) -> str:
        """The whole task in words, for what looks for lessons and likeness: its prompt, or all turns."""
        return "\n\n".join(self.turns) if self.turns else self.prompt

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


def given_families(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Return the families of the scenarios that have one, by id; a family is one of its domain."""
    return {s.id: f"{s.domain} {s.family}" for s in scenarios if s.family}


def task_key(scenario: Scenario) -> str:
    """Return the stamp of the question: prompt, input and files; equal tasks must share a split."""
    files: list[Json] = [[attachment.name, attachment.sha256] for attachment in scenario.attachments]
    if scenario.workspace is not None:
        files.append(["", scenario.workspace.sha256])
    if scenario.setup is not None:
        files.append(scenario.setup.content)
    return stamp([scenario.wording, scenario.input, files])


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
    place: Literal["system", "user"] = "system"
    """Where its texts and experiences stand: in the system text, or in front of the task."""
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


def stamped(scenario: Scenario) -> Scenario:
    """Return a scenario with the stamp of its task, whatever stamp it had."""
    return replace(scenario, stamp=task_stamp(scenario))


def task_stamp(scenario: Scenario) -> str:
    """Return the stamp of a task and its checks (decision 8).

    What came later counts only where there is some, so that scenarios without it keep their stamps.
    """
    content = scenario.seen | {"checks": [check.content for check in scenario.checks]}
    if scenario.rubric:
        content["rubric"] = [[criterion.text, criterion.weight] for criterion in scenario.rubric]
    if scenario.truth != "checks":
        content["truth"] = scenario.truth
    if scenario.teardown is not None:
        content["teardown"] = scenario.teardown.content
    if scenario.checker_sha256:
        content["checker"] = scenario.checker_sha256
    return stamp(content)
