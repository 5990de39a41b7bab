"""Run hidden tests on what an agent made of a workspace: on a fresh copy, isolated."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError, TfgrpoError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, WorkspaceArchive
from pytest_tfgrpo.sandbox.archives import ArchiveProblem, read_archive
from pytest_tfgrpo.sandbox.file_digests import digest_of
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment, find_built
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import distinctive_lines, read_base
from pytest_tfgrpo.scoring.checks.hidden.hidden_archives import hidden_archive, suite_folder
from pytest_tfgrpo.scoring.checks.hidden.work_under_test import WorkUnderTest
from pytest_tfgrpo.scoring.checks.protocol import CheckContext

MAX_ANSWERS = 200
BASE_SUFFIX, HIDDEN_SUFFIX, SUFFIX = ".base.tar.gz", ".hidden.tar.gz", ".tar.gz"
REFERENCES = "references"


def run_hidden(check: Check, context: CheckContext) -> CheckResult:
    """Return what the hidden tests find of an agent's work; raises CheckError where they cannot be run.

    Beside them run tests that expect something else (`changed_tests`): what passes these too has no credit.
    """
    hidden = hidden_archive(check)
    archive = context.workspace.archive
    if archive is None:
        raise CheckError("a check of kind 'tests' needs a workspace; name its archive in the scenario")
    environment = context.workspace.environment or _environment(archive, context.environment)
    try:
        context.workspace.secure()
        base = read_base(archive, tuple(check.params.get("protected", ())))
        attempt = WorkUnderTest(
            check=check,
            context=context,
            base=base.without(check.params.get("removed", ())),
            entries={entry.name: entry for entry in read_archive(hidden)},
            environment=environment,
        )
        return attempt.result()
    except (ArchiveProblem, OSError) as error:
        raise CheckError(f"cannot make the tree of the hidden tests: {error}") from error


def _environment(archive: WorkspaceArchive, stamp: str | None) -> BuiltEnvironment | None:
    if stamp is None:
        return None
    try:
        return find_built(suite_folder(archive), stamp)
    except TfgrpoError as error:
        raise CheckError(str(error)) from error


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
