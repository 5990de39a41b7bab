"""The commands ``tfgrpo record ...``: inspect, verify, extend and prune recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.lookup import find_run
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.settings.agents import RECORD
from pytest_tfgrpo.recording import maintenance
from pytest_tfgrpo.recording.writing import check_recordable, describe, record
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log
from pytest_tfgrpo.scoring.checks.registry import KINDS

if TYPE_CHECKING:
    from pytest_tfgrpo.recording.maintenance import RunUse


def stat(arguments: Arguments) -> Iterator[str]:
    """Print what a recording contains."""
    yield from maintenance.stat(Path(arguments.file))


def verify(arguments: Arguments) -> Iterator[str]:
    """Verify a recording; print each bad line, and exit with 1."""
    file = Path(arguments.file)
    problems = list(maintenance.verify(file))
    if problems:
        raise RecordingError("\n".join(problems))
    yield f"ok  {file}"


def add(arguments: Arguments) -> Iterator[str]:
    """Record a finished run (default: the latest), as --tfgrpo-record would have.

    What an agent left in its workspace is kept only while a run that is to be recorded is made, so that a run
    whose checks or test functions may look there is refused.
    """
    file, folder = Path(arguments.file), find_run(project_of(arguments), arguments.run)
    run = load_run(folder)
    for scenario in () if RECORD.of(run.settings) else run.scenarios:
        blind = all(check.kind in KINDS and not KINDS[check.kind].blocking for check in scenario.checks)
        if scenario.checker is not None or not blind:
            raise RecordingError(
                f"run {run.run_id} was made without --tfgrpo-record, so it did not keep the files that the "
                f"checks of {scenario.id!r} may read; run it again with --tfgrpo-record"
            )
    check_recordable(file, run.identities)
    rest = () if run.status == "complete" else read_log(folder).rollouts.values()
    yield from describe(str(file), record(file, run, rest))


def prune(arguments: Arguments) -> Iterator[str]:
    """Remove from a recording what a run (default: the latest) does not use."""
    project = project_of(arguments)
    uses = [_use_of(find_run(project, name)) for name in arguments.run or ["latest"]]
    yield from maintenance.prune(Path(arguments.file), uses, others=arguments.others, dry=arguments.dry_run)


def _use_of(folder: Path) -> RunUse:
    return maintenance.use_of(load_run(folder), read_log(folder).rollouts.values())
