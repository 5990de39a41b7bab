"""Runs that are killed or interrupted, and resumed."""

import pytest
from support.plugin.resume import comparable
from support.project import Project


def test_resume_without_an_incomplete_run_is_an_error(project: Project) -> None:
    project.scenarios()
    project.learn("--tfgrpo-resume").stderr.fnmatch_lines(["*no incomplete run*"])
    project.learn("--tfgrpo-resume", "nothere").stderr.fnmatch_lines(["*no run 'nothere'*"])
    assert project.learn().ret == 0
    project.learn("--tfgrpo-resume", project.runs()[-1].name).stderr.fnmatch_lines(["*is complete*"])


TARDY = """
async def tardy(context):
    import asyncio
    await asyncio.sleep(0.02)
    return "3"
"""
UNRUN = """
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b c'?")
def test_it(rollout):
    assert rollout.answer == "3"

@pytest.mark.tfgrpo(domain="text", split="train", prompt="How many words has 'a d c'?")
def test_without_asking_for_it(request):
    pass
"""


def test_what_a_budget_did_not_reach_is_skipped_with_the_reason_and_one_gate_is_red(project: Project) -> None:
    project.checker(UNRUN).scenarios(train=3, sweep=3).ini(actor="python:agent2:tardy", group_size=2)
    project.agent(TARDY)
    result = project.learn("--tfgrpo-budget-s=0.001", "-rsf")
    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes.get("errors", 0)) == (1, 0)
    assert outcomes["skipped"] + outcomes.get("passed", 0) == 2 * (2 * 2 + 2 * 3)
    result.stdout.fnmatch_lines(["*SKIPPED*did not run to the end: budget_s of 0.001 s is used up"])
    result.stdout.fnmatch_lines(["FAILED pytest.ini::gate*"])
    assert "Error" not in text
    assert "plugin/items/checkers.py" not in text  # no traceback of ours


@pytest.mark.parametrize("gate", [(), ("--tfgrpo-gate-min-mean=0.1",)])
def test_a_plain_run_that_a_budget_ended_is_red_once(project: Project, gate: tuple[str, ...]) -> None:
    project.checker(UNRUN).scenarios(train=0, sweep=5).ini(actor="python:agent2:tardy", concurrency=1)
    project.agent(TARDY)
    result = project.run("--tfgrpo-budget-s=0.001", *gate, "-rf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["skipped"] >= 4
    failed = "pytest.ini::gate" if gate else "did not run to the end: budget_s of 0.001 s is used up"
    assert failed in result.stdout.str()


def test_more_budget_finishes_a_run_that_ran_out_of_it(project: Project) -> None:
    project.scenarios(train=2, sweep=2).ini(actor="python:agent:right", concurrency=1)
    project.learn("--tfgrpo-budget-s", "0.001")
    assert project.manifest()["reason"] == "budget_s of 0.001 s is used up"
    assert project.learn("--tfgrpo-resume").ret == 0
    assert len(project.runs()) == 1
    assert project.manifest()["status"] == "complete"


def test_a_run_of_test_functions_is_reported_late_without_running_them(project: Project) -> None:
    project.checker("""
@pytest.mark.parametrize("n", range(3))
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b {n}'?")
def test_it(rollout, n):
    with open("ran.log", "a") as file:
        file.write(".")
    if n == 2:
        pytest.skip("not here")
    assert rollout.answer == "3"
""")
    project.ini(actor="python:agent:half", group_size=4)
    first = project.learn()
    (folder,) = project.runs()
    expected, ran = comparable(folder), (project.root / "ran.log").read_text()
    (folder / "manifest.json").unlink()
    again = project.learn("--tfgrpo-resume")
    assert again.ret == first.ret == 0
    counts = {"passed": 9, "skipped": 4, "deselected": 12, "warnings": 2}
    assert again.parseoutcomes() == first.parseoutcomes() == counts
    assert comparable(folder) == expected
    assert (project.root / "ran.log").read_text() == ran


def test_a_test_function_that_did_not_run_finds_its_workspace_when_the_run_is_resumed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("""
def write(context):
    with open("asked.log", "a") as file:
        file.write(".")
    (context.workspace / "x.txt").write_text("hello")
    return "done"
""")
    project.checker("""
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="Write hello into x.txt")
def test_it(rollout, rollout_workspace):
    assert (rollout_workspace / "x.txt").read_text() == "hello"
""")
    project.conftest("""
import os

def pytest_runtest_protocol(item):
    return True if item.name.endswith("r1]") and "LOSE" in os.environ else None
""")
    project.ini(actor="python:agent2:write", group_size=3)
    monkeypatch.setenv("LOSE", "1")
    assert project.learn().ret == pytest.ExitCode.TESTS_FAILED
    assert project.manifest()["status"] == "incomplete"
    asked = (project.root / "asked.log").read_text()
    monkeypatch.delenv("LOSE")
    assert project.learn("--tfgrpo-resume").ret == 0
    assert (project.root / "asked.log").read_text() == asked
    assert [row["gt_score"]["mean"] for row in project.report()["epochs"]] == [1.0]


@pytest.mark.parametrize("budget", [34, 36])
def test_a_budget_that_tears_a_pair_of_a_marked_function_leaves_nobody_waiting(
    project: Project, budget: int
) -> None:
    project.agent("""
from agent import learner

def solve(context):
    told = learner(context)
    told["frames"].append({"kind": "model", "name": "m", "output": "3", "cost_usd": 1.0})
    return told
""").checker("""
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_it(rollout):
    assert rollout.answer == "3"
""")
    project.scenarios(train=4, sweep=0).ini(
        actor="python:agent2:solve", concurrency=1, group_size=4, acceptance="off", budget_usd=budget
    )
    skipped = project.learn().parseoutcomes()["skipped"]
    assert skipped == 40 - budget
    assert "budget_usd" in project.manifest()["reason"]
    (project.root / "pytest.ini").write_text(
        (project.root / "pytest.ini").read_text().replace(f"budget_usd = {budget}", "budget_usd = 99")
    )
    project.learn("--tfgrpo-resume=latest")
    assert project.manifest()["status"] == "complete"
