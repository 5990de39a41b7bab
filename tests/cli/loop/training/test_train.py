"""The command ``tfgrpo loop train``, and what ``tfgrpo loop status`` says of jobs."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from support.loop_events import trajectory
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    with closing(open_bus("embedded:loop-bus.db")) as bus:
        bus.publish([trajectory("a", metadata={"model": "qwen"})])
    return tmp_path


def test_a_manual_request_is_queued_and_can_be_cancelled(folder: Path) -> None:
    assert "training" not in tfgrpo("loop", "status")
    job_id = tfgrpo("loop", "train", "--sample-size", "7", "--priority", "high").split()[1]
    with closing(open_bus(f"embedded:{folder / 'loop-bus.db'}")) as bus:
        (job,) = TrainingJobs(bus, "test").listed()
        (_, event) = bus.replay("RL_TRAINING")
    asked = job.request.payload
    assert (job.id, asked["trigger_reason"], asked["priority"]) == (job_id, "manual", "high")
    assert asked["training_config"]["dataset"]["sample_size"] == 7
    assert asked["training_config"]["base_model"] == "qwen"
    assert json.loads(event.data)["status"] == "queued"
    shown = tfgrpo("loop", "status")
    assert f"1 training job: {job_id}" in shown
    assert "no service with this loop.toml runs jobs" in shown
    assert json.loads(tfgrpo("loop", "status", "--json"))["training"]["queued"] == [job_id]
    assert tfgrpo("loop", "train", "--cancel", job_id[:8]) == f"cancelled  {job_id}\n"
    assert "unchanged" in tfgrpo("loop", "train", "--cancel", job_id)
    assert f"{job_id} cancelled" in " ".join(tfgrpo("loop", "status").split())


def test_where_a_project_is_named_somebody_may_run_it(folder: Path) -> None:
    (folder / "loop.toml").write_text('[training]\nproject = "suite"\n')
    tfgrpo("loop", "train")
    assert "runs jobs" not in tfgrpo("loop", "status")


@pytest.mark.parametrize("wanted", ["", "zz"])
def test_a_job_that_is_not_there_cannot_be_cancelled(folder: Path, wanted: str) -> None:
    tfgrpo("loop", "train")
    assert "no job has an id" in tfgrpo("loop", "train", "--cancel", wanted, code=1)


@pytest.mark.parametrize("size", ["0", "-1", "x"])
def test_a_sample_has_a_size(folder: Path, size: str) -> None:
    assert "must be a number" in tfgrpo("loop", "train", f"--sample-size={size}", code=2)
