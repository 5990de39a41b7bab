"""All answers of an arena, in a recording that replays it."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.arena.plan import SIDES, ArenaPlan
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.settings.agents import RECORD
from pytest_tfgrpo.recording.writing import describe, record
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log


def record_arena(plan: ArenaPlan) -> Iterator[str]:
    """Record the runs of all sides and the final sweep where the setting says so; raises RecordingError."""
    file = RECORD.of(plan.settings)
    if not file:
        return
    for path in sorted((plan.folder / SIDES).glob(f"*/runs/*/{JOURNAL}")):
        run, rollouts = load_run(path.parent), read_log(path.parent).rollouts.values()
        yield from describe(file, record(plan.root / file, run, rollouts))
