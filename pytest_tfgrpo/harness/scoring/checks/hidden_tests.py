"""Run hidden tests on what an agent made of a workspace: on a fresh copy, isolated."""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.core.errors import CheckError, TfgrpoError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, WorkspaceArchive
from pytest_tfgrpo.core.text import few, line
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.sandbox.archives import ArchiveEntry, ArchiveProblem, read_archive
from pytest_tfgrpo.harness.sandbox.environments import BuiltEnvironment, find_built
from pytest_tfgrpo.harness.sandbox.removal import remove
from pytest_tfgrpo.harness.scoring.checks.fresh_tree import (
    BaseTree,
    TooMuch,
    distinctive_lines,
    make_tree,
    read_base,
)
from pytest_tfgrpo.harness.scoring.checks.hidden_archives import digest_of, hidden_archive, suite_folder
from pytest_tfgrpo.harness.scoring.checks.protected import is_test
from pytest_tfgrpo.harness.scoring.checks.protocol import CheckContext, failed, passed
from pytest_tfgrpo.harness.scoring.runners.changed_tests import ChangedTests, bare, change_tests
from pytest_tfgrpo.harness.scoring.runners.protocol import (
    CaseOutcome,
    RunProblem,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
    never,
)
from pytest_tfgrpo.harness.scoring.runners.registry import run_suite

HANG_SHARE = 0.4
"""A test hangs that takes this share of the time for all; less would end slow ones on a busy machine."""
MAX_ANSWERS = 200
ALONE = 0.5
"""How often a third run has one test that expects something else beside the others as they are."""
BASE_SUFFIX, HIDDEN_SUFFIX, SUFFIX = ".base.tar.gz", ".hidden.tar.gz", ".tar.gz"
REFERENCES = "references"
_random = secrets.SystemRandom()


def run_hidden(check: Check, context: CheckContext) -> CheckResult:
    """Return what the hidden tests find of an agent's work; raises CheckError where they cannot be run.

    Beside them run tests that expect something else (`changed_tests`): what passes both has no credit.
    """
    hidden = hidden_archive(check)
    archive = context.workspace.archive
    if archive is None:
        raise CheckError("a check of kind 'tests' needs a workspace; name its archive in the scenario")
    environment = context.workspace.environment or _environment(archive, context.environment)
    try:
        context.workspace.secure()
        base = read_base(archive, tuple(check.params.get("protected", ())))
        attempt = _Attempt(
            check=check,
            context=context,
            base=base.without(check.params.get("removed", ())),
            entries={entry.name: entry for entry in read_archive(hidden)},
            environment=environment,
        )
        return attempt.result()
    except (ArchiveProblem, OSError) as error:
        raise CheckError(f"cannot make the tree of the hidden tests: {error}") from error


class _Ran(NamedTuple):
    result: CheckResult
    run: SuiteRun | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attempt:
    """An agent's work under the tests of one check."""

    check: Check
    context: CheckContext
    base: BaseTree
    entries: Mapping[str, ArchiveEntry]
    """The hidden files, by name."""
    environment: BuiltEnvironment | None

    def result(self) -> CheckResult:
        """Return the credit of the work. Raises ArchiveProblem, OSError, CheckError.

        In a sandbox all forms of the tests run at once; without one they could meet at a port or a file.
        """
        changed, over = self._changed(), threading.Event()
        if self.context.sandbox == "none":
            first = self._run({})
            return self._judged(first, ((form, self._run(form.files)) for form in changed))
        with ThreadPoolExecutor(1 + len(changed), "tfgrpo-tests") as pool:
            try:
                forms = [None, *changed]
                _random.shuffle(forms)  # which tree is older tells nothing
                runs = [
                    (form, pool.submit(self._run, form.files if form else {}, over.is_set)) for form in forms
                ]
                (first,) = (run.result() for form, run in runs if form is None)
                return self._judged(first, ((form, run.result()) for form, run in runs if form is not None))
            finally:
                over.set()

    def _changed(self) -> list[ChangedTests]:
        """Return forms of the fix's tests that expect something else: all, at times one alone too."""
        params = self.check.params
        if _command(params["runner"]).runner != "pytest":
            return []
        fixed = sorted({bare(id_) for id_ in params["fail_to_pass"]} - {*params.get("lenient", ())})
        texts = {entry.name: entry.data for entry in (*self.base.protected, *self.entries.values())}
        several = len(params["fail_to_pass"]) > 1
        kinds = (False, True) if several and _random.random() < ALONE else (False,)
        forms = [change_tests(texts, fixed, alone=alone) for alone in kinds]
        return [form for form in forms if form is not None]

    def _judged(self, first: _Ran, others: Iterable[tuple[ChangedTests, _Ran]]) -> CheckResult:
        """Return the credit of the first run, unless its tests passed whatever they expect."""
        if first.run is None or not first.result.credit:
            return first.result
        for form, ran in others:
            if ran.run is None:
                return ran.result
            if doubt := form.doubt(first.run, ran.run):
                return failed(self.check, doubt)
        return first.result

    def _run(self, changed: Mapping[str, bytes], unwanted: Callable[[], bool] = never) -> _Ran:
        """Run the tests; `changed` are other contents of protected files."""
        check, began, limit_s = self.check, time.monotonic(), self.check.params["timeout_s"]
        entries = dict(self.entries)
        for name, data in changed.items():
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
                return _Ran(failed(check, f"the folder {command.folder!r} with the tests is gone"))
            run = run_suite(
                SuiteRequest(
                    tree=tree,
                    command=command,
                    files=_files(check, tree, names),
                    protected=names,
                    allow=tuple(check.params.get("allow", ())),
                    timeout_s=max(left, 0.1),
                    hang_s=HANG_SHARE * limit_s,
                    environment=self.environment,
                    unwanted=unwanted,
                    isolation="none" if self.context.sandbox == "none" else "bwrap",
                )
            )
            return _Ran(result_of(check, run), run)
        except TooMuch as error:
            return _Ran(failed(check, str(error)))
        finally:
            remove(tree)


def _command(value: Json) -> SuiteCommand:
    if isinstance(value, str):
        return SuiteCommand(runner=value)
    return SuiteCommand(
        runner=value["name"], folder=value.get("folder", "."), run=tuple(value.get("run", ()))
    )


def _environment(archive: WorkspaceArchive, stamp: str | None) -> BuiltEnvironment | None:
    if stamp is None:
        return None
    try:
        return find_built(suite_folder(archive), stamp)
    except TfgrpoError as error:
        raise CheckError(str(error)) from error


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
    if run.problem is RunProblem.NO_RUNNER:
        raise CheckError(f"the hidden tests cannot run: {run.detail}")
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


def fix_lines(hidden: Path) -> tuple[str, ...]:
    """Return lines of the true fix, where it lies beside the hidden tests as a harvest writes it."""
    if not hidden.name.endswith(HIDDEN_SUFFIX):
        return ()
    id_ = hidden.name.removesuffix(HIDDEN_SUFFIX)
    reference = hidden.parent.parent / REFERENCES / f"{id_}{SUFFIX}"
    try:
        return _lines(reference, hidden.with_name(f"{id_}{BASE_SUFFIX}"), digest_of(reference))
    except (ArchiveProblem, OSError):
        return ()


@lru_cache(maxsize=1000)
def _lines(reference: Path, base: Path, _sha256: str) -> tuple[str, ...]:
    fixed = {entry.name: entry.data for entry in read_archive(reference)}
    before = {entry.name: entry.data for entry in read_archive(base) if entry.name in fixed}
    return distinctive_lines(fixed, before, MAX_ANSWERS)
