"""Scenarios and prompt packs: what an actor is asked, frozen, validated at the edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.stamp import stamp
from pytest_tfgrpo.core.wire import SPARSE, Json

Split: TypeAlias = Literal["train", "dev", "eval"]
"""train scenarios teach, dev scenarios decide which lessons are kept, eval scenarios measure the result."""


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
class WorkspaceArchive:
    """The tar.gz of which each rollout's workspace is made."""

    archive: str
    """Path relative to the scenario file's folder, with forward slashes."""
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
    """Of one kind: intervals count families, and a hash split keeps one together."""
    source: str = ""
    """Source of the scenario: ``path:line``."""
    stamp: str = ""
    """Task stamp: sha256 of prompt, input, attachments, tools and checks, and of workspace, environment,
    rubric and truth where there are any (decision 8)."""
    checker: str | None = None
    """Node id of the marked test function that checks its rollouts; None for file scenarios."""
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
