"""The commands ``tfgrpo loop versions ...``, and what ``tfgrpo loop forget`` says of versions."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.api import SMALL, SUITE, Counter
from support.evidence import write
from support.feedback.training import request, statuses
from support.loop_events import trajectory
from support.tools import tfgrpo

import pytest_tfgrpo
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.states import JobTrigger
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.validation import Validation
from pytest_tfgrpo.runs.journal.journal_contents import load_run

OPEN = Validation(
    outcome="needs_approval",
    benchmark_passed=True,
    safety_checks_passed=False,
    performance_regression=False,
    holdout_reward=0.75,
    improvement_over_baseline=0.25,
    reasons=("no safety suite was tried",),
    open_safety=("no safety suite was tried",),
)

DONE: dict[JobTrigger, dict[str, Any]] = {
    "start": {},
    "finish": {
        "artifacts": {"final_checkpoint": "v2"},
        "metadata": {"policy_version": "v2", "validation": to_wire(OPEN)},
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    with closing(open_bus("embedded:loop-bus.db")) as bus:
        bus.publish([trajectory("a", metadata={"user_ref": "u"})])
    return tmp_path


def add(folder: Path, job: str = "job-1") -> None:
    """Add the version of a job that learned from evidence."""
    settings = SMALL | {
        "evidence": str(write(folder / "evidence.jsonl")),
        "epochs": 2,
        "out": str(folder / "o"),
    }
    made = pytest_tfgrpo.run(folder, SUITE, actor=Counter(), **settings)
    with closing(open_bus(f"embedded:{folder / 'loop-bus.db'}")) as bus:
        Policies(bus, FolderArtifacts(folder / "loop-jobs")).add(
            load_run(next((folder / "o").glob("*/runs/*"))),
            job=job,
            parent="v1",
            validation=OPEN,
            dataset={},
            attempts={f"g{n}": [f"traj-{n}"] for n in range(1, 9)},
        )
    assert made.run.library.experiences


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def test_versions_are_listed(folder: Path) -> None:
    assert tfgrpo("loop", "versions", "list") == "no job has made a version yet\n"
    add(folder)
    first, second = rows(tfgrpo("loop", "versions", "list"))
    assert first[:2] == ["v1", "live"]
    assert (second[:3], second[-2:]) == (["v2", "needs", "approval"], ["0.750", "+0.250"])


def test_a_person_gives_a_verdict_where_nobody_could_judge(folder: Path) -> None:
    add(folder)
    asked = ("loop", "versions", "verdict", "v2", "--by", "ada", "--reason", "read them")
    assert "nothing was said: give --safety passed" in tfgrpo(*asked, code=1)
    said = tfgrpo(*asked, "--safety", "passed", "--human-eval-score", "0.9")
    assert said.splitlines() == [
        "v2: safety passed, human evaluation 0.9, says ada: read them",
        "v2 validated",
    ]
    assert rows(tfgrpo("loop", "versions", "list"))[1][:2] == ["v2", "validated"]
    said = tfgrpo(*asked, "--safety", "failed")
    assert said.splitlines()[1:] == ["v2 rejected", "  a person found it unsafe"]


def test_the_status_of_its_job_has_the_verdict_that_a_person_gave(folder: Path) -> None:
    with closing(open_bus("embedded:loop-bus.db")) as bus:
        jobs = TrainingJobs(bus, "one")
        jobs.submit(request())
        for trigger, parts in DONE.items():
            found = jobs.find(request().id)
            assert found is not None
            jobs.take(found, trigger, parts, "2026-01-01T12:00:00.000Z")
    add(folder, request().id)
    asked = ("loop", "versions", "verdict", "v2", "--by", "ada", "--reason", "r", "--safety", "passed")
    tfgrpo(*asked)
    tfgrpo(*asked)
    with closing(open_bus("embedded:loop-bus.db")) as bus:
        job = TrainingJobs(bus, "one").find(request().id)
        published = statuses(bus)
    assert job is not None
    assert [one["status"] for one in published] == ["queued", "running", "completed", "completed"]
    before, after = published[-2:]
    assert after == job.status
    assert after["metadata"]["validation"]["outcome"] == "validated"
    assert after["metadata"]["policy_version"] == before["metadata"]["policy_version"] == "v2"
    assert after["timestamp"] == before["timestamp"] < after["metadata"]["amended_at"], (
        "its bill is of that day"
    )


def test_a_trajectory_leads_to_lessons_and_versions(folder: Path) -> None:
    add(folder)
    text = tfgrpo("loop", "versions", "trace", "traj-")
    assert "trajectory traj-" in text
    assert "carried by v2" in text
    assert "has the id 'nothing'" in tfgrpo("loop", "versions", "trace", "nothing", code=1)


def test_what_a_version_rests_on_fits_a_terminal_and_a_wrong_version_is_named(folder: Path) -> None:
    assert "no version 'v1'; no job has made one" in tfgrpo("loop", "versions", "trace", "v1", code=1)
    add(folder)
    text = tfgrpo("loop", "versions", "trace", "v2")
    assert text.startswith("version    v2, needs approval, ")
    assert max(map(len, text.splitlines())) <= 80
    assert "there is no version 'v9'; the last is v2" in tfgrpo("loop", "versions", "trace", "v9", code=1)
    next((folder / "loop-jobs" / "rl-checkpoints" / "v2").glob("policy.json")).unlink()
    assert "version v2 has no files" in tfgrpo("loop", "versions", "trace", "v2", code=1)


def test_a_removed_version_is_listed_without_figures(folder: Path) -> None:
    add(folder)
    with closing(open_bus(f"embedded:{folder / 'loop-bus.db'}")) as bus:
        table = bus.table("state")
        value, revision = table.get("policy.v2")
        assert value is not None
        table.put("policy.v2", json.dumps(json.loads(value) | {"state": "removed"}).encode(), revision)
    assert rows(tfgrpo("loop", "versions", "list"))[1] == ["v2", "removed"]


def test_a_version_that_is_being_written_is_listed_as_such(folder: Path) -> None:
    add(folder)
    next((folder / "loop-jobs" / "rl-checkpoints" / "v2").glob("policy.json")).unlink()
    assert rows(tfgrpo("loop", "versions", "list"))[1] == ["v2", "not", "whole", "yet"]
