"""What `tfgrpo loop status` says of training jobs."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.production.report.training_lines import training_figures, training_lines

NOTHING: dict[str, Any] = {"running": None, "queued": [], "waiting": None, "last": None, "runs_here": True}


def lines(**figures: Any) -> list[str]:
    return [" ".join(line.split()) for line in training_lines({**NOTHING, **figures})]


def running(**progress: Any) -> str:
    (line,) = lines(running={"training_job_id": "j1", "status": "running", "progress": progress})
    return line


def ended(**status: Any) -> str:
    return " ".join(lines(last={"training_job_id": "j1", "status": "completed", **status}))


def test_nothing_is_said_where_there_never_was_a_job() -> None:
    assert lines() == []


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        ({}, ""),
        ({"percent_complete": 12.5}, ": 12 %"),
        ({"percent_complete": 40, "eta_seconds": 0.0}, ": 40 %, 0 s left"),
        (
            {"percent_complete": 66.7, "eta_seconds": 4321.0, "current_epoch": 2, "total_epochs": 3},
            ": epoch 2 of 3, 67 %, 4,321 s left",
        ),
        ({"current_epoch": 2}, ": 0 %"),
        ({"total_epochs": 3}, ": 0 %"),
    ],
)
def test_a_running_job_says_how_far_it_is(progress: dict[str, Any], said: str) -> None:
    assert running(**progress) == f"training j1 runs{said}"


def test_the_last_job_says_what_it_made_or_why_it_failed() -> None:
    assert ended() == "last job j1 completed"
    made = {"artifacts": {"final_checkpoint": "folder/of\nit"}}
    assert ended(**made) == "last job j1 completed: folder/of it"
    assert ended(**made, metadata={"reason": "no gain"}) == "last job j1 completed: no gain; folder/of it"
    failed = {"status": "failed", "error": {"code": "TRAINING_FAILED", "message": "x\n" * 500}, **made}
    assert ended(**failed).startswith("last job j1 failed: TRAINING_FAILED, x x")
    assert len(ended(**failed)) < 360
    assert ended(status="failed", error={"code": "LOST", "message": None}) == "last job j1 failed: LOST,"


def test_three_jobs_that_wait_are_named_and_why() -> None:
    assert lines(queued=["a"], waiting="no\nbudget") == ["queued 1 training job: a", "waits no budget"]
    assert lines(queued=["a", "b", "c"]) == ["queued 3 training jobs: a, b, c"]
    assert lines(queued=["a", "b", "c", "d"]) == ["queued 4 training jobs: a, b, c, ..."]


def job(name: str, state: str, at: int = 0, **metadata: str) -> Any:
    status = {"timestamp": f"2026-01-01T12:00:0{at}.000Z", "name": name, "metadata": metadata}
    ended = state not in ("queued", "running")
    return SimpleNamespace(id=name, state=state, ended=ended, status=status)


def test_the_figures_are_of_the_job_that_runs_of_those_that_wait_and_of_the_newest_that_ended() -> None:
    jobs = [
        job("a", "completed", 5),
        job("b", "failed", 7),
        job("c", "completed", 6),
        job("d", "running", waiting="not any more"),
        job("e", "queued"),
        job("f", "queued", waiting="no budget"),
    ]
    found = training_figures(jobs, runs_here=True)
    names = {name: found[name]["name"] for name in ("running", "last")}
    assert names == {"running": "d", "last": "b"}
    assert (found["queue_depth"], found["queued"], found["waiting"]) == (2, ["e", "f"], "no budget")
    assert (found["ended"], found["runs_here"]) == (3, True)
    assert training_figures([], runs_here=False) == {
        **NOTHING,
        "queue_depth": 0,
        "ended": 0,
        "runs_here": False,
    }


def test_jobs_that_nobody_runs_say_what_to_set() -> None:
    nobody = lines(queued=["a"], runs_here=False)[1]
    assert nobody.startswith("nobody no service with this loop.toml runs jobs; set [training] project")
    job = {"training_job_id": "j1", "status": "running"}
    assert len(lines(queued=["a"], runs_here=False, running=job)) == 2
    assert lines(runs_here=False) == []
