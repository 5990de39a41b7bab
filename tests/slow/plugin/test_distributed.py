"""pytest-xdist: scenario items go to one worker, and the report is the same as without."""

from typing import Any

import pytest
from support.frozen import Frozen
from support.project import Project

TESTS = "import pytest\n@pytest.mark.parametrize('n', range(12))\ndef test_x(n): pass\n"


@pytest.fixture
def project(project: Project) -> Project:
    return project.plugins("xdist")


def figures(project: Project) -> list[dict[str, Any]]:
    report = project.report()
    keys = ("label", "mode", "rollouts", "errors", "gt_score", "pass_at_1", "experiences")
    return [{key: row.get(key) for key in keys} for row in report["epochs"]]


def learn_alone(project: Project) -> None:
    project.ini(actor="python:agent:half", group_size=3).scenarios(train=4, sweep=4).write("test_x.py", TESTS)
    assert project.learn().ret == 0


@pytest.mark.parametrize("mode", ["load", "loadfile", "loadscope"])
def test_the_report_is_the_same_as_without_workers(frozen: Frozen, mode: str) -> None:
    project = frozen(learn_alone)
    one = figures(project)
    together = project.learn("-n", "2", "--dist", mode)
    assert together.ret == 0
    together.assert_outcomes(passed=12 + 2 * 4 + 2 * 4 + 1)
    assert figures(project) == one
    assert len(project.runs()) == 2
    together.stdout.fnmatch_lines(["*= tfgrpo =*", "*baseline*", "*files*"])


def test_suites_without_scenarios_are_distributed_as_ever(project: Project) -> None:
    project.write("test_x.py", TESTS)
    result = project.run("-n", "2", "-v")
    result.assert_outcomes(passed=12)
    assert {"gw0", "gw1"} <= {word[1:4] for word in result.stdout.str().split() if word.startswith("[gw")}


@pytest.mark.parametrize("mode", ["each", "worksteal", "loadgroup"])
def test_other_modes_with_scenarios_are_a_usage_error(project: Project, mode: str) -> None:
    project.write("test_x.py", TESTS).run("-n", "2", "--dist", mode).assert_outcomes(
        passed=24 if mode == "each" else 12
    )
    result = project.scenarios().learn("-n", "2", "--dist", mode)
    text = result.stdout.str() + result.stderr.str()
    assert f"--dist {mode}" in text
    assert "--dist load" in text
    assert "no scenario was collected" not in text
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.calls == []


def test_a_worker_that_dies_is_replaced_and_its_run_goes_on(project: Project) -> None:
    project.agent("""
import os, signal
from pathlib import Path

async def dies_once(context):
    mark = Path(__file__).with_name("died")
    log = Path(__file__).with_name("calls.log")
    with log.open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")
    if len(log.read_text().splitlines()) > 12 and not mark.exists():
        mark.touch()
        import asyncio
        await asyncio.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return "3" if context.seed % 2 else "4"
""")
    project.ini(actor="python:agent2:dies_once", group_size=3, concurrency=1).scenarios(train=4, sweep=4)
    result = project.learn("-n", "1")
    assert (project.root / "died").exists()
    result.stdout.fnmatch_lines(["*crashed*", "*= tfgrpo =*"])
    assert len(project.runs()) == 1
    assert project.manifest()["status"] == "complete"
    text = result.stdout.str()
    for label in ("headroom", "epoch1", "epoch2", "baseline", "epoch3-eval"):
        assert text.count(f"\ntfgrpo {label}: ") == 1, label
    planned = 3 * (4 * 2 + 4)  # nothing is learned: one answer serves both sweeps
    assert planned <= len(project.calls) <= planned + 1


def test_marked_functions_are_judged_in_one_worker_too(project: Project) -> None:
    project.checker("""
@pytest.mark.parametrize("n", range(4))
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b {n}'?")
def test_it(rollout, n):
    assert rollout.answer == "3"

@pytest.mark.parametrize("n", range(6))
def test_other(n):
    pass
""")
    project.ini(actor="python:agent:half", group_size=3).scenarios(train=2, sweep=2)
    alone, one = project.learn(), figures(project)
    together = project.learn("-n", "2")
    assert alone.ret == together.ret == 0
    together.assert_outcomes(passed=4 * 3 + 6 + 2 * 2 + 2 * 2 + 1, skipped=4 * 3)
    assert figures(project) == one


def test_a_gate_alone_brings_its_suite_to_the_workers(project: Project) -> None:
    project.ini(actor="python:agent:right", gate_min_mean=0.5).write("test_x.py", TESTS)
    result = project.scenarios(train=0, sweep=3).run("-n", "2", "-v", "pytest.ini::gate", "--junitxml=j.xml")
    assert result.ret == 0
    result.assert_outcomes(passed=3 + 1)
    result.stdout.fnmatch_lines(["*PASSED pytest.ini::gate*", "gate  passed"])
    assert 'classname="pytest.ini" name="gate"' in (project.root / "j.xml").read_text()
