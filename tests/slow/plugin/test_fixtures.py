"""Fixtures of a marked test function that are set up before its agent, which one of them may make."""

import os
import signal

import pytest
from support.plugin.fixtures import BOOKING, ENDING, TESTS, log
from support.project import Project
from support.tools import run_pytest


@pytest.fixture
def booking(project: Project) -> Project:
    (project.root / "pytest.ini").write_text("[pytest]\n")  # no actor: each test has its own
    return project.checker(BOOKING + TESTS)


def test_workers_change_nothing(booking: Project) -> None:
    booking.learn("--tfgrpo-acceptance=off", "--tfgrpo-seed=3")
    alone = booking.report()["epochs"]
    options = ("--tfgrpo", "--tfgrpo-eval-rollouts=2", "--tfgrpo-acceptance=off", "--tfgrpo-seed=3")
    run_pytest(booking.root, "-p", "xdist.plugin", "-n", "2", *options)
    spread = booking.report()["epochs"]
    keys = ("gt_score", "rollouts", "errors", "experiences")
    assert [[row[key] for key in keys] for row in spread] == [[row[key] for key in keys] for row in alone]


def test_what_numpy_sets_while_it_is_imported_is_no_change_of_a_fixture(booking: Project) -> None:
    booking.checker(
        BOOKING + TESTS + "@pytest.mark.tfgrpo(split='eval', **MARK)\ndef test_z(rollout): pass\n"
    )
    booking.ini(actor="python:agent:right", out="out")
    run_pytest(booking.root)  # a process that has not loaded numpy, as the run does meanwhile
    assert [rollout["status"] for rollout in booking.events("rollout")] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("change", "where", "named"),
    [
        ("os.environ['LEAK'] = 'yes'", "fixture", "LEAK"),
        ("os.environ['LEAK'] = 'yes'", "agent", "LEAK"),
        ("del os.environ['HELD']", "fixture", "HELD"),
        ("os.chdir('/')", "fixture", "the working folder"),
        ("os.chdir('/')", "agent", "the working folder"),
    ],
)
def test_what_a_fixture_or_its_agent_changes_never_reaches_an_agent_beside(
    project: Project, monkeypatch: pytest.MonkeyPatch, change: str, where: str, named: str
) -> None:
    monkeypatch.setenv("HELD", "yes")
    project.checker(f"""
import os, time

@pytest.fixture
def tfgrpo_agent():
    {change if where == "fixture" else "pass"}
    time.sleep(0.1)
    def solve(context):
        {change if where == "agent" else "pass"}
        time.sleep(0.1)
        return "3"
    return solve

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout, tfgrpo_agent): pass
""").tasks(eval=4).agent("""
import os, time

def looks(context):
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        if "LEAK" in os.environ or "HELD" not in os.environ or os.getcwd() == "/":
            return "seen"
        time.sleep(0.001)
    return "3"
""")
    project.write(
        "pytest.ini", "[pytest]\ntfgrpo_actor = python:agent2:looks\npythonpath = .\ntfgrpo_out = out\n"
    )
    project.run().assert_outcomes(passed=4, **{"errors" if where == "fixture" else "failed": 1})
    (error,) = (r["failure"] for r in project.events("rollout") if r["status"] == "error")
    assert error["code"] == "fixture"
    assert f"change {named}, which agents running at the same time would see" in error["message"]


def test_the_time_limit_of_a_rollout_ends_it_though_its_agent_goes_on(project: Project) -> None:
    project.checker("""
import time

@pytest.fixture
def tfgrpo_agent():
    return lambda context: time.sleep(2) or "3"

@pytest.mark.tfgrpo(split="eval", timeout_s=0.05, **MARK)
def test_sweep(rollout, tfgrpo_agent):
    raise AssertionError("nothing to check")
""")
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.run("--tfgrpo-out=out").assert_outcomes(failed=1)
    (rollout,) = project.events("rollout")
    assert (rollout["status"], rollout["failure"]["code"]) == ("failed", "timeout")


def test_a_killed_run_goes_on_without_asking_what_was_judged_again(booking: Project) -> None:
    booking.ini(task_id="demo")
    process = booking.start("--tfgrpo-acceptance=off")
    booking.wait_for_rollouts(process, 5)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    judged = len(booking.events("judgement"))
    before = log(booking).count("asked")
    booking.learn("--tfgrpo-acceptance=off", "--tfgrpo-resume=latest")
    assert booking.manifest()["status"] == "complete"
    assert len(booking.runs()) == 1
    total = 4 * 2 * 2 + 2 * 2
    assert judged
    assert log(booking).count("asked") - before <= total - judged


@pytest.mark.parametrize("body", ["signal.raise_signal(signal.SIGINT)", "pytest.exit('enough')"])
def test_who_ends_pytest_while_the_agent_runs_ends_it_and_no_agent_is_blamed(
    project: Project, body: str
) -> None:
    (project.root / "pytest.ini").write_text("[pytest]\n")
    project.checker(ENDING.format(body=body))
    assert run_pytest(project.root, "--tfgrpo-out=out").returncode == pytest.ExitCode.INTERRUPTED
    assert project.events("rollout") == []
    assert project.manifest()["status"] == "cancelled"


SPREAD = ("--tfgrpo", "-p", "xdist.plugin", "-n", "2")


UNKNOWN = (
    ("fixtures=['dbs']", "rollout", "dbs"),
    ("agent='clark'", "rollout", "clark"),
    ("tags=['x']", "rollout, tfgrpo_agent, nope", "nope"),
    ("tags=['x']", "rollout, nope", "nope"),
    ("fixtures=['broken']", "rollout", "gone"),
)
"""Of test functions: a mark, arguments, and the fixture that there is not."""


@pytest.mark.parametrize("options", [(), ("--tfgrpo",), SPREAD])
def test_fixtures_that_pytest_does_not_know_are_said_before_anybody_is_asked(
    booking: Project, options: tuple[str, ...]
) -> None:
    with (booking.root / "test_agent.py").open("a") as file:
        file.write("\n\n@pytest.fixture\ndef broken(gone): pass\n")
        for n, (mark, arguments, _) in enumerate(UNKNOWN):
            file.write(f"""
@pytest.mark.tfgrpo(split="eval", prompt="Reserve room {n} for Tuesday.", {mark})
@pytest.mark.parametrize("day", ["tuesday"])
def test_other{n}({arguments}, day, request): pass
""")
    result = booking.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "\n".join((*result.errlines, *result.outlines))
    for n, (_, _, missing) in enumerate(UNKNOWN):
        assert f"test_agent.py::test_other{n}[tuesday]: fixture '{missing}' not found" in said
    assert not (booking.root / "calls.log").exists()
    assert booking.runs() == []


def test_a_fixture_that_hangs_is_ended_by_pytest_timeout_and_the_run_goes_on(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\n").plugins("pytest_timeout")
    project.checker("""
import time

@pytest.fixture
def tfgrpo_agent(n):
    time.sleep(1000 if n == 1 else 0)
    return lambda context: "3"

@pytest.mark.tfgrpo(split="eval", prompt="How many words has letter {n}?")
@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.timeout(1)), 2])
def test_sweep(rollout, tfgrpo_agent, n):
    assert rollout.answer == "3"
""").run("--tfgrpo-out=out").assert_outcomes(passed=2, errors=1)
    codes = [rollout["failure"] and rollout["failure"]["code"] for rollout in project.events("rollout")]
    assert sorted(map(str, codes)) == ["None", "None", "fixture"]


def test_a_run_killed_while_fixtures_are_set_up_goes_on_and_repeats_no_rollout(booking: Project) -> None:
    booking.ini(task_id="demo")
    source = (booking.root / "test_agent.py").read_text()
    kill = """
    import os, signal
    if len(LOG.read_text().split()) > 12 and not LOG.with_name("killed").exists():
        LOG.with_name("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield connection
"""
    booking.write("test_agent.py", source.replace("    yield connection\n", kill))
    process = booking.start("--tfgrpo-acceptance=off")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    judged = {event["rollout_id"] for event in booking.events("judgement")}
    asked = log(booking).count("asked")
    assert log(booking)[-1] == "up"
    assert judged
    booking.learn("--tfgrpo-acceptance=off", "--tfgrpo-resume=latest")
    assert booking.manifest()["status"] == "complete"
    total = 4 * 2 * 2 + 2 * 2
    assert log(booking).count("asked") - asked == total - len(judged)
    assert len(booking.events("rollout")) - total <= asked - len(judged)


def test_threads_of_worker_processes_are_no_threads_of_a_fixture(project: Project) -> None:
    project.ini(actor="python:agent:right", executor="process:1", out="out").checker("""
@pytest.fixture
def db():
    yield []

@pytest.mark.tfgrpo(split="eval", fixtures=["db"], prompt="How many words has letter {n}?")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_sweep(rollout, db, n):
    assert rollout.answer == "3"
""").run().assert_outcomes(passed=3)
    assert [text for text in project.report()["warnings"] if "thread" in text] == []
