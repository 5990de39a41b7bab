"""Tests that came with the work that they prove: which of them count.

Whoever wrote the work may have written its tests, so that they pass proves little. A test counts if another
value that it expects makes it fail, and if it fails where the changed functions answer with nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pytest_tfgrpo.core.texts.text import few, plural
from pytest_tfgrpo.harvest.fixes import FixValidation, RootCause
from pytest_tfgrpo.harvest.history.candidates import is_code
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.harvest.proof.proven_changes import ASSERTION
from pytest_tfgrpo.harvest.proof.validation import CHANGED_HANG_S, RunTests, ValidationPlan
from pytest_tfgrpo.harvest.proof.work_tree import Tree, WorkTree
from pytest_tfgrpo.patterns.synthesis.blanked_code import Blank, blanked_code, feeds_itself
from pytest_tfgrpo.patterns.synthesis.told_apart import told_apart
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected, is_test
from pytest_tfgrpo.scoring.runners.protocol import USES, CaseOutcome, RunProblem, SuiteRequest, SuiteRun

ENDED = (CaseOutcome.FAILED, CaseOutcome.HUNG)
BLANKS: tuple[Blank, ...] = ("no", "yes", "none")


def judge_own_tests(
    trees: FixTrees, plan: ValidationPlan, found: FixValidation, work: WorkTree, run: RunTests
) -> FixValidation:
    """Return what was found, of the tests of the fix only those that count; or why it proves nothing.

    Raises OSError where a tree cannot be written.
    """
    if any(ran.problem == RunProblem.TAMPERED and ran.tree == "fix" for ran in found.runs):
        return _refused(found, f"the change interferes with what runs its tests ({found.reason})")
    slowest = max((ran.elapsed_s for ran in found.runs if ran.tree == "fix"), default=0.0)
    further = _FurtherRuns(trees, plan, work, run, hang_s=slowest + CHANGED_HANG_S)
    if found.cause is RootCause.SCENARIO_SYNTHESIS and found.runs and further.works_before():
        return _refused(found, f"the change ends what runs its tests ({found.reason})")
    if found.cause is not None:
        return found
    if found.doubts.uses:
        return _refused(
            found, f"the change brings {', '.join(found.doubts.uses)}, which could change its tests"
        )
    if told := further.told_apart():
        return _refused(found, f"the change brings {few(told, 3)}, by which tests could pass without a fix")
    if broken := found.doubts.broken:
        those = plural(len(broken), "test")
        return _refused(found, f"it breaks {those} that passed before: {few(broken, 3)}")
    if lenient := found.doubts.lenient:
        those = "a test passes" if len(lenient) == 1 else f"{len(lenient)} tests pass"
        return _refused(found, f"{those} whatever value is expected: {few(lenient, 3)}")
    dropped = dict.fromkeys(_indifferent(found, trees), "no change of it makes it fail")
    left = [test for test in found.fail_to_pass if test not in dropped]
    if left:
        own = [test for test in left if _is_own(test, trees)]
        dropped |= dict.fromkeys(further.untouched(own), "asserts nothing of what changed")
    kept = tuple(test for test in left if test not in dropped)
    if not kept:
        named = [f"{test} ({why})" for test, why in dropped.items()]
        also = f"; with blank functions the run ends with {further.broke}" if further.broke else ""
        return _refused(found, f"no test of it counts: {few(named, 2)}{also}")
    changes = found.changes and tuple(one for one in found.changes if not dropped.keys() & {*one.fails})
    messages = {test: said for test, said in found.messages.items() if test in kept}
    return replace(found, fail_to_pass=kept, changes=changes, messages=messages)


def _refused(found: FixValidation, reason: str) -> FixValidation:
    return replace(found, cause=RootCause.TEST_FAILURE, reason=reason, lacking=False)


def _indifferent(found: FixValidation, trees: FixTrees) -> set[str]:
    """Return the tests in Python that no change of their own makes fail."""
    files = {name for name in trees.tree("fix") if _is_python(name)}
    return {test for test in found.unchanged() if test.partition("::")[0] in files}


def _is_own(test: str, trees: FixTrees) -> bool:
    """Return whether the change may have made a test what it is, by its file or by what tests share."""
    changed = {name for name, entry in trees.hidden.items() if trees.base.get(name) != entry}
    changed |= {*trees.removed_tests}
    file = test.partition("::")[0]
    return file in changed or file not in trees.base or not all(map(is_test, changed))


class _FurtherRuns:
    """Runs of the tests of a fix on other trees: the base, and the fix with what it changed blanked."""

    def __init__(
        self, trees: FixTrees, plan: ValidationPlan, work: WorkTree, run: RunTests, hang_s: float
    ) -> None:
        self._plan, self._work, self._run, self._hang_s = plan, work, run, hang_s
        self.broke = ""
        """Why a run with something blanked gave no results."""
        self._base, self._fix = trees.base, trees.tree("fix")
        self._before_fix = trees.tree("base_with_tests")
        self._changed = [*trees.reference, *trees.removed]
        self._before = {name: entry.data for name, entry in trees.base.items() if name in self._changed}
        own = {name: entry for name, entry in self._fix.items() if not is_protected(name, plan.protected)}
        self._after = {name: entry.data for name, entry in own.items() if entry.link is None}

    def works_before(self) -> bool:
        """Return whether the runner gives a report before the fix, with its tests."""
        files = tuple(name for name in self._plan.files if name in self._before_fix)
        return self._run_on(self._before_fix, files).problem in (None, RunProblem.NOTHING_COLLECTED)

    def told_apart(self) -> tuple[str, ...]:
        """Return what the change brings by which it could pass its tests without a fix."""
        before = {name: entry.data for name, entry in self._base.items()}
        return told_apart(before, self._after, self._changed)

    def untouched(self, tests: Collection[str]) -> set[str]:
        """Return the tests that pass whatever the changed code answers."""
        left = set(tests)
        for blank in BLANKS:
            if left and (ran := self._ran_blank(left, blank)):
                self.broke = self.broke or (ran.problem or "")
                left -= {test for test in _ended(ran, left) if blank != "none" or _asserts(ran, test)}
        left |= self._fed({*tests} - left)
        data = {
            name: self._base.get(name) for name in self._changed if is_code(name) and not _is_python(name)
        }
        return left & _passing(self._ran(left, data), left) if left and data else left

    def _fed(self, tests: Collection[str]) -> set[str]:
        """Return the tests whose expected values are the answers that the changed code gave before."""
        files = (self._fix[name] for name in {test.partition("::")[0] for test in tests} & {*self._fix})
        if not any(feeds_itself(file.data) for file in files):
            return set()
        ran = self._ran_blank(tests, "fed")
        return {test for test in tests if ran and all_passed(ran, test)}

    def _ran_blank(self, tests: Collection[str], blank: Blank) -> SuiteRun | None:
        """Run tests with what changed blanked; None: nothing can be."""
        blanked = blanked_code(self._before, self._after, self._changed, blank)
        others = {name: ArchiveEntry(name=name, data=data) for name, data in blanked.items()}
        return self._ran(tests, others) if others else None

    def _ran(self, tests: Collection[str], others: Mapping[str, ArchiveEntry | None]) -> SuiteRun:
        """Run the files of tests with other files; None: without that file."""
        tree = {name: entry for name, entry in ({**self._fix, **others}).items() if entry is not None}
        named = {test.partition("::")[0] for test in tests}
        files = (
            tuple(f for f in self._plan.files if f in named)
            if named <= {*self._plan.files}
            else self._plan.files
        )
        return self._run_on(tree, files)

    def _run_on(self, tree: Tree, files: tuple[str, ...]) -> SuiteRun:
        self._work.become(tree)
        return self._run(
            SuiteRequest(
                tree=self._work.folder,
                command=self._plan.command,
                files=files,
                timeout_s=self._plan.timeout_s,
                hang_s=min(self._hang_s, self._plan.timeout_s),
                environment=self._plan.environment,
                isolation=self._plan.isolation,
                protected=tuple(name for name in tree if is_protected(name, self._plan.protected)),
                allow=USES,
            )
        )


def _ended(ran: SuiteRun, tests: Collection[str]) -> set[str]:
    """Return the tests that did not pass, of a run that counts."""
    return {test for test in tests if ran.problem is None and ran.outcomes.get(test) in ENDED}


def _passing(ran: SuiteRun, tests: Collection[str]) -> set[str]:
    """Return the tests that passed, all where the run does not count; none of a file that cannot be read."""
    if ran.problem not in (None, RunProblem.NOTHING_COLLECTED):
        return {*tests}
    return {test for test in tests if ran.outcomes.get(test) is CaseOutcome.PASSED}


def all_passed(ran: SuiteRun, test: str) -> bool:
    """Return whether a test passed; of one whose parameters have another name there, its whole function."""
    function = test.partition("[")[0]
    cases = [outcome for name, outcome in ran.outcomes.items() if name.partition("[")[0] == function]
    named = ran.outcomes.get(test)
    return {*([named] if named else cases)} == {CaseOutcome.PASSED}


def _asserts(ran: SuiteRun, test: str) -> bool:
    return ASSERTION.match(ran.messages.get(test, "")) is not None


def _is_python(name: str) -> bool:
    return name.endswith(".py")
