"""What the tests of engine/test_breaker.py share with the slow ones."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.journal.journal_contents import read_to_resume
from support.jobs import ScriptedActor, make_job, run_job

ENDLESS = 10**9


def comparable(run: Run) -> Any:
    """Return a run without times, and without what attempts cost that are no results."""
    value = to_wire(replace(run, phases=tuple(replace(phase, loose=()) for phase in run.phases)))
    text = json.dumps(value, sort_keys=True)
    for key in ("latency_ms", "created_at", "finished_at", "started_at"):
        text = re.sub(rf'"{key}": ("[^"]*"|[0-9.e-]+)', f'"{key}": 0', text)
    return json.loads(text)


def carry_out(
    provider: Callable[[ActorCall], Any], folder: Path, **changes: Any
) -> tuple[Run, list[object], ScriptedActor]:
    actor = ScriptedActor(provider)
    run, seen = run_job(make_job(actor, folder, concurrency=6, **changes), folder / "runs" / "run1")
    return run, seen, actor


def resumed(provider: Callable[[ActorCall], Any], folder: Path) -> tuple[Run, ScriptedActor]:
    log = read_to_resume(folder / "runs" / "run1")
    log.reopen()
    run, _, actor = carry_out(provider, folder, job_resumed=log)
    return run, actor
