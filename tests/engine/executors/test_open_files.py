"""More calls at once than this process may have open files for are an error before anything is paid for."""

import resource
from pathlib import Path

import pytest
from support.jobs import ScriptedActor, make_job, three_or_not
from support.project import Project

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.engine.executors.open_files import require_open_files
from pytest_tfgrpo.runs.job import Job

Limits = tuple[int, int]


class Process:
    """The limits of a process, soft and hard."""

    def __init__(self, soft: int, hard: int) -> None:
        self.limits = soft, hard

    def getrlimit(self, _: int) -> Limits:
        return self.limits

    def setrlimit(self, _: int, limits: Limits) -> None:
        soft, hard = limits
        if soft > hard:
            raise ValueError("current limit exceeds maximum limit")
        self.limits = limits


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    made = Process(100, 130)
    monkeypatch.setattr(resource, "getrlimit", made.getrlimit)
    monkeypatch.setattr(resource, "setrlimit", made.setrlimit)
    return made


class MeteredActor(ScriptedActor):
    metered, concurrency = True, None


def job_of(name: str, folder: Path, *, metered: bool = False) -> Job:
    actor = MeteredActor(three_or_not) if metered else ScriptedActor(three_or_not)
    actor.name = name
    return make_job(actor, folder, group_size=20)


def test_a_run_of_too_many_programs_at_once_is_a_usage_error(project: Project) -> None:
    project.ini(actor="command:/bin/false", eval_rollouts=4, concurrency=64).scenarios(sweep=10)
    result = project.run("--tfgrpo")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "ERROR: concurrency = 64: that many calls of command:/bin/false need about 260 open files, and this "
        "process may have 130; set tfgrpo_concurrency to 7, or raise the limit (`ulimit -Hn`)"
    )
    assert not (project.root / "out").exists()


def test_what_needs_fewer_is_let_through(tmp_path: Path) -> None:
    require_open_files(job_of("command:x", tmp_path), in_flight=7)
    require_open_files(job_of("openai:x", tmp_path, metered=True), in_flight=30)
    require_open_files(job_of("python:x", tmp_path), in_flight=10_000)
    batched = job_of("openai:x", tmp_path, metered=True)
    batched.actor.batched = True  # type: ignore[attr-defined]
    require_open_files(batched, in_flight=10_000)
    with pytest.raises(SettingError, match="about 132 open files"):
        require_open_files(job_of("command:x", tmp_path), in_flight=8)
    with pytest.raises(SettingError, match="set tfgrpo_concurrency to 30"):
        require_open_files(job_of("openai:x", tmp_path, metered=True), in_flight=31)


def test_calls_that_are_never_in_flight_together_need_none(tmp_path: Path) -> None:
    job = job_of("command:x", tmp_path)
    most = max(len(phase.scenarios) * phase.rollouts for phase in job.phases)
    with pytest.raises(SettingError, match=f"about {100 + 4 * most:,} open files"):
        require_open_files(job, in_flight=10_000)


def test_the_soft_limit_is_raised_as_far_as_the_calls_need(tmp_path: Path, process: Process) -> None:
    require_open_files(job_of("openai:x", tmp_path, metered=True), in_flight=25)
    assert process.limits == (125, 130)
    require_open_files(job_of("openai:x", tmp_path, metered=True), in_flight=5)
    assert process.limits == (125, 130)


def test_no_limit_is_no_obstacle(tmp_path: Path, process: Process) -> None:
    process.limits = resource.RLIM_INFINITY, resource.RLIM_INFINITY
    require_open_files(job_of("command:x", tmp_path), in_flight=10_000)
