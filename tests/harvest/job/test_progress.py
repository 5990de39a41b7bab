"""Progress of a harvest: stages of a candidate, and how long the rest may take."""

from types import SimpleNamespace

import pytest
from support.harvests import make_row

from pytest_tfgrpo.harvest.fixes import HarvestStatus
from pytest_tfgrpo.harvest.job.progress import (
    HarvestEstimate,
    WorkerProgress,
    estimate_from_round,
    estimate_from_rows,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that the test moves."""
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr("pytest_tfgrpo.harvest.job.progress.time.monotonic", lambda: made.now)
    return made


def test_the_estimate_follows_the_first_round_of_runs(clock: SimpleNamespace) -> None:
    worker, idle = WorkerProgress(), WorkerProgress()
    worker.begin(3, "fix-1")
    worker.enter("environment")
    clock.now = 100.0
    worker.enter("runs", 10)
    for clock.now in (100.0, 110.0, 120.0):
        worker.start_run()
        assert estimate_from_round([worker, idle], 8) is None
    clock.now = 130.0
    worker.start_run()
    assert estimate_from_round([worker, idle], 8) == HarvestEstimate(
        least_s=160.0, most_s=400.0, candidates=8, basis="the first 3 runs of one took 30 s"
    )
    assert worker.running is not None
    assert (worker.running.number, worker.running.run, worker.running.began_s) == (3, 4, 0.0)
    worker.end()
    assert worker.running is None


def test_another_recipe_begins_its_runs_anew() -> None:
    worker = WorkerProgress()
    worker.begin(1, "fix-1")
    worker.enter("runs", 10)
    worker.start_run()
    worker.enter("environment")
    worker.enter("runs", 9)
    worker.start_run()
    assert worker.running is not None
    assert (worker.running.run, worker.running.runs) == (1, 9)


def test_the_estimate_from_earlier_harvests_leaves_out_what_was_no_candidate() -> None:
    rows = [
        make_row(1, elapsed_s=10.0),
        make_row(2, elapsed_s=20.0, status=HarvestStatus.VALIDATION_FAILED),
        make_row(3, elapsed_s=0.5, status=HarvestStatus.SKIPPED),
    ]
    assert estimate_from_rows(rows, 8, 2) == HarvestEstimate(
        least_s=60.0, most_s=60.0, candidates=8, basis="2 of earlier harvests took 15 s each"
    )
    assert estimate_from_rows(rows[2:], 8, 2) is None
    assert estimate_from_rows(rows, 0, 2) is None
