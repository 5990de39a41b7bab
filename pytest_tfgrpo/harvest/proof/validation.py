"""Validation: rounds of runs prove that some tests fail before a fix and pass after it (decision 42)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.harvest.fixes import FixValidation, ProofDoubts, RootCause, ValidationRun
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees, TreeName
from pytest_tfgrpo.harvest.proof.proven_changes import ProvenChanges, proven_changes, still_proven
from pytest_tfgrpo.harvest.proof.work_tree import WorkTree
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected
from pytest_tfgrpo.scoring.runners.edits.changed_tests import LineChange
from pytest_tfgrpo.scoring.runners.protocol import (
    USES,
    CaseOutcome,
    Isolation,
    RunProblem,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
)

ROUNDS = 3
ORDER: tuple[TreeName, ...] = ("fix", "base_with_tests", "base")
"""In each round; the fix first, as it says how long tests may take."""
RUN_TIMEOUT_S = 900.0
HANG_S, HANG_TIMES = 30.0, 5.0
"""A test hangs that takes longer than this, and than so many times its time after the fix."""
CHANGED_HANG_S = 5.0
"""In place of `HANG_S` where tests expect something else: a change may make one that never ends."""
FIX_HANG_S = 180.0
"""Where the fix's own run has not said yet how long tests take."""
CHECK_MAX_S = 3600
"""Seconds that a check may have at most."""
NAMED = 200
"""How many wavering tests are named."""

MISSING = re.compile(
    r"No module named|cannot import name(?!.*circular import)|undefined symbol|PackageNotFound"
    r"|fixture '\w+' not found|unrecognized arguments(?!: --show-capture)"
)
"""What a test says that lacks a package."""
HINTS = (
    (
        MISSING,
        "; declare it as dependencies, or make it by setup, in harvest.toml",
    ),
    (re.compile(r"Cannot find (?:module|package)"), "; install it by setup, in harvest.toml"),
    (
        re.compile(r"gaierror|name resolution|Network is unreachable|ConnectionRefused|Max retries|URLError"),
        "; tests have no network",
    ),
)
"""What a person could do where a test says this after the fix."""

RunTests = Callable[[SuiteRequest], SuiteRun]

CAUSES = {
    RunProblem.NO_RUNNER: (RootCause.SCENARIO_SYNTHESIS, "no runner"),
    RunProblem.NO_REPORT: (RootCause.SCENARIO_SYNTHESIS, "no report"),
    RunProblem.TAMPERED: (RootCause.SCENARIO_SYNTHESIS, "its own tests that must pass and fail did not"),
    RunProblem.NOTHING_COLLECTED: (RootCause.ENVIRONMENT, "nothing collected"),
    RunProblem.TIMEOUT: (RootCause.ENVIRONMENT, "out of time"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationPlan:
    """How the tests of a fix run."""

    command: SuiteCommand
    files: tuple[str, ...]
    """Files with the tests to run, as they are called after the fix; those that a tree lacks are left out."""
    tests: tuple[str, ...]
    """Those of them that the fix changed."""
    environment: BuiltEnvironment | None = None
    isolation: Isolation = "bwrap"
    protected: tuple[str, ...] = ()
    """Globs of further files that come from the fix."""
    timeout_s: float = RUN_TIMEOUT_S
    relaxed: bool = False
    changes: tuple[LineChange, ...] | None = None
    """Those that were proven before; None: they are looked for."""


def validate(trees: FixTrees, plan: ValidationPlan, work: WorkTree, run: RunTests) -> FixValidation:
    """Run the tests of a fix on its three trees, three times each, unless it is clear before.

    Further runs of the tests of the fix prove changes of them. Raises OSError where a tree cannot be written.
    """
    began = time.perf_counter()
    series = _Series(trees, plan, work, run)
    found = series.prove()
    return replace(
        found,
        runs=tuple(series.rows),
        elapsed_s=round(time.perf_counter() - began, 3),
        environment=plan.environment.stamp if plan.environment else None,
        isolation=plan.isolation,
        relaxed=plan.relaxed,
        uses=tuple(sorted(series.uses)),
        doubts=replace(found.doubts, uses=tuple(sorted(series.uses - series.used_before))),
    )


class _Ran(NamedTuple):
    run: SuiteRun
    files: frozenset[str]
    """The files whose tests ran."""


class _Series:
    """The runs of one validation."""

    def __init__(self, trees: FixTrees, plan: ValidationPlan, work: WorkTree, run: RunTests) -> None:
        self.trees, self.plan, self.work, self.run = trees, plan, work, run
        self.rows: list[ValidationRun] = []
        self.runs: dict[TreeName, list[_Ran]] = {name: [] for name in ORDER}
        self.hang_s = FIX_HANG_S
        self.files = plan.files
        self.compiled: dict[str, str] = {}
        self.uses: set[str] = set()
        """What the code with the fix used, also where a test failed that expects something else."""
        self.used_before: set[str] = set()

    def prove(self) -> FixValidation:
        """Run round after round; return what they prove.

        After the first, only the files that have tests of the fix run again; after the fix all of them once.
        On the base alone no others run, but those of which tests are missing with the fix's tests.
        """
        files, result = self.files, TreeOutcomes({}, {}, {})
        for number in range(ROUNDS):
            for name in ORDER:
                again = self.files if (number, name) == (1, "fix") else files
                ran = self._run(name, self._asked_of_base() if (number, name) == (0, "base") else again)
                if (problem := _problem(name, ran)) is not None:
                    return problem
            result = self._outcomes()
            if not result.fail_to_pass():
                return self._unproven(result)
            self._narrow()
            files = self._of(result.fail_to_pass(), result.wavering())
        self.files = files
        before = self.runs["base_with_tests"][0].run.messages
        proven = result.fail_to_pass()
        changes, lenient = self._changes(proven, result.pass_to_pass())
        return FixValidation(
            fail_to_pass=proven,
            pass_to_pass=result.pass_to_pass(),
            changes=changes,
            wavering=result.wavering()[:NAMED],
            doubts=ProofDoubts(broken=result.broken()[:NAMED], lenient=lenient),
            messages={test: line(before[test], 500) for test in proven if test in before},
        )

    def _changes(self, fixed: Sequence[str], kept: Sequence[str]) -> ProvenChanges:
        """Return changes of the tests that make them fail after the fix."""
        tree = self.trees.tree("fix")
        named = {test.partition("::")[0] for test in fixed}
        texts = {name: tree[name].data for name in self.files if name in tree}
        slowest = [max(ran.run.seconds.values(), default=0.0) for ran in self.runs["fix"]]
        self.hang_s = max(CHANGED_HANG_S, HANG_TIMES * max(slowest))
        stems = [name.rpartition("/")[2].partition(".")[0].encode() for name in named]
        files = tuple(n for n in self.files if n in named or any(stem in texts.get(n, b"") for stem in stems))

        def run(changed: Mapping[str, bytes]) -> SuiteRun:
            entries = {name: ArchiveEntry(name=name, data=data) for name, data in changed.items()}
            self.work.become(tree | entries)
            ran = self.run(self._request(tree, files))
            self.uses.update(ran.uses)
            return ran

        if self.plan.changes is not None:
            return ProvenChanges(still_proven(texts, self.plan.changes, (*fixed, *kept), run), ())
        before = {name: entry.data for name, entry in self.trees.base.items() if name in texts}
        return proven_changes(texts, before, fixed, kept, run)

    def _asked_of_base(self) -> tuple[str, ...]:
        """Return the files of which the base alone says what the base with the fix's tests does not."""
        passed = [test for test, end in self.runs["fix"][0].run.outcomes.items() if end is CaseOutcome.PASSED]
        before = self.runs["base_with_tests"][0].run.outcomes
        missing = self._of(test for test in passed if test not in before)
        return tuple(file for file in self.files if file in (*missing, *self.plan.tests))

    def _of(self, *ids: Iterable[str]) -> tuple[str, ...]:
        """Return the files of tests; all where a report names tests by something else."""
        named = {test.partition("::")[0] for some in ids for test in some}
        return tuple(file for file in self.files if file in named) if named <= {*self.files} else self.files

    def _narrow(self) -> None:
        """Leave out the files of which no test passed after the fix: a check does not run them either.

        A test that passes only beside one of them would not pass in a check.
        """
        passed = {
            test.partition("::")[0]
            for run in self.runs["fix"]
            for test, outcome in run.run.outcomes.items()
            if outcome is CaseOutcome.PASSED
        }
        if passed <= {*self.files}:  # else a report names tests by something else
            self.files = tuple(file for file in self.files if file in passed)

    def _outcomes(self) -> TreeOutcomes:
        every = {*self.plan.files}
        return TreeOutcomes(*(_together(self.runs[name], every) for name in ORDER))

    def _unproven(self, result: TreeOutcomes) -> FixValidation:
        """Return why there is no proof; what fails after the fix is run again, as it may be flaky."""
        while _failing(result, self.plan.tests) and not result.wavering() and len(self.runs["fix"]) < ROUNDS:
            if (problem := _problem("fix", self._run("fix", self.files))) is not None:
                return problem
            result = self._outcomes()
        return _unproven(result, self.plan.tests, self.runs["fix"][-1].run.messages)

    def _run(self, name: TreeName, wanted: Sequence[str]) -> SuiteRun:
        tree = self.trees.tree(name)
        files = tuple(file for file in wanted if file in tree)
        if files or not self.plan.files:
            self.work.become(tree)
            ran = self.run(self._request(tree, files))
        else:  # without files the runner would run all that it finds
            ran = SuiteRun(outcomes={}, problem=RunProblem.NOTHING_COLLECTED)
        if name == "fix":
            self.uses.update(ran.uses)
        else:
            self.used_before.update(ran.uses)
        if name == "fix" and ran.problem is None:
            self.hang_s = max(HANG_S, HANG_TIMES * max(ran.seconds.values(), default=0.0))
        self.runs[name].append(_Ran(ran, frozenset(files)))
        self.rows.append(_row(name, ran))
        return ran

    def _request(self, tree: Collection[str], files: tuple[str, ...]) -> SuiteRequest:
        return SuiteRequest(
            tree=self.work.folder,
            command=self.plan.command,
            files=files,
            timeout_s=self.plan.timeout_s,
            hang_s=min(self.hang_s, self.plan.timeout_s),
            environment=self.plan.environment,
            isolation=self.plan.isolation,
            protected=tuple(name for name in tree if is_protected(name, self.plan.protected)),
            allow=USES,
            compiled=self.compiled,
        )


@dataclass(frozen=True, slots=True)
class TreeOutcomes:
    """What came of each test on each tree: its one outcome, or None where it wavered."""

    fix: Mapping[str, CaseOutcome | None]
    before: Mapping[str, CaseOutcome | None]
    """On the base with the fix's tests."""
    base: Mapping[str, CaseOutcome | None]

    def fail_to_pass(self) -> tuple[str, ...]:
        """Return the tests that passed after the fix, and failed, hung or were missing before it."""
        failed = (None, CaseOutcome.PASSED, CaseOutcome.SKIPPED)
        found = {test for test in self._passed() if self.before.get(test, CaseOutcome.FAILED) not in failed}
        return tuple(sorted(found - self._kept() or found))

    def pass_to_pass(self) -> tuple[str, ...]:
        """Return the tests that passed before and after."""
        both = {test for test in self._passed() if self.before.get(test) is CaseOutcome.PASSED}
        return tuple(sorted((both | self._kept()) - {*self.fail_to_pass()}))

    def broken(self) -> tuple[str, ...]:
        """Return the tests that passed before the fix and fail after it, or whose file does."""
        passed = {t for t, end in {**self.base, **self.before}.items() if end is CaseOutcome.PASSED}
        ends = ((t, self.fix.get(t, self.fix.get(t.partition("::")[0]))) for t in passed)
        return tuple(sorted(test for test, end in ends if end is CaseOutcome.FAILED))

    def _kept(self) -> set[str]:
        """Return the tests that pass after the fix and on the base alone, where the fix's tests cannot run.

        An import or a setting of the fix keeps all of them from being found there, old ones too.
        """
        passing = (test for test in self._passed() if self.base.get(test) is CaseOutcome.PASSED)
        return {test for test in passing if test not in self.before}

    def wavering(self) -> tuple[str, ...]:
        """Return the tests that came out differently on the same tree."""
        every = (self.fix, self.before, self.base)
        return tuple(sorted({test for tests in every for test, outcome in tests.items() if outcome is None}))

    def _passed(self) -> Iterable[str]:
        wavering = set(self.wavering())
        return (t for t, end in self.fix.items() if end is CaseOutcome.PASSED and t not in wavering)


def _together(runs: Sequence[_Ran], every: Collection[str]) -> dict[str, CaseOutcome | None]:
    """Return the outcome of each test where all runs of its file agree, else None; a missing one failed.

    `every` are the files that may be run; a test of none of them is one of each run.
    """
    made: dict[str, CaseOutcome | None] = {}
    for test in {test: None for ran in runs for test in ran.run.outcomes}:
        file = test.partition("::")[0]
        counted = [ran.run for ran in runs if file in ran.files or file not in every]
        ends = {_end(run.outcomes.get(test, CaseOutcome.FAILED)) for run in counted}
        made[test] = ends.pop() if len(ends) == 1 else None
    return made


def _end(outcome: CaseOutcome) -> CaseOutcome:
    return CaseOutcome.FAILED if outcome is CaseOutcome.HUNG else outcome


def _problem(name: TreeName, run: SuiteRun) -> FixValidation | None:
    """Return why a run proves nothing; None where it counts.

    What keeps all tests from being found before the fix fails them; on the base alone nothing is needed.
    """
    allowed = {"base_with_tests": {RunProblem.NOTHING_COLLECTED}, "base": set(RunProblem)}
    if run.problem is None or run.problem in allowed.get(name, ()):
        return None
    cause, what = CAUSES[run.problem]
    where = "after the fix" if name == "fix" else "before the fix"
    *_, last = rows = run.detail.strip().splitlines() or [""]  # of a traceback, what was raised
    detail = line(next((row for row in rows if "error: unrecognized" in row), last), 200)
    return FixValidation(
        fail_to_pass=(),
        pass_to_pass=(),
        cause=cause,
        reason=f"{what} {where}" + (f": {detail}" if detail else ""),
        lacking=bool(MISSING.search(run.detail)),
    )


def _unproven(tests: TreeOutcomes, changed: Sequence[str], messages: Mapping[str, str]) -> FixValidation:
    """Return why no test proves the fix, by the tests in the files that it changed.

    `messages` are those of the fix's last run, by test.
    """
    wavering = tests.wavering()
    own = [test for test in tests.fix if _is_in(test, changed)]
    failing = _failing(tests, changed)
    skipped = [t for t in own if tests.fix[t] is CaseOutcome.SKIPPED]
    new = [t for t in skipped if t not in tests.base]
    if wavering:
        reason = f"flaky: {few(wavering, 2)}"
    elif failing:
        named = [test or "pytest itself" for test in failing]
        reason = f"fails after the fix: {few(named, 2)}{_why(failing, messages)}"
    elif own and len(skipped) == len(own):
        reason = f"skipped after the fix: {few(skipped, 2)}{_why(skipped, messages)}"
    elif new:
        those = plural(len(new), "new test")
        reason = f"{those} skipped after the fix, no other proves it: {few(new, 2)}{_why(new, messages)}"
    elif own:
        reason = "passes before the fix: no test of it fails there"
        if skipped:
            reason += f"; {plural(len(skipped), 'test')} skipped: {few(skipped, 2)}{_why(skipped, messages)}"
    else:
        reason = "its tests are not among those that ran"
    return FixValidation(
        fail_to_pass=(),
        pass_to_pass=(),
        wavering=wavering[:NAMED],
        doubts=ProofDoubts(broken=tests.broken()[:NAMED]),
        cause=RootCause.TEST_FAILURE,
        reason=reason,
        lacking=bool(skipped or any(MISSING.search(messages.get(test, "")) for test in failing)),
    )


def _why(ids: Sequence[str], messages: Mapping[str, str]) -> str:
    """Return what the first of these tests said, with what a person could do about it; else nothing."""
    said = next((messages[id_] for id_ in ids if messages.get(id_)), "")
    if not said:
        return ""
    hint = next((hint for pattern, hint in HINTS if pattern.search(said)), "")
    return f" ({line(said, 160)}{hint})"


def _failing(tests: TreeOutcomes, changed: Sequence[str]) -> list[str]:
    """Return the tests in the files that the fix changed that fail after it; "" is the run as a whole."""
    failed = [test for test, end in tests.fix.items() if end is CaseOutcome.FAILED]
    return [test for test in failed if not test.partition("::")[0] or _is_in(test, changed)]


def _is_in(test: str, files: Sequence[str]) -> bool:
    """Return whether a test is in one of these files, by its path or its module, as commands report it."""
    place = test.partition("::")[0]
    modules = [file.removesuffix(".py").replace("/", ".") for file in files]
    return place in files or any(f"{place}.".startswith(f"{module}.") for module in modules)


def _row(name: TreeName, run: SuiteRun) -> ValidationRun:
    ends = list(run.outcomes.values())
    return ValidationRun(
        tree=name,
        passed=ends.count(CaseOutcome.PASSED),
        failed=ends.count(CaseOutcome.FAILED),
        skipped=ends.count(CaseOutcome.SKIPPED),
        hung=ends.count(CaseOutcome.HUNG),
        elapsed_s=round(run.elapsed_s, 3),
        problem=None if run.problem is None else run.problem.value,
    )


def check_timeout_s(validation: FixValidation) -> float:
    """Return how long the tests may take in a check: well over what the slowest run of the fix took."""
    slowest = max((run.elapsed_s for run in validation.runs if run.tree == "fix"), default=0.0)
    return float(min(max(60, 30 * round(HANG_TIMES * slowest / 30 + 1)), CHECK_MAX_S))
