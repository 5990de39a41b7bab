"""Pooling: what earlier runs of the same actor and judge show about lessons, from their small files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.lessons import Exposure, Library
from pytest_tfgrpo.core.settings.learning import LESSON_DROPOUT
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.learning.attribution.exposures import (
    EARLIER,
    MAX_BYTES,
    UNREAD,
    RunExposures,
    content_key,
    measure_of,
    read,
    read_latest,
    record_of,
    within,
    write,
)
from pytest_tfgrpo.runs.journal.journal_contents import list_runs, load_run

MAX_EARLIER = 5000
"""Most earlier groups that a run takes along, the latest of them: they are kept in its journal."""


def record(folder: Path) -> RunExposures:
    """Return the exposures of the run in `folder`: from its file, else from its journal.

    What was had from the journal is written down for the next time. Raises JournalError where neither can be
    read.
    """
    found = read(folder)
    if found is None:
        try:
            found = record_of(load_run(folder))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JournalError(f"the journal in {folder} cannot be read: {error!r}") from error
        with suppress(JournalError):
            write(folder, found)
    return found


def records(folders: Iterable[Path]) -> tuple[list[RunExposures], list[str]]:
    """Return the exposures of the runs in `folders`, and complaints about those that cannot be read."""
    found, complaints = [], []
    for folder in folders:
        try:
            found.append(record(folder))
        except JournalError as error:
            complaints.append(_complaint(folder, error))
    return found, complaints


def earlier_exposures(
    out: Path | None,
    task_id: str,
    library: Library,
    *,
    stamps: Mapping[str, str],
    identities: Mapping[str, Json],
    settings: Mapping[str, object],
) -> dict[str, Json]:
    """Return what the runs so far show of the lessons in `library`, as found before a run; empty if nothing.

    Only runs of the same actor and judge count. A lesson's key holds the stamp of its prompt pack, so those
    learned or tried under another pack do not.
    """
    keys = frozenset(map(content_key, library.experiences))
    if out is None or not keys or not LESSON_DROPOUT.of(settings):
        return {}
    measure = measure_of(stamps, identities, settings)
    rows: list[Exposure] = []
    complaints: list[str] = []
    room = MAX_BYTES
    for folder in reversed(list_runs(out, task_id)):
        try:
            found, size = _latest(folder, measure, keys, most=MAX_EARLIER - len(rows), room=room)
        except JournalError as error:
            complaints.append(_complaint(folder, error))
            continue
        rows, room = rows + found, room - size
        if len(rows) == MAX_EARLIER:
            break
        if room < 0:
            complaints.append(
                f"the first groups of run {folder.name}, and all runs before it, are left out of the lesson "
                f"effects: no more than {MAX_BYTES >> 20} MiB of exposures are read"
            )
            break
    unread: dict[str, Json] = {UNREAD: [*reversed(complaints)]} if complaints else {}
    return unread | ({EARLIER: to_wire(rows[::-1])} if rows else {})


def _latest(
    folder: Path, measure: str, keys: frozenset[str], *, most: int, room: int
) -> tuple[list[Exposure], int]:
    """Return what the run in `folder` shows last, newest first, and the bytes read: over `room` where cut."""
    found = read_latest(folder, measure=measure, keys=keys, most=most, room=room)
    if found is None:
        made = record(folder)
        rows = within(made.rows, keys) if made.measure == measure else []
        found = rows[::-1][:most], 0
    return found


def _complaint(folder: Path, error: JournalError) -> str:
    return f"run {folder.name} is left out of the lesson effects: {error}"
