"""Worker processes: warm, one rollout each, and gone with their driver, whatever the agent does."""

import os
import sys
from pathlib import Path

import pytest
from support.executors import rollouts
from support.jobs import ScriptedActor, make_job, run_job, three_or_not
from support.project import Project

from pytest_tfgrpo.actors.python import PythonActor
from pytest_tfgrpo.actors.reference import NothingActor
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.engine.executors import worker_process
from pytest_tfgrpo.engine.executors.placement import is_placed
from pytest_tfgrpo.engine.executors.process import worker_count
from pytest_tfgrpo.engine.executors.registry import (
    most_in_flight,
    require_executor,
    shared,
    unplaced,
)


def test_how_often_the_system_killed_for_want_of_memory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "VMSTAT", tmp_path / "vmstat")
    assert worker_process.memory_kills() == 0
    (tmp_path / "vmstat").write_text("pgfault 31\noom_kill 7\n")
    assert worker_process.memory_kills() == 7


def test_an_agent_that_is_defined_in_a_test_cannot_be_pickled_and_says_so(tmp_path: Path) -> None:
    actor = PythonActor("mine", lambda _: "3", {})
    job = make_job(actor, tmp_path, executor="process:2")
    with pytest.raises(SettingError, match=r"actor 'mine' cannot be pickled .*; name it by a spec such as"):
        require_executor(job)


def test_actors_that_ask_the_budget_themselves_stay_in_the_process(tmp_path: Path) -> None:
    actor = ScriptedActor(three_or_not)
    vars(actor).update(metered=True, concurrency=None)
    assert not is_placed(make_job(actor, tmp_path, executor="process:2"))
    run, _ = run_job(make_job(actor, tmp_path, executor="process:2"))
    assert len(actor.calls) == len(rollouts(run))


def test_there_is_a_worker_for_each_processor_unless_the_setting_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert worker_count("7") == 7
    assert worker_count("") == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert worker_count("") == os.cpu_count()


def test_agents_side_by_side_share_the_workers() -> None:
    assert [shared("process:5", 2), shared("process:1", 3), shared("local", 2)] == [
        "process:2",
        "process:1",
        "local",
    ]


def test_an_actor_that_stays_in_the_process_is_named(tmp_path: Path) -> None:
    actor = NothingActor()
    job = make_job(actor, tmp_path, executor="process:2", job_supplied_actor=False)
    require_executor(job)
    assert unplaced(job).startswith("executor process:2 does not apply to the actor nothing")
    assert most_in_flight(job) == 64


def test_an_executor_that_nobody_knows_is_a_usage_error(project: Project) -> None:
    project.ini(actor="python:agent:right", executor="proces")
    (project.root / "fixtures").mkdir(exist_ok=True)
    result = project.run("--tfgrpo")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*executor must be one of local, process, process:N, ray, ray:HOST:PORT, not 'proces'*did you "
            "mean 'process'*"
        ]
    )


def test_an_agent_of_the_program_itself_is_refused(tmp_path: Path) -> None:
    def solve(_: object) -> str:
        return "3"

    solve.__module__, solve.__qualname__ = "__main__", "solve"
    sys.modules["__main__"].__dict__["solve"] = solve
    try:
        job = make_job(PythonActor("mine", solve, {}), tmp_path, executor="process")
        with pytest.raises(SettingError, match=r"is defined in the program itself \(__main__\)"):
            require_executor(job)
    finally:
        del sys.modules["__main__"].__dict__["solve"]
