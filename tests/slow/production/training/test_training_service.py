"""The service as a process that runs jobs of pytest."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.feedback.training import payload, statuses
from support.feedback.training_service import (
    PATIENCE_S,
    Service,
    bring,
    calls_of,
    configure,
    count_calls,
    has_reached,
    make_project,
    resumed,
    runs_once,
    train_elsewhere,
    versions_at,
    wait,
)

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.process import KEEPER
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path)
    found = Service(tmp_path)
    yield found
    found.end(signal.SIGKILL)


def test_a_job_learns_from_what_is_on_the_bus(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=payload()))
        service.start()
        assert wait(bus, service.folder) == "completed", statuses(bus)[-1]
        last = statuses(bus)[-1]
    report = json.loads((runs_once(service.folder) / "report.json").read_text())
    assert last["evaluation_results"]["holdout_reward"] == report["epochs"][-1]["gt_score"]["mean"]
    assert last["metadata"]["gate"] == report["gate"]["outcome"]
    assert versions_at(service.folder)[-1] == last["metadata"]["policy_version"]
    assert last["progress"]["percent_complete"] == 100.0
    service.end(signal.SIGTERM)
    assert "stopped" in (service.folder / "serve.log").read_text()


def test_a_job_of_a_service_is_cancelled_by_another_process(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    slow = "import time\n\n\ndef pytest_collection_modifyitems():\n    time.sleep(60)\n"
    (service.folder / "suite" / "conftest.py").write_text(slow)
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        jobs = TrainingJobs(bus, "test")
        jobs.submit(TrainingRequest(payload=payload()))
        service.start()
        until = time.monotonic() + PATIENCE_S
        while not list(service.folder.glob("loop-jobs/*/process.lock")) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2.0)
        assert jobs.cancel(derived_id("job", "one")) == "running"
        assert wait(bus, service.folder) == "cancelled"


def test_a_service_that_stopped_for_longer_than_its_lease_ends_nothing_that_another_goes_on_with(
    service: Service,
) -> None:
    configure(service.folder, "embedded:bus.db")
    count_calls(service.folder)
    other = Service(service.folder)
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=payload()))
        service.start()
        until = time.monotonic() + PATIENCE_S
        while not list(service.folder.glob("loop-jobs/*")) and time.monotonic() < until:
            time.sleep(0.05)
        other.start()
        while not has_reached(service.folder, 5) and time.monotonic() < until:
            time.sleep(0.05)
        with closing(sqlite3.connect(service.folder / "bus.db", timeout=30)) as db:
            db.execute("BEGIN IMMEDIATE")  # the service shall stop outside of a transaction
            service.signal(signal.SIGSTOP)
        while not list(service.folder.glob(f"loop-jobs/**/{KEEPER}")) and time.monotonic() < until:
            time.sleep(0.05)
        service.signal(signal.SIGCONT)
        try:
            assert wait(bus, service.folder) == "completed", statuses(bus)[-1]
        finally:
            other.end(signal.SIGKILL)
        states = [one["status"] for one in statuses(bus)]
    assert states[:3] == ["queued", "running", "running"]
    assert (resumed(service.folder), set(calls_of(service.folder).values())) == (0, {1})


def test_weights_are_trained_by_another_program_with_rows_of_the_evidence(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    train_elsewhere(service.folder)
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        asked = payload(algorithm="ppo", evaluation={"holdout_size": 0.3})
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=asked))
        service.start()
        assert wait(bus, service.folder) == "completed", statuses(bus)[-1]
        last = statuses(bus)[-1]
    assert last["artifacts"]["final_checkpoint"] == "trained"
    assert last["metadata"]["validation"]["outcome"] == "needs_approval"
    assert last["metrics"]["current"]["rows"] == [6, 3]
    compared, written, *_ = last["metadata"]["rows"]
    assert "0 tasks overlapping the dev or eval split left out" in compared
    assert written.startswith("rollouts.jsonl: 6 rows from 2 groups")


def test_a_checkpoint_is_run_against_the_deployed_version_and_becomes_one(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    count_calls(service.folder)
    train_elsewhere(service.folder, "--tfgrpo-actor=python:agent:{checkpoint}")
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        asked = payload(algorithm="ppo", evaluation={"holdout_size": 0.3})
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=asked))
        service.start()
        assert wait(bus, service.folder) == "completed", statuses(bus)[-1]
        last = statuses(bus)[-1]
        version = Policies(bus, FolderArtifacts(service.folder / "loop-jobs")).read("v2")
    assert last["metadata"]["policy_version"] == "v2"
    assert (version.checkpoint, version.actor) == ("trained", "python:agent:trained")
    assert version.validation is not None
    assert version.validation.improvement_over_baseline == 0.0
    assert "safety suite bias: 12 of 12 failed" in "; ".join(version.validation.reasons)
    assert version.validation.outcome == "rejected"
    assert set(calls_of(service.folder).values()) == {1}
