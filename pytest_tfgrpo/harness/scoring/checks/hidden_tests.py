"""Run hidden tests on what an agent made of a workspace: on a fresh copy, isolated."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError, TfgrpoError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, WorkspaceArchive
from pytest_tfgrpo.core.text import few, line
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.sandbox.archives import ArchiveProblem, read_archive
from pytest_tfgrpo.harness.sandbox.environments import BuiltEnvironment, find_built
from pytest_tfgrpo.harness.sandbox.removal import remove
from pytest_tfgrpo.harness.scoring.checks.fresh_tree import TooMuch, distinctive_lines, make_tree, read_base
from pytest_tfgrpo.harness.scoring.checks.hidden_archives import digest_of, hidden_archive, suite_folder
from pytest_tfgrpo.harness.scoring.checks.protected import is_test
from pytest_tfgrpo.harness.scoring.checks.protocol import CheckContext, failed, passed
from pytest_tfgrpo.harness.scoring.runners.protocol import (
    CaseOutcome,
    RunProblem,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
)
from pytest_tfgrpo.harness.scoring.runners.registry import run_suite

HANG_SHARE = 0.4
"""A test hangs that takes this share of the time for all; less would end slow ones on a busy machine."""
MAX_ANSWERS = 200
BASE_SUFFIX, HIDDEN_SUFFIX, SUFFIX = ".base.tar.gz", ".hidden.tar.gz", ".tar.gz"
REFERENCES = "references"


def run_hidden(check: Check, context: CheckContext) -> CheckResult:
    """Return what the hidden tests find of an agent's work; raises CheckError where they cannot be run."""
    began = time.monotonic()
    hidden = hidden_archive(check)
    archive = context.workspace.archive
    if archive is None:
        raise CheckError("a check of kind 'tests' needs a workspace; name its archive in the scenario")
    environment = context.workspace.environment or _environment(archive, context.environment)
    tree = Path(tempfile.mkdtemp(prefix="tfgrpo-check-"))
    try:
        limit_s = check.params["timeout_s"]
        names = _fill(tree, check, context, archive, hidden, environment, began + limit_s)
        left = limit_s - (time.monotonic() - began) - min(1.0, 0.05 * limit_s)
        command = _command(check.params["runner"])
        if not (tree / command.folder).is_dir():
            return failed(check, f"the folder {command.folder!r} with the tests is gone")
        run = run_suite(
            SuiteRequest(
                tree=tree,
                command=command,
                files=_files(check, tree, names),
                protected=names,
                fail_to_pass=tuple(check.params["fail_to_pass"]),
                allow=tuple(check.params.get("allow", ())),
                timeout_s=max(left, 0.1),
                hang_s=HANG_SHARE * limit_s,
                environment=environment,
                isolation="none" if context.sandbox == "none" else "bwrap",
            )
        )
        return result_of(check, run)
    except TooMuch as error:
        return failed(check, str(error))
    except (ArchiveProblem, OSError) as error:
        raise CheckError(f"cannot make the tree of the hidden tests: {error}") from error
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


def _fill(
    tree: Path,
    check: Check,
    context: CheckContext,
    archive: WorkspaceArchive,
    hidden: Path,
    environment: BuiltEnvironment | None,
    deadline: float,
) -> tuple[str, ...]:
    """Make the tree; return the names of its protected files."""
    globs = tuple(check.params.get("protected", ()))
    context.workspace.secure()
    base = read_base(archive, globs).without(check.params.get("removed", ()))
    entries = tuple(read_archive(hidden))
    make_tree(
        context.workspace.path, tree, base=base, hidden=entries, environment=environment, deadline=deadline
    )
    return tuple(entry.name for entry in (*base.protected, *entries))


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
