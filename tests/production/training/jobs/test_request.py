"""What is a request, and what of one a job cannot do."""

from typing import Any

import pytest
from support.feedback.training import example, payload, request

from pytest_tfgrpo.core.events import EventRefusal
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest, read_request
from pytest_tfgrpo.production.training.jobs.status import status_of


def bad(**more: Any) -> dict[str, Any]:
    return {**payload(), **more}


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (bad(training_job_id="job-001"), "/training_job_id"),
        (bad(priority="at once"), "/priority"),
        (bad(timestamp="2026-02-30T00:00:00Z"), "/timestamp"),
        (bad(trigger_reason="mood"), "/trigger_reason"),
        (bad(more=1), "/more"),
        (bad(metadata={"watermark": {"RL_TRAJECTORIES": -1}}), "/metadata/watermark/RL_TRAJECTORIES"),
        (b"{", ""),
        (b"[" * 100_000, ""),
        (b"\xff", ""),
        ([], ""),
    ],
)
def test_what_is_no_request_is_refused_with_the_place(raw: Any, pointer: str) -> None:
    found = read_request(raw)
    assert isinstance(found, EventRefusal)
    assert (found.fault, found.pointer) == ("schema", pointer)
    assert found.message


def test_ids_are_in_lower_case_and_a_priority_is_normal() -> None:
    found = read_request(bad(training_job_id="3F2504E0-4F89-41D3-9A0C-0305E82C3301"))
    assert isinstance(found, TrainingRequest)
    assert (found.id, found.rank) == ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", 2)


def test_all_that_a_job_cannot_do_is_named() -> None:
    asked = example()
    asked["training_config"]["algorithm"] = "tfgrpo"
    found = read_request(asked)
    assert isinstance(found, TrainingRequest)
    parts = {
        one.split("/")[2] if one.startswith("/training_config") else "evaluation" for one in found.ignored()
    }
    assert parts == {"hyperparameters", "compute", "checkpointing", "evaluation"}
    assert "/training_config/hyperparameters/learning_rate" in found.ignored()
    assert "/training_config/hyperparameters/epochs" not in found.ignored()
    assert "/evaluation/enabled" not in found.ignored()
    assert found.epochs == 3
    assert request().ignored() == []


@pytest.mark.parametrize("algorithm", ["tfgrpo", "ppo"])
def test_what_cuts_no_dataset_is_ignored_whoever_trains(algorithm: str) -> None:
    asked = payload(algorithm=algorithm)
    asked["training_config"]["dataset"] = {
        "source": "s3", "stream_name": "ELSE", "filter": {"languages": ["de"], "a/b~": {}, "min_reward": 0.5},
    }  # fmt: skip
    found = read_request(asked)
    assert isinstance(found, TrainingRequest)
    place = "/training_config/dataset"
    named = ("filter/a~1b~0", "filter/languages", "source", "stream_name")
    assert found.ignored() == [f"{place}/{name}" for name in named]
    status = status_of(found, "queued", "2026-01-01T12:00:00Z", {})
    assert status["metadata"]["ignored"] == found.ignored()


def test_an_evaluation_that_is_not_wanted_is_made_all_the_same() -> None:
    assert request(evaluation={"enabled": False}).ignored() == ["/evaluation/enabled"]


def test_benchmark_tasks_are_ignored_where_the_suite_has_no_such_domain() -> None:
    wanted = request(evaluation={"benchmark_tasks": ["words", "code_generation"]})
    parts = {"evaluation_results": {"benchmark_scores": {"words": 0.5}}}

    def ignored(state: str, parts: Any) -> Any:
        return status_of(wanted, state, "2026-01-01T12:00:00Z", parts).get("metadata", {}).get("ignored")

    assert ignored("running", {}) is None
    assert ignored("completed", parts) == ["/evaluation/benchmark_tasks/1"]
    assert ignored("completed", {}) == [f"/evaluation/benchmark_tasks/{n}" for n in range(2)]


def test_the_event_of_a_request_follows_from_what_it_says() -> None:
    assert request().event().id == request().event().id != request(requester="another").event().id
