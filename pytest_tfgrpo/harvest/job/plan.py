"""What a harvest has to do, what it does it with, and what it says while it does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.environment.builder import MadeEnvironment
from pytest_tfgrpo.harvest.fixes import FixCandidate, FixValidation, HarvestRow, RecipePart, Statement
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.harvest.proof.validation import RunTests, ValidationPlan
from pytest_tfgrpo.harvest.proof.work_tree import WorkTree
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.scoring.runners.protocol import Isolation, SuiteRequest, SuiteRun


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestPlan:
    """Which changes become scenarios of which suite, and how."""

    repository: Path
    commits: str
    """A range of commits: ``A..B``."""
    suite: Path
    domain: str
    each_commit: bool = False
    """Every commit is a change, also those of merged branches."""
    paths: tuple[str, ...] = ()
    """Files and folders of which a change must touch one; empty: any."""
    limit: int | None = None
    exclude: tuple[str, ...] = ()
    """Globs of files that are in no tree."""
    tests: tuple[str, ...] = ()
    """Globs of files with tests, from a reviewed recipe."""
    protected: tuple[str, ...] = ()
    retry: bool = False
    """Do again what failed or needs a person."""
    jobs: int = 1
    isolation: Isolation = "bwrap"
    budget_s: float | None = None
    """Seconds after which it stops, so that another harvest goes on; None: when all is done."""
    origin: FixOrigin = FixOrigin()


class FindRecipes(Protocol):
    """Finds how tests run; the first part is as declared, later ones are further tries (decision 44)."""

    def __call__(
        self, read: Callable[[str], bytes | None], names: tuple[str, ...], candidate: FixCandidate, /
    ) -> tuple[RecipePart, ...]:
        """Return the parts to try; `read` returns a file after the fix, `names` are all of them."""
        ...


class FindStatement(Protocol):
    """Finds the prompt of a scenario."""

    def __call__(self, candidate: FixCandidate, trees: FixTrees, validation: FixValidation, /) -> Statement:
        """Return the prompt; raises TfgrpoError where a model that is to write it fails."""
        ...


class JudgeProof(Protocol):
    """Says of a validation whether it proves enough."""

    def __call__(
        self, trees: FixTrees, plan: ValidationPlan, found: FixValidation, work: WorkTree, run: RunTests, /
    ) -> FixValidation:
        """Return what was found, or why it is no proof; may run more in the same folder."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestTools:
    """What a harvest works with; tests hand in others."""

    recipes: FindRecipes
    environment: Callable[[RecipePart, int], MadeEnvironment]
    """Builds the environment of a recipe as of a date, in seconds since 1970; raises BuildProblem."""
    run: Callable[[SuiteRequest], SuiteRun]
    statement: FindStatement
    secrets: Callable[[Mapping[str, ArchiveEntry], Mapping[str, ArchiveEntry]], tuple[str, ...]]
    """Names the secrets, by kind and place, in what the second tree adds to the first."""
    secrets_in_text: Callable[[str], tuple[str, ...]]
    judge: JudgeProof | None = None
    """None: what is proven counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestStep:
    """What became of one change, and how far the harvest is."""

    row: HarvestRow
    done: int
    """Changes that are done, with this one."""
    total: int
    left_s: float | None = None
    """About how many seconds the rest takes; None: unknown, or nothing is left."""
    notes: tuple[str, ...] = ()
    """What a person should know of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestedFix:
    """What a worker found of a candidate."""

    row: HarvestRow
    notes: tuple[str, ...] = field(default=())
