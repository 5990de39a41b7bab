"""The scenario of a proven job joins a suite, with the family that its files give it."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain, write_atomic
from pytest_tfgrpo.harvest.fixes import HarvestRow, HarvestStatus
from pytest_tfgrpo.harvest.suite.harvest_log import HarvestLog
from pytest_tfgrpo.harvest.suite.provenance import read_provenance
from pytest_tfgrpo.harvest.suite.suite_files import SuitePaths, environment_path, resplit, tags_of


def join_suite(folder: Path, scenario: str, suite: Path) -> bool:
    """Copy the scenario of a job's folder into a suite; False where it joined before. Raises StoreError.

    The scenario's own file is copied last, and its line in the suite's log written after it.
    """
    given, taken = SuitePaths(suite=folder, id=scenario), SuitePaths(suite=suite, id=scenario)
    provenance = read_provenance(given.provenance)
    files = [
        (given.base, taken.base),
        (given.hidden, taken.hidden),
        (given.reference, taken.reference),
        (given.provenance, taken.provenance),
        (given.scenario, taken.scenario),
    ]
    if (stamp := provenance.validation.environment) is not None:
        files.insert(0, (environment_path(folder, stamp), environment_path(suite, stamp)))
    with HarvestLog(suite) as log:
        if provenance.commit in log.rows:
            return False
        for source, target in files:
            _copy(source, target)
        row = HarvestRow(
            commit=provenance.commit,
            id=scenario,
            status=HarvestStatus.VALIDATED,
            committed_at=provenance.committed_at,
            tests=len(provenance.validation.fail_to_pass),
            tags=tuple(tags_of(provenance)),
        )
        log.append([row])
        resplit(suite, log.rows.values())
    return True


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, [read_plain(source)])
    except OSError as error:
        raise StoreError(f"cannot copy {source} to {target}: {error.strerror or error}") from error
