"""A job of pytest: its flags, and what is said of a run that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.feedback.training import FakeStarter, request

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan, PytestWork
from pytest_tfgrpo.runs.journal.journal import encode
from pytest_tfgrpo.storage.kept_states import KeptState

START = ("run", {"phases": [{"epoch": 1, "mode": "train", "scenarios": ["a"], "rollouts": 10}]})


def work(folder: Path, start: FakeStarter, now: list[float], **plan: Any) -> PytestWork:
    at: KeptState[Any] = KeptState("one", "running", "one", 1)
    job = TrainingJob(
        request=request(), order=1, event_id="", at=at, status={}, cut={}, started="", spent_usd=0.0,
        ran_s=0.0, stopping=False,
    )  # fmt: skip
    scrubber = LoopScrubber(b"k" * 32)
    return PytestWork(job, folder, PytestPlan(project=folder, **plan), start, scrubber, lambda: now[0])


def write(folder: Path, made: int) -> None:
    run = folder / "out" / "suite" / "runs" / "r1"
    run.mkdir(parents=True, exist_ok=True)
    rollouts = [("rollout", {"epoch": 1, "mode": "train", "rollout_id": str(n)}) for n in range(made)]
    lines = [encode(n, name, data) for n, (name, data) in enumerate([START, *rollouts], 1)]
    (run / JOURNAL).write_bytes(b"".join(lines))


@pytest.mark.parametrize("library", [None, Path("/lib.json")])
def test_a_run_starts_from_a_library_only_where_there_is_one(tmp_path: Path, library: Path | None) -> None:
    start = FakeStarter()
    work(tmp_path, start, [0.0], library=library)
    named = [flag for flag in start.made[0].command if flag.startswith("--tfgrpo-library")]
    assert named == ([] if library is None else ["--tfgrpo-library=/lib.json"])
    assert not [flag for flag in start.made[0].command if flag.startswith("--tfgrpo-epochs")]


def test_the_time_left_follows_from_what_was_made_since_the_first_look(tmp_path: Path) -> None:
    now = [100.0]
    made = work(tmp_path, FakeStarter(), now)
    assert made.look() is None
    assert made.parts() == {}, "it has no journal yet"
    now[0] = 200.0
    write(tmp_path, 4)
    assert made.look() is None
    assert "eta_seconds" not in made.parts()["progress"], "nothing was made while somebody looked"
    now[0] = 208.0
    write(tmp_path, 6)
    assert made.look() is None
    assert made.parts()["progress"]["eta_seconds"] == 16.0  # 4 are left, at 2 in 8 seconds
