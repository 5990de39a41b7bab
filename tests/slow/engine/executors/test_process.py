"""Worker processes: warm, one rollout each, and gone with their driver, whatever the agent does."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from support import ROOT
from support.executors import alive, asked, job_of, rollouts, scenario
from support.jobs import ScriptedActor, make_job, run_job, three_or_not
from support.project import Project

from pytest_tfgrpo.core.errors import LOST_WORKER, SettingError
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.engine.executors import worker_process
from pytest_tfgrpo.engine.executors.registry import (
    open_executor,
    require_executor,
)
from pytest_tfgrpo.runs.job import Job


def test_an_agent_that_ends_its_process_costs_one_rollout(tmp_path: Path) -> None:
    scenarios = [scenario(name, name) for name in ("exit", "fine", "kill", "well")]
    run, _ = run_job(job_of("dies", "process:2", tmp_path, scenarios=scenarios, baseline_sweep="off"))
    found = {r.scenario_id: (r.status, r.failure and r.failure.message) for r in rollouts(run)}
    assert run.status == "complete"
    assert found == {
        "exit": ("failed", "the agent's process ended with exit code 7 before it had answered"),
        "kill": ("failed", "the agent's process was killed by SIGKILL before it had answered"),
        "fine": ("ok", None),
        "well": ("ok", None),
    }


def test_a_worker_that_is_killed_for_want_of_memory_is_lost_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = itertools.count()
    monkeypatch.setattr(worker_process, "memory_kills", lambda: next(counts))
    job = job_of("dies", "process:1", tmp_path, scenarios=[scenario("kill", "kill")], eval_rollouts=1)
    run, _ = run_job(replace(job, phases=job.phases[-1:]))
    assert [(r.status, r.failure and r.failure.code) for r in rollouts(run)] == [("error", LOST_WORKER)]
    (warning,) = [text for text in run.warnings if "lost_worker" in text]
    assert warning.startswith("2 calls of the agent ended with a worker that was lost")


def test_workers_stay_warm_over_the_phases_of_a_run(tmp_path: Path) -> None:
    run, _ = run_job(job_of("process", "process:2", tmp_path, group_size=4))
    answers = [r.answer for r in rollouts(run)]
    assert len(answers) >= 40
    assert 1 <= len(set(answers)) <= 2
    assert str(os.getpid()) not in answers


def test_an_agent_that_a_plugin_supplies_is_pickled(tmp_path: Path) -> None:
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path, executor="process:2"))
    assert run.status == "complete"
    assert {r.answer for r in rollouts(run)} == {"3", "4"}


def test_a_worker_that_is_killed_while_it_waits_costs_no_rollout(tmp_path: Path) -> None:
    async def kill(job: Job) -> list[AttemptResult]:
        executor = open_executor(job)
        try:
            actor = executor.place(job.actor)
            one = await attempt(actor, asked("?", tmp_path))
            os.kill(int(one.answer), signal.SIGKILL)
            return [
                one,
                await attempt(actor, asked("?", tmp_path)),
                await attempt(actor, asked("?", tmp_path)),
            ]
        finally:
            await executor.aclose()

    first, then, last = asyncio.run(kill(job_of("process", "process:1", tmp_path)))
    assert last.status == "ok"
    assert last.answer != first.answer
    assert then.status == "ok" or (then.status, then.failure and then.failure.code) == ("error", LOST_WORKER)


def test_a_worker_ends_as_any_process_with_its_exit_functions(tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    scenarios = [scenario(f"s{n}", str(told)) for n in range(4)]
    run, _ = run_job(job_of("leaves_a_note", "process:2", tmp_path, scenarios=scenarios))
    assert {path.name for path in told.iterdir()} == {r.answer for r in rollouts(run)}


def test_what_an_agent_leaves_running_ends_with_its_worker(tmp_path: Path) -> None:
    run, _ = run_job(job_of("leaves_a_child", "process:1", tmp_path, baseline_sweep="off", group_size=2))
    pids = {int(r.answer) for r in rollouts(run)}
    _wait_until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()])


def test_a_process_that_stands_still_is_ended_at_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.engine.executors.worker_process.GRACE_S", 0.3)
    changes: dict[str, Any] = {"scenarios": [scenario("s", "stop")], "timeout_s": 0.3}
    run, _ = run_job(job_of("dies", "process:1", tmp_path, baseline_sweep="off", **changes))
    assert {(r.status, r.failure and r.failure.code) for r in rollouts(run)} == {("failed", "timeout")}


def test_a_worker_that_never_gets_ready_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.engine.executors.worker_process.OPEN_S", 0.01)
    run, _ = run_job(job_of("half", "process:2", tmp_path))
    assert run.status == "incomplete"
    assert "a worker process cannot open the agent: it was not ready after 0.01 s" in run.phases[-1].reason


def test_ctrl_c_ends_all_workers(project: Project) -> None:
    told = project.root / "told"
    told.mkdir()
    project.ini(actor="python:agent2:stay", executor="process:2").scenarios(train=2, sweep=2)
    project.agent(
        "import os, time\nfrom pathlib import Path\n\ndef stay(context):\n"
        f"    Path({str(told)!r}, f'0-{{os.getpid()}}-x').touch()\n    time.sleep(60)\n"
    )
    run = project.start()
    _wait_until(lambda: len(alive(told)) == 2)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=100)
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert "incomplete" in output or "cancelled" in output
    assert not alive(told)


@pytest.mark.parametrize("agent", ["stays", "keeps_the_loop"])
def test_a_driver_that_is_killed_leaves_no_worker(agent: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    program = f"""
        from pathlib import Path
        from support.executors import job_of, scenario
        from support.jobs import run_job
        scenarios = [scenario(f"s{{n}}", {str(told)!r}) for n in range(4)]
        run_job(job_of({agent!r}, "process:2", Path({str(tmp_path)!r}), scenarios=scenarios))
    """
    driver = subprocess.Popen(
        [sys.executable, "-c", dedent(program)], cwd=ROOT / "tests", start_new_session=True
    )
    _wait_until(lambda: len(alive(told)) == 2)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    _wait_until(lambda: not alive(told))


def _wait_until(done: Any) -> None:
    end = time.monotonic() + 100
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_coroutine_that_keeps_its_loop_from_running_is_ended_at_its_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.engine.executors.worker_process.GRACE_S", 0.3)
    told = tmp_path / "told"
    told.mkdir()
    scenarios = [scenario(f"s{n}", str(told)) for n in range(2)]
    changes: dict[str, Any] = {"scenarios": scenarios, "timeout_s": 0.3, "baseline_sweep": "off"}
    run, _ = run_job(job_of("keeps_the_loop", "process:2", tmp_path, **changes))
    assert {(r.status, r.failure and r.failure.code) for r in rollouts(run)} == {("failed", "timeout")}
    assert not alive(told)


def test_marked_test_functions_run_beside_pytest_and_agents_in_workers(project: Project) -> None:
    (project.root / "agent.py").write_text("import os\n\ndef tell(context):\n    return str(os.getpid())\n")
    (project.root / "test_tell.py").write_text(
        dedent("""
        import os
        import pytest

        @pytest.mark.tfgrpo(prompt="Who are you?", domain="text", split="eval")
        def test_tell(rollout):
            assert rollout.answer.isdigit()
            assert rollout.answer != str(os.getpid())

        @pytest.fixture
        def here():
            return lambda context: str(os.getpid())

        @pytest.mark.tfgrpo(prompt="Who are you?", domain="text", split="eval", agent="here")
        def test_here(rollout):
            assert rollout.answer == str(os.getpid())
        """)
    )
    project.ini(actor="python:agent:tell", executor="process:2")
    result = project.run()
    result.assert_outcomes(passed=2)


def test_a_worker_that_cannot_open_the_agent_is_a_usage_error(tmp_path: Path) -> None:
    job = job_of("half", "process:1", tmp_path)
    job = replace(job, settings={**job.settings, "actor": "python:support.worker_agents:gone"})
    with pytest.raises(SettingError, match=r"process cannot open the actor .* has no 'gone'"):
        require_executor(job)
