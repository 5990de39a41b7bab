"""Work under test: what the hidden tests find of an agent's work, in two forms that run at once."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.text import few, line
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import BaseTree, TooMuch, make_tree
from pytest_tfgrpo.scoring.checks.hidden.protected import is_test
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, failed, passed
from pytest_tfgrpo.scoring.runners.edits.changed_tests import (
    ChangedTests,
    LineChange,
    drawn_changes,
    further_forms,
    two_forms,
)
from pytest_tfgrpo.scoring.runners.protocol import (
    CaseOutcome,
    RunProblem,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
)
from pytest_tfgrpo.scoring.runners.registry import run_suite

HANG_SHARE = 0.4
"""A test hangs that takes this share of the time for all; less would end slow ones on a busy machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkUnderTest:
    """An agent's work under the tests of one check."""

    check: Check
    context: CheckContext
    base: BaseTree
    entries: Mapping[str, ArchiveEntry]
    """The hidden files, by name."""
    environment: BuiltEnvironment | None

    def result(self) -> CheckResult:
        """Return the credit of the work. Raises ArchiveProblem, OSError, CheckError.

        Where few tests are changed, work that would have full credit runs in further forms, as it could have
        guessed. In a sandbox forms run at once; without one they could meet at a port or a file.
        """
        forms, further = self._forms()
        try:
            runs = self._run_each(forms)
            whole = _as_they_were(forms, runs)
            result = result_of(self.check, whole)
            wrong = _wrong(forms, runs, whole if result.credit else None)
            if not wrong and result.credit == 1 and further:
                wrong = _wrong(further, self._run_each(further), whole)
        except TooMuch as error:
            wrong = str(error)
        return failed(self.check, wrong) if wrong else result

    def _forms(self) -> tuple[Sequence[ChangedTests], Sequence[ChangedTests]]:
        """Return the forms of the tests, two, or one where no test can be changed; and further ones."""
        params = self.check.params
        texts = {entry.name: entry.data for entry in (*self.base.protected, *self.entries.values())}
        listed = (*params["fail_to_pass"], *params.get("pass_to_pass", ()))
        changes: Sequence[LineChange] = ()
        if "changes" in params:
            changes = [from_wire(LineChange, change) for change in params["changes"]]
        elif _command(params["runner"]).runner == "pytest":
            changes = drawn_changes(texts, listed, params["fail_to_pass"])
        if not changes:
            return [ChangedTests(files={}, fails=frozenset())], ()
        try:
            forms = two_forms(texts, changes)
            return forms, further_forms(texts, changes, forms)
        except ValueError as error:
            raise CheckError(f"changes of the check 'tests' do not fit its tests: {error}") from None

    def _run_each(self, forms: Sequence[ChangedTests]) -> list[SuiteRun]:
        at_once = 1 if self.context.sandbox == "none" else len(forms)
        with ThreadPoolExecutor(at_once, "tfgrpo-tests") as pool:
            return list(pool.map(self._run, forms))

    def _run(self, form: ChangedTests) -> SuiteRun:
        """Run a form of the tests; raises TooMuch where the agent's files cannot be copied in time."""
        check, began, limit_s = self.check, time.monotonic(), self.check.params["timeout_s"]
        entries = dict(self.entries)
        for name, data in form.files.items():
            entries[name] = ArchiveEntry(name=name, data=data)
        names = tuple({entry.name: 1 for entry in (*self.base.protected, *entries.values())})
        tree = Path(tempfile.mkdtemp(prefix="tfgrpo-check-"))
        try:
            make_tree(
                self.context.workspace.path,
                tree,
                base=self.base,
                hidden=entries.values(),
                environment=self.environment,
                deadline=began + limit_s,
            )
            left = limit_s - (time.monotonic() - began) - min(1.0, 0.05 * limit_s)
            command = _command(check.params["runner"])
            if not (tree / command.folder).is_dir():
                raise TooMuch(f"the folder {command.folder!r} with the tests is gone")
            return run_suite(
                SuiteRequest(
                    tree=tree,
                    command=command,
                    files=_files(check, tree, names),
                    protected=names,
                    allow=tuple(check.params.get("allow", ())),
                    timeout_s=max(left, 0.1),
                    hang_s=HANG_SHARE * limit_s,
                    environment=self.environment,
                    isolation="none" if self.context.sandbox == "none" else "bwrap",
                )
            )
        finally:
            remove(tree)


def _as_they_were(forms: Sequence[ChangedTests], runs: Sequence[SuiteRun]) -> SuiteRun:
    """Return what came of each test where it was as it is: of those that no form changes, in the first."""
    if len(runs) == 1:
        return runs[0]
    (first, second), changed = runs, forms[0].fails
    outcomes = {id_: end for id_, end in first.outcomes.items() if id_ not in changed}
    messages = {id_: said for id_, said in first.messages.items() if id_ not in changed}
    outcomes |= {id_: end for id_, end in second.outcomes.items() if id_ in changed}
    messages |= {id_: said for id_, said in second.messages.items() if id_ in changed}
    worse = first if first.problem is not None else second
    return replace(worse, outcomes=outcomes, messages=messages)


def _wrong(forms: Sequence[ChangedTests], runs: Sequence[SuiteRun], whole: SuiteRun | None) -> str:
    """Return why runs leave no credit, nothing where they do.

    `whole` are the outcomes of tests as they were; None where they have no credit.
    """
    for run in runs:
        _require_runner(run)
        if run.problem is RunProblem.TAMPERED:
            return f"tampered: {run.detail}"
    ends = whole.outcomes.items() if whole is not None else ()
    right = {id_ for id_, outcome in ends if outcome is CaseOutcome.PASSED}
    return next(filter(None, (form.doubt(run, right) for form, run in zip(forms, runs, strict=True))), "")


def _require_runner(run: SuiteRun) -> None:
    if run.problem is RunProblem.NO_RUNNER:
        raise CheckError(f"the hidden tests cannot run: {run.detail}")


def _command(value: Json) -> SuiteCommand:
    if isinstance(value, str):
        return SuiteCommand(runner=value)
    return SuiteCommand(
        runner=value["name"], folder=value.get("folder", "."), run=tuple(value.get("run", ()))
    )


def _files(check: Check, tree: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the files of the listed tests; all that hold tests among `names` where some name no file.

    A report of JUnit may have ``tests.test_cart`` in place of ``tests/test_cart.py``.
    """
    listed = (*check.params["fail_to_pass"], *check.params.get("pass_to_pass", ()))
    found = {name: _file(name, tree) for name in {id_.partition("::")[0] for id_ in listed}}
    if None in found.values():
        return tuple(sorted(name for name in set(names) if is_test(name)))
    return tuple(sorted({name for name in found.values() if name is not None}))


def _file(name: str, tree: Path) -> str | None:
    """Return the file that a test's id begins with: as a path, or as the dotted name of a module."""
    if (tree / name).is_file() or "/" in name:
        return name
    parts = name.split(".")
    modules = ("/".join(parts[:count]) + ".py" for count in range(len(parts), 0, -1))
    return next((module for module in modules if (tree / module).is_file()), None)


def result_of(check: Check, run: SuiteRun) -> CheckResult:
    """Return the credit: of all listed tests, or the share of those that the fix makes pass."""
    _require_runner(run)
    if run.problem is RunProblem.TAMPERED:
        return failed(check, f"tampered: {run.detail}")
    wanted: Sequence[str] = check.params["fail_to_pass"]
    missed = [id_ for id_ in wanted if run.outcomes.get(id_) is not CaseOutcome.PASSED]
    broken = [
        id_ for id_ in check.params.get("pass_to_pass", ()) if run.outcomes.get(id_) is not CaseOutcome.PASSED
    ]
    if not missed and not broken:
        return passed(check)
    parts = []
    if missed:
        parts.append(f"{len(missed)} of {len(wanted)} tests of the fix do not pass: {_named(missed, run)}")
    if broken:
        parts.append(f"{len(broken)} tests do not pass any more: {_named(broken, run)}")
    if run.problem is not None:
        parts.append(f"the run ended early: {run.problem.value}, {line(run.detail, 200)}")
    reason = "; ".join(parts)
    if broken or check.params.get("credit", "all") == "all":
        return failed(check, reason)
    credit = 1 - len(missed) / len(wanted)
    return CheckResult(kind=check.title, weight=check.weight, credit=credit, reason=reason)


def _named(ids: Sequence[str], run: SuiteRun) -> str:
    first = ids[0]
    outcome = run.outcomes.get(first)
    why = run.messages.get(first) or run.messages.get(first.partition("::")[0]) or (outcome or "was not run")
    return f"{few([line(id_, 120) for id_ in ids], 2)} ({line(str(why), 160)})"
