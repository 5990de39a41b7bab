"""What every executor keeps to, wherever calls are made: order, limits, faults, budgets, results."""

import sys
from pathlib import Path

import pytest
from support.executors import job_of, rollouts, scenario
from support.jobs import run_job

from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.scenarios import Check

EXECUTORS = ("local", "process:2", "ray")


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    """The setting of an executor with two places."""
    if request.param == "ray":
        return str(request.getfixturevalue("cluster").executor)
    return str(request.param)


@pytest.mark.parametrize("executor", EXECUTORS[1:], indirect=True)
def test_no_clock_but_the_drivers_counts(executor: str, tmp_path: Path) -> None:
    began = utc_now()
    run, _ = run_job(job_of("in_another_time", executor, tmp_path, group_size=4, baseline_sweep="off"))
    found = rollouts(run)
    assert found
    assert {r.answer for r in found} == {"3"}
    assert all(began <= (r.started_at or "") <= utc_now() for r in found)
    assert all(r.latency_ms < 60_000 for r in found)


def test_checks_run_beside_the_next_calls(executor: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()

    scenarios = [scenario(f"s{n}", str(told), checks=(_waiting(told, 6),)) for n in range(4)]
    run, _ = run_job(job_of("notes", executor, tmp_path, scenarios=scenarios, baseline_sweep="off"))
    assert {c.credit for r in rollouts(run) for c in r.checks} == {1.0}


def _waiting(folder: Path, count: int) -> Check:
    """Return a check that passes once so many rollouts have begun."""
    program = (
        "import os,sys,time\n"
        f"end=time.monotonic()+20\nwhile len(os.listdir({str(folder)!r})) < {count}:\n"
        "    time.sleep(.01)\n    if time.monotonic() > end: sys.exit(1)\n"
    )
    return Check(
        kind="command", params={"run": [sys.executable, "-c", program], "timeout_s": 30, "exit_code": 0}
    )
