"""A pattern: what one piece of finished work taught, as a Markdown file with front matter."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.lessons import Polarity
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE

FOLDER = PurePosixPath(".agent/patterns")
"""In the root of a repository; of its folders agents read ``active`` alone (decision 45)."""
TrialOutcome: TypeAlias = Literal["helps", "harms", "inconclusive"]


class PatternStatus(StrEnum):
    """The folder that a pattern lies in."""

    CANDIDATE = "candidates"
    ACTIVE = "active"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternEvidence:
    """What a pattern rests on."""

    job: str
    scenario: str
    """Id of the proven scenario."""
    scenario_stamp: str
    commit: str
    """Of the snapshot."""
    tarball_sha256: str
    diff_sha256: str
    repeats: int = 3
    """How often its tests failed before and passed after."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialResult:
    """What a trial measured of a pattern."""

    outcome: TrialOutcome
    gain: float | None
    """Difference of the mean scores, with the pattern less without; None without any scenario."""
    low: float | None
    high: float | None
    """The interval of the gain at 95 %, by families; None where there are too few for one."""
    scenarios: int
    families: int
    needed: int | None = None
    """Scenarios that would settle it, if means and spreads stay the same; None: it is settled, or none do."""
    why: str = ""
    """Why nothing is claimed; empty where something is, or more scenarios could show it."""
    cost_usd: float | None = None
    delivery: Literal["prompt", "skill"] = "prompt"
    suite: str = ""
    """Stamp of the scenarios."""
    tried_at: str = ""
    pattern_stamp: str = ""
    """Stamp of the pattern that was tried: one that was edited since was not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternBody:
    """The sections of a pattern, at most 500 words together, and its excerpt."""

    problem: str
    solution: str
    rationale: str
    when_not: str
    files: tuple[str, ...] = ()
    """Paths that the excerpt comes from."""
    excerpt: str = ""
    """Lines of the change, at most 40."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A pattern as its file has it; `status` is its folder and is not trusted from the file."""

    id: str
    """Immutable: ``p-`` and 12 hexadecimals of the job and the name."""
    name: str
    """Name of the file: lower-case letters, digits and single hyphens, at most 64."""
    title: str
    domain: str
    lesson: str
    """At most 32 words: what goes into prompts."""
    description: str
    """What it is and when to use it, at most 1,024 characters: what a skill shows."""
    body: PatternBody
    polarity: Polarity = "do"
    tags: tuple[str, ...] = ()
    status: PatternStatus = PatternStatus.CANDIDATE
    evidence: PatternEvidence | None = None
    """None: a person wrote it; it cannot be promoted."""
    trial: TrialResult | None = field(default=None, metadata=SPARSE)
    parents: tuple[str, ...] = ()
    """Ids of patterns that it takes the place of."""
    reintroduced: str = field(default="", metadata=SPARSE)
    """Id of a deprecated pattern that it is much like."""
    stamp: str = ""
    """sha256 of all that a reader gets; what it was when it was last screened."""
