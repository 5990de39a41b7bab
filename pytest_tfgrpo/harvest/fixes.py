"""Fixes: the records of a harvest, from a change in the history to a proven scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE
from pytest_tfgrpo.scoring.runners.edits.changed_tests import LineChange
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand


class HarvestStatus(StrEnum):
    """What became of a change (decision 43)."""

    VALIDATED = "validated"
    SKIPPED = "skipped"
    """It is no candidate."""
    VALIDATION_FAILED = "validation_failed"
    NEEDS_MANUAL = "needs_manual_scenario"
    REFUSED = "refused"
    """A secret was found in it."""


class RootCause(StrEnum):
    """Why a validation failed (decision 43)."""

    SNAPSHOT_INTEGRITY = "snapshot_integrity"
    SCENARIO_SYNTHESIS = "scenario_synthesis"
    TEST_FAILURE = "test_failure"
    ENVIRONMENT = "environment"


FileStatus: TypeAlias = Literal["added", "modified", "deleted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    """One file of a change; a rename is a deletion and an addition."""

    path: str
    status: FileStatus
    old_id: str
    """Object id before; "" if added."""
    new_id: str
    """Object id after; "" if deleted."""
    old_mode: str
    new_mode: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryChange:
    """One change of a history: a commit against its first parent."""

    commit: str
    base: str
    """The commit's first parent."""
    tree: str
    base_tree: str
    committed_at: int
    """Seconds since 1970, UTC."""
    message: str
    files: tuple[ChangedFile, ...] = ()
    is_merge: bool = False
    merged: tuple[str, ...] = ()
    """Messages of the commits that a merge brings, oldest first; only where it is a candidate."""
    missing: str = ""
    """What of it cannot be read, in a shallow, partial or damaged clone: then `files` is empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FixCandidate:
    """A change that touches tests and sources, and is worth validating."""

    id: str
    """Id of its scenario: the commit's first 12 characters behind a slug of its title."""
    change: HistoryChange
    tests: tuple[str, ...]
    """Changed files with tests, as they are called after the change."""
    protected: tuple[str, ...]
    """Changed paths that come from the fix in every check: tests, runner configuration and the like."""
    sources: tuple[str, ...]
    """The other changed files: what an agent has to find."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipePart:
    """How the tests of one folder run, each value with its source."""

    folder: str
    command: SuiteCommand
    python: str | None
    dependencies: tuple[str, ...]
    """Requirements as declared, in the packaging form."""
    setup: tuple[tuple[str, ...], ...] = ()
    imports: tuple[str, ...] = ()
    """Folders of the workspace from which modules are imported."""
    variables: Mapping[str, str] = field(default_factory=dict)
    tests: tuple[str, ...] = ()
    """Globs of files with tests."""
    protected: tuple[str, ...] = ()
    """Further globs of protected files."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Manifests that set-up needs, by path relative to the folder."""
    distributions: Mapping[str, str] = field(default_factory=dict)
    """The project's own packages, name to version."""
    entry_points: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)
    """The text of ``entry_points.txt`` of the project's own packages, by name."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each value comes from: ``tox.ini [testenv] deps``."""
    relaxed: bool = False
    """The second pass: without linters and date (decision 44)."""
    extras: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Further extras, groups and lists of requirements of the project that it has, beside those of its tests:
    for tests that lack something."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """The prompt of a scenario."""

    text: str
    source: str
    """``issue 12``, ``issue 12, failing tests``, ``commit message``, ``failing tests`` or ``model``."""
    cut: tuple[str, ...] = ()
    """Lines of the fix that were cut from it; not empty: the scenario is tagged ``leak``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationRun:
    """One run of a validation: which tree, and what came of its tests."""

    tree: Literal["base", "base_with_tests", "fix"]
    passed: int
    failed: int
    skipped: int
    hung: int
    elapsed_s: float
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofDoubts:
    """What speaks against a fix, though its own tests may prove it."""

    uses: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """What the code after the fix used that a check has to allow, and the code before it did not."""
    broken: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Tests that passed before the fix and fail after it."""
    lenient: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Tests of the fix that pass after it whatever value they expect."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FixValidation:
    """What nine runs of tests proved of a fix."""

    fail_to_pass: tuple[str, ...]
    """Failed three times on the base with the fix's protected paths, passed three times on the fix."""
    pass_to_pass: tuple[str, ...]
    """Passed before and after, in each run of its file."""
    wavering: tuple[str, ...] = ()
    """Passed and failed on the same tree: in neither list."""
    runs: tuple[ValidationRun, ...] = ()
    messages: Mapping[str, str] = field(default_factory=dict)
    """The first line of why each fail_to_pass failed on the base."""
    cause: RootCause | None = None
    """None: proven."""
    reason: str = ""
    elapsed_s: float = 0.0
    environment: str | None = None
    """Stamp of the environment."""
    isolation: Literal["bwrap", "none"] = "bwrap"
    relaxed: bool = False
    uses: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """What the code under test used that a check has to allow."""
    changes: tuple[LineChange, ...] | None = field(default=None, metadata=SPARSE)
    """What makes tests fail after the fix, as they expect something else; None: not tried."""
    doubts: ProofDoubts = field(default=ProofDoubts(), metadata=SPARSE)
    lacking: bool = field(default=False, metadata=SPARSE)
    """It is not proven, and tests of it were skipped or lacked a module: further packages may help."""

    def unchanged(self) -> tuple[str, ...]:
        """Return the tests of the fix that no change makes fail."""
        failing = {test for change in self.changes or () for test in change.fails}
        return tuple(test for test in self.fail_to_pass if self.changes is not None and test not in failing)


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestRow:
    """One line of ``harvest.jsonl``: what became of one change."""

    commit: str
    id: str
    status: HarvestStatus
    cause: RootCause | None = field(default=None, metadata=SPARSE)
    reason: str = ""
    committed_at: int = 0
    tests: int = 0
    """How many fail_to_pass tests."""
    broken: int = field(default=0, metadata=SPARSE)
    """How many tests passed before the fix and fail after it."""
    elapsed_s: float = 0.0
    tags: tuple[str, ...] = ()
