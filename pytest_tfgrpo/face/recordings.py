"""The commands ``tfgrpo record ...``: what is in a recording, whether it is sound, what can go."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.face.project import Project

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.recording.upkeep import Use


def stat(arguments: argparse.Namespace) -> Iterator[str]:
    """Tell what is in a recording: entries by actor and model, size, dates, redactions."""
    from pytest_tfgrpo.harness.recording import upkeep

    yield from upkeep.stat(Path(arguments.file))


def verify(arguments: argparse.Namespace) -> Iterator[str]:
    """Verify a recording: form, order, checksums, fingerprints, secrets; exit 1 names each line."""
    from pytest_tfgrpo.harness.recording import upkeep

    file = Path(arguments.file)
    problems = list(upkeep.verify(file))
    if problems:
        raise RecordingError("\n".join(problems))
    yield f"ok  {file}"


def add(project: Project, file: Path, name: str) -> Iterator[str]:
    """Record the run called `name` after it was made; raises RecordingError and JournalError.

    What an agent left in its workspace is kept only while a run that is to be recorded is made, so that a run
    whose checks or test functions may look there is refused.
    """
    from pytest_tfgrpo.face.archive import find_run
    from pytest_tfgrpo.harness.checks.registry import KINDS
    from pytest_tfgrpo.harness.recording.writing import check_recordable, describe, record
    from pytest_tfgrpo.harness.runs import load_run, read_log

    folder = find_run(project, name)
    run = load_run(folder)
    for scenario in () if run.settings.get("record") else run.scenarios:
        blind = all(check.kind in KINDS and not KINDS[check.kind].blocking for check in scenario.checks)
        if scenario.checker is not None or not blind:
            raise RecordingError(
                f"run {run.run_id} was made without --tfgrpo-record, which would have kept the files that "
                f"the checks of {scenario.id!r} may look at; make it again with it"
            )
    check_recordable(file, run.identities)
    rest = () if run.status == "complete" else read_log(folder).rollouts.values()
    yield from describe(str(file), record(file, run, rest))


def prune(project: Project, file: Path, runs: Sequence[str], *, others: bool, dry: bool) -> Iterator[str]:
    """Remove what none of the `runs` uses, with `others` also actors that none of them has, unless `dry`.

    Yields what goes; raises RecordingError and JournalError.
    """
    from pytest_tfgrpo.face.archive import find_run
    from pytest_tfgrpo.harness.recording import upkeep

    uses = [_use_of(find_run(project, name)) for name in runs]
    yield from upkeep.prune(file, uses, others=others, dry=dry)


def _use_of(folder: Path) -> Use:
    from pytest_tfgrpo.harness.recording import upkeep
    from pytest_tfgrpo.harness.runs import load_run, read_log

    return upkeep.use_of(load_run(folder), read_log(folder).rollouts.values())
