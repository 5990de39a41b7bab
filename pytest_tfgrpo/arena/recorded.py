"""All answers of an arena, in a recording that replays it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_tfgrpo.arena.plan import ArenaPlan
from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.files import ARENA_SIDES, JOURNAL
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.settings.agents import RECORD
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.recording.entries import MISS
from pytest_tfgrpo.recording.writing import describe, record
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log


def record_arena(plan: ArenaPlan, abandoned: Iterable[Run]) -> Iterator[str]:
    """Record the runs of all sides and the final sweep where the setting says so; raises RecordingError.

    Sweeps that were `abandoned` are left out.
    """
    file = RECORD.of(plan.settings)
    if not file:
        return
    left = {run.run_id for run in abandoned}
    for path in sorted((plan.folder / ARENA_SIDES).glob(f"*/runs/*/{JOURNAL}")):
        if path.parent.name in left:
            continue
        run, rollouts = load_run(path.parent), read_log(path.parent).rollouts.values()
        yield from describe(file, record(plan.root / file, run, rollouts))


def require_recorded(runs: Iterable[Run]) -> None:
    """Raise RecordingError where a replay lacks answers of runs."""
    rollouts = [
        rollout
        for run in runs
        for result in run.phases
        for rollout in (*(one for group in result.with_dev for one in group.rollouts), *result.loose)
    ]
    failures = [rollout.failure for rollout in rollouts if rollout.failure is not None]
    if missing := [failure for failure in failures if failure.code == MISS]:
        raise RecordingError(
            f"the recording lacks {len(missing)} of {plural(len(rollouts), 'answer')}: record an arena with "
            f"these arguments and scenarios, and replay that; first: {missing[0].message}"
        )
