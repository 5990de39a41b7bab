"""Services that share a queue and the process of their job, killed at moments over the whole of it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.feedback.training import payload, statuses
from support.feedback.training_service import (
    MARKS,
    PATIENCE_S,
    TRAINED_MARKS,
    Service,
    bring,
    calls_of,
    configure,
    count_calls,
    has_reached,
    kill_run,
    make_project,
    resumed,
    runs_once,
    train_elsewhere,
    versions,
    wait,
)
from support.nats_server import NatsServer

from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.pytest_work import MOST_DEATHS
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest

pytestmark = pytest.mark.faults

CASES, KILLS = 10, 5
CALLS = 100
"""Of the agent in a job, at the least."""
FAILED = "safety suite bias: 12 of 12 failed: safety-bias-loan-a, safety-bias-loan-b, safety-bias-job-a"
"""What an agent that answers 3 to everything comes to."""
RUNNING = next(mark for mark in MARKS if mark.endswith("journal.jsonl"))


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Service, Service]]:
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path)
    count_calls(tmp_path)
    found = Service(tmp_path), Service(tmp_path)
    yield found
    for one in found:
        one.end(signal.SIGKILL)
    kill_run(tmp_path)


def disturb(
    pair: tuple[Service, Service], draw: random.Random, moments: Sequence[tuple[float, str | int]]
) -> tuple[int, list[str]]:
    """Kill one of two services, or the job's process, again and again; both services are left running.

    Returns how many processes of the job were killed, and what was killed when.
    """
    for one in pair:
        one.start()
    folder, runs, done = pair[0].folder, 0, list[str]()
    for _, mark in sorted(moments, key=lambda one: one[0]):
        until = time.monotonic() + PATIENCE_S
        while not has_reached(folder, mark):
            assert time.monotonic() < until, (mark, done)
            time.sleep(0.05)
        time.sleep(draw.uniform(0.0, 0.3))
        kinds = ["service", "both", "run", "all"] if runs < MOST_DEATHS - 1 else ["service", "both"]
        which = draw.choice(kinds)
        done.append(f"{which} at {str(mark).rpartition('/')[2]}")
        if which in ("run", "all"):
            runs += kill_run(folder)
        killed = {"run": [], "service": [draw.choice(pair)]}.get(which, [*pair])
        for one in killed:
            one.end(signal.SIGKILL)
        for one in killed:
            one.start()
    return runs, done


def moment(draw: random.Random) -> tuple[float, str | int]:
    """Return where a job is to be killed, with its order: half of them while its agent is asked."""
    if draw.random() < 0.5:
        calls = draw.randint(1, CALLS)
        return MARKS.index(RUNNING) + calls / CALLS, calls
    place = draw.randrange(len(MARKS))
    return float(place), MARKS[place]


def asked_little_again(folder: Path, killed: int, done: Sequence[str]) -> None:
    """A kill costs the call in flight and, as that begins first, an answer whose line is not written yet."""
    calls, resumes = calls_of(folder), resumed(folder)
    again = calls.total() - len(calls)
    print(f"killed {', '.join(done)}; {len(calls)} rollouts, {again} asked again in {resumes} resumed runs")
    assert resumes <= killed, "something else ended a run"
    assert again <= 2 * resumes, "what was answered was asked again"


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the bus of a kind, which no other test has used."""
    if request.param == "embedded":
        yield "embedded:bus.db"
        return
    (tmp_path / "nats").mkdir()
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield f"nats:{server.url}"
    server.close()


@pytest.mark.parametrize("case", range(CASES))
@pytest.mark.parametrize("url", ["embedded", "nats"], indirect=True)
def test_one_job_makes_one_run_and_one_version_whatever_is_killed(
    url: str, case: int, pair: tuple[Service, Service], campaign: Campaign, tmp_path: Path
) -> None:
    if case not in campaign.sample(range(CASES), 1):
        pytest.skip("not in the sample")
    configure(tmp_path, url)
    with closing(open_bus(url)) as bus:
        bring(bus)
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=payload()))
        draw = campaign.random("training kills", url[:4], case)
        killed, done = disturb(pair, draw, [moment(draw) for _ in range(KILLS)])
        assert wait(bus, tmp_path) == "completed", (done, statuses(bus)[-1].get("error"))
        found = [one["status"] for one in statuses(bus)]
        assert versions(bus, tmp_path) == ["v1", "v2"]
        reasons = statuses(bus)[-1]["metadata"]["validation"]["reasons"]
        assert [one for one in reasons if "safety" in one] == [FAILED]
        for one in pair:
            one.end(signal.SIGKILL)
    runs_once(tmp_path)
    asked_little_again(tmp_path, killed, done)
    assert not list((tmp_path / "suite").glob(".tfgrpo-safety"))
    assert (found[0], set(found[1:-1]), found[-1]) == ("queued", {"running"}, "completed")


@pytest.mark.parametrize("case", range(CASES))
@pytest.mark.parametrize("url", ["embedded", "nats"], indirect=True)
def test_one_checkpoint_makes_one_version_whatever_is_killed(
    url: str, case: int, pair: tuple[Service, Service], campaign: Campaign, tmp_path: Path
) -> None:
    if case not in campaign.sample(range(CASES), 1):
        pytest.skip("not in the sample")
    configure(tmp_path, url)
    train_elsewhere(tmp_path, "--tfgrpo-actor=python:agent:{checkpoint}")
    with closing(open_bus(url)) as bus:
        bring(bus)
        asked = payload(algorithm="ppo", evaluation={"holdout_size": 0.3})
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=asked))
        draw = campaign.random("checkpoint kills", url[:4], case)
        moments = [(float(n), TRAINED_MARKS[n]) for n in draw.sample(range(len(TRAINED_MARKS)), KILLS)]
        killed, done = disturb(pair, draw, moments)
        assert wait(bus, tmp_path) == "completed", (done, statuses(bus)[-1].get("error"))
        assert versions(bus, tmp_path) == ["v1", "v2"]
        found = statuses(bus)[-1]["metadata"]["validation"]
        for one in pair:
            one.end(signal.SIGKILL)
    assert found["improvement_over_baseline"] == 0.0
    assert FAILED in found["reasons"]
    asked_little_again(tmp_path, killed, done)
    assert not list((tmp_path / "suite").glob(".tfgrpo-safety"))
