"""Pooling: what earlier runs of the same actor and judge show about lessons, from their small files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.lessons import Exposure, Library
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.core.wire import Json, to_wire
from pytest_tfgrpo.harness.learning.attribution.exposures import (
    EARLIER,
    UNREAD,
    RunExposures,
    content_key,
    measure_of,
    read,
    record_of,
    within,
    write,
)
from pytest_tfgrpo.harness.run.journal_contents import list_runs, load_run

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
            complaints.append(f"run {folder.name} is left out of the lesson effects: {error}")
    return found, complaints


def earlier_exposures(
    out: Path | None,
    task_id: str,
    library: Library,
    *,
    stamps: Mapping[str, str],
    identities: Mapping[str, Json],
    settings: SettingValues,
) -> dict[str, Json]:
    """Return what the runs so far show of the lessons in `library`, as found before a run; empty if nothing.

    Only runs of the same actor and judge count. A lesson's key holds the stamp of its prompt pack, so those
    learned or tried under another pack do not.
    """
    keys = frozenset(map(content_key, library.experiences))
    if out is None or not keys or not settings["lesson_dropout"]:
        return {}
    measure = measure_of(stamps, identities, settings)
    found, complaints = records(list_runs(out, task_id))
    preflight: dict[str, Json] = {UNREAD: complaints} if complaints else {}
    rows: list[Exposure] = []
    for run in reversed([run for run in found if run.measure == measure]):
        rows = within(run.rows, keys) + rows
        if len(rows) >= MAX_EARLIER:
            break
    return preflight | ({EARLIER: to_wire(rows[-MAX_EARLIER:])} if rows else {})
