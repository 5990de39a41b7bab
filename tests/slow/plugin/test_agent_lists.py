"""Several agents side by side: a run each, equal seeds, one comparison."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.runs.journal.journal_contents import load_run

BOTH = "half = python:agent:half, learner = python:agent:learner"


def comparison(project: Project) -> dict[str, Any]:
    (file,) = (project.root / "out").glob("*/comparisons/*.json")
    value: dict[str, Any] = json.loads(file.read_text())
    assert not violations("agents", value)
    return value


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_each_agent_acts_on_fixtures_of_its_own(project: Project, workers: tuple[str, ...]) -> None:
    project.ini(actor="once = python:agent2:once, twice = python:agent2:twice", task_id="demo").agent(
        "import test_agent\n"
        "def once(context): test_agent.world[-1].append(1); return '1'\n"
        "def twice(context): test_agent.world[-1].extend((1, 1)); return '2'\n"
    )
    project.checker("""
world = []

@pytest.fixture
def db():
    world.append([])
    yield world[-1]
    world.pop()

@pytest.mark.tfgrpo(split="eval", fixtures=["db"], **MARK)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_x(rollout, db, n):
    assert len(db) == int(rollout.answer)
""")
    project.plugins("xdist").run("--tfgrpo-out=out", *workers).assert_outcomes(passed=6)
    assert [row["means"] for row in comparison(project)["scenarios"]] == [[1.0, 1.0]] * 3
    project.learn(*workers).assert_outcomes(passed=2 * 2 * 3 + 2)


def rollouts_in(folder: Path) -> list[str]:
    """Return the ids of the finished rollouts in a journal, in order."""
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [event["data"]["rollout_id"] for event in events if event["event"] == "rollout"]


@pytest.mark.parametrize("wanted", ["latest", "id"])
def test_all_runs_of_a_list_are_gone_on_with(project: Project, wanted: str) -> None:
    project.ini(actor="python:agent:slow, python:agent:half", task_id="demo", concurrency=2)
    project.scenarios(train=4, sweep=6)
    process = project.start()
    project.wait_for_rollouts(process, 4)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = {folder.name: rollouts_in(folder) for folder in project.runs()}
    assert any(before.values())
    start = next(iter(before)).removesuffix("-agent.half").removesuffix("-agent.slow")
    assert project.learn(f"--tfgrpo-resume={wanted if wanted == 'latest' else start}").ret == 0
    runs = project.runs()
    assert [path.name for path in runs] == [f"{start}-agent.half", f"{start}-agent.slow"]
    for path in runs:
        ids = rollouts_in(path)
        assert ids[: len(before.get(path.name, ()))] == before.get(path.name, [])
        assert len(ids) == len(set(ids)) == 2 * 4 * 2 + 2 * 6
    again = project.learn("--tfgrpo-resume")
    assert again.ret == 4
    again.stderr.fnmatch_lines(["ERROR: no incomplete run of these agents*"])


def test_an_agent_whose_run_has_ended_is_told_from_its_journal(project: Project) -> None:
    project.agent(
        "import asyncio\nfrom agent import half\n"
        "async def late(context):\n    await asyncio.sleep(0.2)\n    return half(context)\n"
    )
    project.ini(actor="python:agent:right, python:agent2:late", task_id="demo", concurrency=2)
    process = project.scenarios(train=0, sweep=10).start()
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and len(project.calls) < 25:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate()
    before = {folder.name[-5:]: load_run(folder).status for folder in project.runs()}
    assert before == {"right": "complete", ".late": "cancelled"}
    calls = project.calls
    result = project.learn("--tfgrpo-resume")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 agents"])
    assert len(project.calls) < len(calls) + 20
    assert [len(rollouts_in(path)) for path in project.runs()] == [20, 20]


def test_workers_of_xdist_make_the_same_runs(project: Project) -> None:
    project.plugins("xdist").ini(actor=BOTH, task_id="demo").scenarios(train=2, sweep=10)
    alone = project.learn()
    first = comparison(project)
    for file in (project.root / "out/demo/comparisons").iterdir():
        file.unlink()
    together = project.learn("-n", "2")
    assert alone.ret == together.ret == 0
    together.stdout.fnmatch_lines(["agent  half", "agent  learner", "2 agents", "page   out/demo/*"])
    assert comparison(project)["pairs"] == first["pairs"]


RIGHT_AND_WRONG = "right = python:agent:right, wrong = python:agent:wrong"


def test_a_domain_that_no_scenario_has_is_a_warning(project: Project) -> None:
    project.plugins("xdist").ini(actor=RIGHT_AND_WRONG, domain_agents="texts = right").scenarios()
    for args in ((), ("-n", "1")):
        result = project.learn(*args)
        told = "TfgrpoWarning: domain_agents: no scenario has the domain 'texts'; did you mean 'text'?"
        assert result.stdout.str().count(told) == 1


def test_a_part_of_the_suite_need_not_have_all_domains(project: Project) -> None:
    project.ini(actor=RIGHT_AND_WRONG, domain_agents="text = right\n  far = right")
    project.scenarios("near", train=0, sweep=1).scenarios("far", train=0, sweep=1, domain="far")
    project.run("near.scenario.json").assert_outcomes(passed=1)
    project.run("near.scenario.json::near-eval0[right]").assert_outcomes(passed=1)
    assert project.run("-k", "nothing").ret == 5
    project.run("--ignore=far.scenario.json").assert_outcomes(passed=1)
    project.run("--tfgrpo-actor=python:agent:wrong").assert_outcomes(failed=2)  # no list: all that there is
