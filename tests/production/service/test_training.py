"""The paths of training, in process."""

import json

import pytest
from support.buses import BusPlace
from support.feedback.training import example, payload, request, states
from support.services import Local

from pytest_tfgrpo.core.events import SCHEMAS, TRAINING_STATUS, derived_id
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.service import training
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs

TOKEN = "correct-horse-battery"
ONE = derived_id("job", "one")


def sent(value: Json) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture
def local(embedded: BusPlace) -> Local:
    return Local(jobs=TrainingJobs(embedded.open(), "one"))


def test_a_request_is_queued_once_and_its_status_can_be_asked(local: Local, embedded: BusPlace) -> None:
    answer = local.post("/training/start", sent(payload()))
    assert (answer.status, answer.value) == (202, {"training_job_id": ONE, "status": "queued"})
    again = local.post("/training/start", sent(payload(requester="another")))
    assert (again.status, again.value["code"]) == (409, "duplicate_data")
    status = local.get(f"/training/{ONE.upper()}/status")
    assert (status.status, status.value["status"]) == (200, "queued")
    assert violations(SCHEMAS[TRAINING_STATUS], status.value) == []
    assert states(embedded.open()) == ["queued"]


def test_the_same_watermark_twice_is_a_duplicate(local: Local) -> None:
    mark: dict[str, Json] = {"metadata": {"watermark": {"RL_TRAJECTORIES": 7}}}
    codes = [local.post("/training/start", sent(payload(name, **mark))).status for name in "ab"]
    assert codes == [202, 409]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (sent({**payload(), "training_job_id": "job-001"}), 422, "/training_job_id"),
        (sent({**payload(), "priority": 1}), 422, "/priority"),
        (sent([payload()]), 422, ""),
        (b"{", 400, None),
        (b"[" * 100_000, 400, None),
    ],
)
def test_a_bad_request_is_refused_with_the_place(
    local: Local, body: bytes, status: int, pointer: str | None
) -> None:
    answer = local.post("/training/start", body)
    assert (answer.status, answer.value.get("pointer")) == (status, pointer)
    assert answer.value["error"]


def test_a_full_queue_asks_to_come_again(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST_QUEUED", 2)
    answers = [local.post("/training/start", sent(payload(name))) for name in "abc"]
    assert [one.status for one in answers] == [202, 202, 429]
    assert answers[-1].headers["retry-after"] == "60"


def test_the_depth_of_the_queue_counts_what_waits(local: Local) -> None:
    assert local.get("/training/queue").value == {"depth": 0, "running": None}
    for name in "abc":
        local.post("/training/start", sent(payload(name)))
    jobs = local.jobs
    assert jobs is not None
    jobs.take(jobs.listed()[0], "start", {})
    jobs.cancel(derived_id("job", "c"))
    assert local.get("/training/queue").value == {"depth": 1, "running": derived_id("job", "a")}


def test_cancel_ends_what_waits_and_not_what_has_ended(local: Local) -> None:
    local.post("/training/start", sent(payload()))
    codes = [local.post(f"/training/{ONE}/cancel", b"", "") for _ in range(2)]
    assert [(one.status, one.value.get("status")) for one in codes] == [(202, "cancelled"), (409, None)]
    assert codes[1].value == {"error": "the job is cancelled already", "code": "ended"}
    assert local.get(f"/training/{ONE}/status").value["status"] == "cancelled"


def test_a_job_that_runs_is_asked_to_end(local: Local) -> None:
    jobs = local.jobs
    assert jobs is not None
    jobs.submit(request())
    jobs.take(jobs.listed()[0], "start", {})
    answer = local.post(f"/training/{ONE}/cancel", b"", "")
    assert (answer.status, answer.value["status"]) == (202, "running")
    assert jobs.listed()[0].stopping


@pytest.mark.parametrize("job_id", [derived_id("nobody"), "job-001", "x y", "a.b"])
def test_a_job_that_nobody_knows_is_not_found(local: Local, job_id: str) -> None:
    assert local.get(f"/training/{job_id}/status").status == 404
    assert local.post(f"/training/{job_id}/cancel", b"", "").status == 404


def test_the_models_are_what_jobs_made_the_newest_first(local: Local) -> None:
    jobs = local.jobs
    assert jobs is not None
    assert local.get("/models").value == {"models": []}
    for second, name in enumerate("ab"):
        jobs.submit(request(name))
        running = jobs.take(jobs.listed()[-1], "start", {})
        assert running is not None
        parts = {
            "artifacts": {"final_checkpoint": f"{name}.json"},
            "evaluation_results": {"holdout_reward": 0.5, "improvement_over_baseline": 0.1},
            "metadata": {"policy_version": "v2"} if second else {},
        }
        jobs.take(running, "finish", parts, f"2026-01-01T12:00:0{second}.000Z")
    jobs.submit(request("c"))
    found = local.get("/models").value["models"]
    assert [one["final_checkpoint"] for one in found] == ["b.json", "a.json"]
    assert found[0] == {
        "training_job_id": derived_id("job", "b"), "base_model": "small", "algorithm": "tfgrpo",
        "final_checkpoint": "b.json", "timestamp": "2026-01-01T12:00:01.000Z", "version": "v2",
        "holdout_reward": 0.5, "improvement_over_baseline": 0.1,
    }  # fmt: skip
    assert "version" not in found[1]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/training/start"),
        ("GET", f"/training/{ONE}/status"),
        ("POST", f"/training/{ONE}/cancel"),
        ("GET", "/models"),
        ("GET", "/training/queue"),
    ],
)
def test_all_of_it_needs_the_token(embedded: BusPlace, method: str, path: str) -> None:
    local = Local(jobs=TrainingJobs(embedded.open(), "one"), token=TOKEN)
    body = sent(example())
    refused = local.send(method, path, [body], content_type="application/json")
    allowed = local.send(
        method, path, [body], content_type="application/json", authorization=f"Bearer {TOKEN}"
    )
    assert (refused.status, allowed.status) == (
        401,
        {"start": 202, "odels": 200, "queue": 200}.get(path[-5:], 404),
    )
