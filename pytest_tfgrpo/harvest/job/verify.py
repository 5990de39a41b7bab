"""Verification: the scenarios of a harvested suite are proven again, from its own files alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from pytest_tfgrpo.core.errors import SettingError, StoreError, TfgrpoError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.fixes import FixValidation, HarvestStatus, RootCause
from pytest_tfgrpo.harvest.locked_folder import WORK, locked_folder
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees, by_name
from pytest_tfgrpo.harvest.proof.tests_to_run import files_to_run
from pytest_tfgrpo.harvest.proof.validation import RunTests, ValidationPlan, validate
from pytest_tfgrpo.harvest.proof.work_tree import WorkTree
from pytest_tfgrpo.harvest.suite.harvest_log import HarvestLog, read_log_of
from pytest_tfgrpo.harvest.suite.provenance import Provenance, read_provenance
from pytest_tfgrpo.harvest.suite.suite_files import PROVENANCE, SuitePaths, scenario_value
from pytest_tfgrpo.sandbox.archives import ArchiveProblem, read_archive
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.checks.hidden.protected import is_test
from pytest_tfgrpo.scoring.runners.protocol import Isolation
from pytest_tfgrpo.suite.documents.document import Problem, Refused
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.suite.scenario_files import LINES, candidates_of

FindEnvironment = Callable[[Path, str], BuiltEnvironment]
"""Finds the environment of a suite by stamp; raises TfgrpoError that says how to build it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedScenario:
    """What came of proving a scenario again."""

    id: str
    cause: RootCause | None
    """None: it is proven."""
    reason: str
    tests: int
    elapsed_s: float
    done: int
    total: int
    edited: tuple[str, ...] = ()
    """What of its check is not as it was proven, though it may be so."""


def verify(
    suite: Path, run: RunTests, find: FindEnvironment, *, isolation: Isolation
) -> Iterator[VerifiedScenario]:
    """Prove each scenario of a suite again, as it was proven; yields each when it is done.

    A scenario whose provenance is gone or damaged is not proven. Raises SettingError where there is nothing
    to prove or another process works on the suite, StoreError where the log is damaged.
    """
    written = _harvested(suite)
    if not written:
        raise SettingError(
            f"{suite} holds no harvested scenario; harvest some with "
            f"tfgrpo harvest --into {quote(str(suite))}"
        )
    with HarvestLog(suite), locked_folder(WORK) as folder:
        work = WorkTree(folder / "tree")
        for done, (id_, scenario) in enumerate(written.items(), 1):
            began = time.monotonic()
            tests, reason, edited = 0, "", tuple[str, ...]()
            cause: RootCause | None = RootCause.SNAPSHOT_INTEGRITY
            try:
                provenance = read_provenance(SuitePaths(suite=suite, id=id_).provenance)
            except StoreError as error:
                reason = line(str(error), 600)
            else:
                tests = len(provenance.validation.fail_to_pass)
                edited, cause, reason = _verify(suite, provenance, scenario, work, run, find, isolation)
            yield VerifiedScenario(
                id=id_,
                cause=cause,
                reason=reason,
                tests=tests,
                elapsed_s=round(time.monotonic() - began, 3),
                done=done,
                total=len(written),
                edited=edited,
            )


class _WrittenScenario(NamedTuple):
    """A scenario as it is written in a suite, by a harvest or by an import."""

    path: Path
    value: Json = None
    """None: it has a file of its own, which is not read yet."""


def _harvested(suite: Path) -> dict[str, _WrittenScenario]:
    """Return the scenarios that a harvest proved by id, those too that came back by an import.

    Raises StoreError where the log is damaged, SettingError where a file of JSON lines is.
    """
    proven = {path.stem for path in (suite / PROVENANCE).glob("*.json")}
    proven |= {row.id for row in read_log_of(suite).values() if row.status is HarvestStatus.VALIDATED}
    paths = {id_: SuitePaths(suite=suite, id=id_).scenario for id_ in proven}
    found = {id_: _WrittenScenario(path) for id_, path in paths.items() if path.is_file()}
    if lacking := proven - found.keys():
        found |= _imported(suite, lacking)
    return dict(sorted(found.items()))


def _imported(suite: Path, ids: Collection[str]) -> Iterator[tuple[str, _WrittenScenario]]:
    """Yield those of scenarios that stand in the suite's files of JSON lines; raises SettingError."""
    for path in sorted(suite.glob(f"*.scenarios.{LINES}")):
        try:
            for one in candidates_of(path):
                if isinstance(one, Problem):
                    raise SettingError(f"{path}:{one.line}: {one.message}; restore it")
                id_ = one.data.get("id") if isinstance(one.data, dict) else None
                if isinstance(id_, str) and id_ in ids:
                    yield id_, _WrittenScenario(path, one.data)
        except Refused as error:
            raise SettingError(f"{path}:{error.problem.line}: {error}; restore it") from error


def _verify(
    suite: Path,
    provenance: Provenance,
    scenario: _WrittenScenario,
    work: WorkTree,
    run: RunTests,
    find: FindEnvironment,
    isolation: Isolation,
) -> tuple[tuple[str, ...], RootCause | None, str]:
    """Return what was edited, and whether a fix is proven again; raises StoreError."""
    try:
        trees = _trees(suite, provenance)
        edited = _edited(scenario, provenance)
    except (ArchiveProblem, OSError) as error:
        return (), RootCause.SNAPSHOT_INTEGRITY, line(str(error), 300)
    stamp = provenance.validation.environment
    try:
        built = None if stamp is None else find(suite, stamp)
    except StoreError:
        raise
    except TfgrpoError as error:
        return edited, RootCause.ENVIRONMENT, line(str(error), 300)
    recipe = provenance.recipe
    fix = trees.tree("fix")
    tests = tuple(name for name in provenance.protected if name in fix)
    listed = (*provenance.validation.fail_to_pass, *provenance.validation.pass_to_pass)
    files = dict.fromkeys(test.partition("::")[0] for test in listed)
    if not files.keys() <= fix.keys():  # a report of JUnit named modules in place of files
        files = dict.fromkeys(name for name in tests if is_test(name))
    again = files_to_run(files, provenance.sources, fix.keys(), recipe.tests, recipe.folder)
    plan = ValidationPlan(
        command=recipe.command,
        files=again,
        tests=tests,
        environment=built,
        isolation=isolation,
        relaxed=recipe.relaxed,
        protected=recipe.protected,
        changes=provenance.validation.changes or (),
    )
    return edited, *_compared(provenance.validation, validate(trees, plan, work, run))


def _trees(suite: Path, provenance: Provenance) -> FixTrees:
    """Return the trees that the archives hold; raises ArchiveProblem, OSError."""
    paths = SuitePaths(suite=suite, id=provenance.id)
    parts = []
    for path in (paths.base, paths.hidden, paths.reference):
        name = path.relative_to(suite).as_posix()
        if not path.exists():
            raise ArchiveProblem(f"{name} is missing; restore it")
        if stamp_bytes(path.read_bytes()) != provenance.archives.get(name):
            raise ArchiveProblem(f"{name} is not the archive that was proven: its sha256 differs; restore it")
        parts.append(by_name(read_archive(path)))
    base, hidden, reference = parts
    return FixTrees(
        base=base,
        hidden=hidden,
        reference=reference,
        removed=provenance.removed,
        removed_tests=provenance.removed_tests,
    )


def _edited(scenario: _WrittenScenario, provenance: Provenance) -> tuple[str, ...]:
    """Return what of a scenario's check was edited; raises ArchiveProblem where it may not be so, OSError.

    Tests may be taken out of its lists, as long as one is left that the fix makes pass; what else its score
    depends on may be set otherwise.
    """
    path, value = scenario
    try:
        value = value or parse_yaml(path.read_text("utf-8", "replace")).value
    except Refused as error:
        raise ArchiveProblem(f"{path.name}:{error.problem.line}: {error}; restore it") from error
    proven = scenario_value(provenance, "")
    checks = value.get("checks") if isinstance(value, dict) else None
    given = checks if isinstance(checks, list) else []
    found = [one for one in given if isinstance(one, dict) and one.get("kind") == "tests"]
    if len(found) != 1:
        raise ArchiveProblem(f"{path.name} has {len(found)} checks of kind 'tests', not one; restore it")
    (check,), (was,) = found, proven["checks"]
    if value.get("workspace") != proven["workspace"]:
        raise ArchiveProblem(f"the workspace in {path.name} is not the one that was proven; restore it")
    for key in ("runner", "hidden", "removed"):
        if check.get(key) != was.get(key):
            raise ArchiveProblem(
                f"{key} in {path.name} is {check.get(key)!r}, not {was.get(key)!r}; restore it"
            )
    if check.get("changes") != was.get("changes"):
        raise ArchiveProblem(f"changes in {path.name} are not those that were proven; restore them")
    if check.get("hidden_sha256", was["hidden_sha256"]) != was["hidden_sha256"]:
        raise ArchiveProblem(
            f"hidden_sha256 in {path.name} is not of the archive that was proven; restore it"
        )
    for key in ("fail_to_pass", "pass_to_pass"):
        named = check.get(key)
        tests = named if isinstance(named, list) else []
        if odd := [str(one) for one in tests if one not in was[key]]:
            raise ArchiveProblem(f"{key} in {path.name} lists what was not proven: {few(odd, 3)}")
    if not isinstance(check.get("fail_to_pass"), list) or not check["fail_to_pass"]:
        raise ArchiveProblem(f"fail_to_pass in {path.name} is empty; restore it")
    return tuple(_differing(check, was))


def _differing(check: Mapping[str, Json], was: Mapping[str, Json]) -> Iterator[str]:
    for key in sorted({*check, *was} - {"kind", "hidden_sha256"}):
        now, before = check.get(key), was.get(key)
        if key in ("fail_to_pass", "pass_to_pass"):
            left, all_of = len(now) if isinstance(now, list) else 0, len(was[key])
            if left != all_of:
                yield f"{all_of - left} of {plural(all_of, 'test')} taken out of {key}"
        elif now != before:
            one, other = ("not set" if value is None else short(value) for value in (now, before))
            yield f"{key} is {one}, was {other}"


def _compared(before: FixValidation, now: FixValidation) -> tuple[RootCause | None, str]:
    """Return whether all that was proven is proven again."""
    if now.cause is not None:
        return now.cause, now.reason
    lost = sorted({*before.fail_to_pass} - {*now.fail_to_pass})
    if lost:
        return RootCause.TEST_FAILURE, f"no longer from fail to pass: {few(lost, 3)}"
    lost = sorted({*before.pass_to_pass} - {*now.pass_to_pass})
    if lost:
        return RootCause.TEST_FAILURE, f"no longer from pass to pass: {few(lost, 3)}"
    changed = {*(before.changes or ())} - {*(now.changes or ())}
    if lost := sorted({test for change in changed for test in change.fails}):
        reason = f"where they expect something else they do not fail alone: {few(lost, 3)}"
        return RootCause.TEST_FAILURE, reason
    return None, ""
