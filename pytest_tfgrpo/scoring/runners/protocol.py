"""A run of a project's tests: what a runner has to do, and what came of each test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment

Isolation: TypeAlias = Literal["bwrap", "none"]


USES = ("ctypes", "native", "tracing")
"""What code under test may be allowed to use that could change its tests: functions of libraries, modules in
machine code of its own, and functions that trace or profile."""


class CaseOutcome(StrEnum):
    """What came of one test."""

    PASSED = "passed"
    FAILED = "failed"
    """Its call, its setup or its teardown failed, or its file could not be collected."""
    SKIPPED = "skipped"
    """Skipped, or expected to fail."""
    HUNG = "hung"
    """It took longer than it may, and was ended; the tests after it were run."""


class RunProblem(StrEnum):
    """Why a run gave no results that can be used."""

    NO_RUNNER = "no_runner"
    """The environment lacks the runner, or it cannot be started."""
    NO_REPORT = "no_report"
    """It ended without its report, or before all tests were reported."""
    NOTHING_COLLECTED = "nothing_collected"
    TIMEOUT = "timeout"
    """The whole run exceeded its time."""
    TAMPERED = "tampered"
    """A canary did not end as it must, or the report is not from the reporter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteCommand:
    """How the tests of a folder run: what a recipe and a check of kind ``tests`` say of it."""

    runner: str
    """Name in the table of runners: pytest, node-test, vitest, jest, command."""
    folder: str = "."
    """Where it starts: a folder of the workspace, with forward slashes."""
    run: tuple[str, ...] = ()
    """Arguments of the runner ``command``, with ``{report}`` for the JUnit XML that it writes and ``{tests}``
    for the files to run; of ``node-test`` flags of node; empty for the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteRequest:
    """One run of tests."""

    tree: Path
    """A folder of its own with the project's files; the run may write to it."""
    command: SuiteCommand
    files: tuple[str, ...] = ()
    """The files with the tests to run, relative to `tree`; empty: all that the runner finds."""
    protected: tuple[str, ...] = ()
    """Files of the tree that no agent wrote."""
    allow: tuple[str, ...] = ()
    """What of `USES` counts as no tampering."""
    timeout_s: float
    """Seconds for the whole run."""
    hang_s: float | None = None
    """Seconds after which one test counts as hung and is ended, the others still run; None: no limit."""
    environment: BuiltEnvironment | None = None
    """None: this interpreter's, with its packages."""
    isolation: Isolation = "bwrap"
    compiled: dict[str, str] | None = None
    """What earlier runs compiled of files of tests, where these lay in the same folder and had the same
    environment; a run adds its own. None: each run compiles all."""
    canary: bool = True
    """Run, beside the tests, one of a random name that must pass and one that must fail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteRun:
    """What came of a run of tests."""

    outcomes: Mapping[str, CaseOutcome]
    """By test id, relative to the tree: ``tests/test_a.py::test_x[1]``; a test's file, then its names."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each test."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """The first line of why each failing test failed, at most 500 characters."""
    problem: RunProblem | None = None
    detail: str = ""
    """The end of what the run printed, or why there is a problem, for a reader."""
    elapsed_s: float = 0.0
    uses: tuple[str, ...] = ()
    """What of `USES` the code under test used."""


class Runner(Protocol):
    """A way to run tests; raises CheckError only where what it needs of ours is broken (no bubblewrap)."""

    def __call__(self, request: SuiteRequest) -> SuiteRun:
        """Run the tests; a broken project is a result, never an exception."""
        ...
