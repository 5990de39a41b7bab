"""Whatever an agent does to its workspace costs its own rollout, and neither the run nor other folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT
from support.campaign import Campaign
from support.hostile_trees import TREES, removable
from support.plugin.hostile_workspaces import AGENT, CHECKS
from support.project import Project

OTHERS = "nothing at all"
"""The workspaces of other rollouts are gone as well, while they are checked."""
LEAVING = [
    "removed",
    "a link out",
    "a link to all",
    "a loop",
    "a file",
    "a pipe",
    "unreadable itself",
    "nothing at all",
]
"""What may be where the workspace was."""
LARGE = ["very deep", "very many files"]


@pytest.fixture
def hostile(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Return a project with a hostile agent, and a temporary folder of its own."""
    project.agent(AGENT).ini(
        actor="python:agent2:solve", eval_rollouts=2, concurrency=1, record="recording.jsonl"
    )
    project.scenarios(train=0, sweep=1, checks=CHECKS)
    for name in ("victim/precious.txt", "victim/sub/more.txt"):
        project.write(name, "precious")
    with removable() as folder:
        monkeypatch.setenv("TMPDIR", str(folder))
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield project


def require_whole(project: Project, kind: str) -> None:
    """Run all, and see that the run is complete, the answers are scored, and nothing but that is changed."""
    result = project.learn()
    assert project.manifest()["status"] == "complete", result.stdout.str() + result.stderr.str()
    report = project.report()
    if kind != OTHERS:
        assert report["faults"] == {"errors": {}, "failed": {}}, kind
        assert [row["gt_score"]["mean"] for row in report["epochs"]] == [pytest.approx(2 / 3)], kind
    assert (project.root / "victim" / "precious.txt").read_text() == "precious"
    assert (project.root / "victim" / "sub" / "more.txt").read_text() == "precious"
    left = [path.name for path in Path(os.environ["TMPDIR"]).iterdir()]
    assert [name for name in left if name.startswith("tfgrpo-workspaces-")] == []


@pytest.mark.parametrize("kind", ["deep", *LEAVING])
def test_the_run_ends_complete_when_agents_leave(
    hostile: Project, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("KIND", kind)
    require_whole(hostile, kind)


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_the_run_ends_complete_whatever_agents_leave(
    hostile: Project, monkeypatch: pytest.MonkeyPatch, campaign: Campaign
) -> None:
    for kind in campaign.sample([*TREES, *LEAVING, *LARGE], 3):
        monkeypatch.setenv("KIND", kind)
        require_whole(hostile, kind)
        shutil.rmtree(hostile.root / "out")
        (hostile.root / "recording.jsonl").unlink()


PLANTING = """\
import os
import time
from pathlib import Path
from support.hostile_trees import deep


def solve(context):
    deep(context.workspace, 1_100)
    Path(__file__).with_name("left").write_text(str(context.workspace))
    time.sleep(600 if os.environ.get("HANG") else 0)
    return "3"
"""


def test_a_killed_run_is_resumed_over_a_deep_tree_and_the_next_pytest_does_not_walk_it(
    hostile: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile.agent(PLANTING).ini(actor="python:agent2:solve", eval_rollouts=2)
    hostile.scenarios(train=0, sweep=1)
    tests = ROOT / "tests"
    monkeypatch.setenv("PYTHONPATH", str(tests), prepend=os.pathsep)
    monkeypatch.setenv("HANG", "1")
    process = hostile.start()
    left = hostile.root / "left"
    while process.poll() is None and not (left.exists() and left.read_text()):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    folder = Path(left.read_text())
    assert (folder / "d").is_dir()
    monkeypatch.delenv("HANG")
    process = hostile.start("--tfgrpo-resume")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert not folder.parent.exists()


LOSING = """\
from pathlib import Path


def solve(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")
    (context.workspace / "answer.txt").write_text("3")
    return "3"
"""
CHECKER = """
import os
import signal


@pytest.mark.tfgrpo(split="eval", **MARK)
def test_it(rollout, rollout_workspace):
    if os.environ.get("KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    assert (rollout_workspace / "answer.txt").read_text() == "3"
"""


@pytest.mark.parametrize("lost", [False, True])
def test_a_rollout_whose_workspace_was_lost_before_its_test_function_ran_is_made_again(
    hostile: Project, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """A fresh workspace would be judged in its place, and a false result kept."""
    (hostile.root / "suite.scenario.json").unlink()
    hostile.agent(LOSING).checker(CHECKER).ini(actor="python:agent2:solve", group_size=2)
    monkeypatch.setenv("KILL", "1")
    hostile.start().communicate()
    monkeypatch.delenv("KILL")
    asked = len(hostile.calls)
    waiting = [rollout["rollout_id"] for rollout in hostile.events("rollout")]
    (run,) = hostile.runs()
    folder = Path(json.loads((run / "workspaces.json").read_text())["folder"])
    assert waiting
    assert asked > 0
    if lost:
        shutil.rmtree(folder)
    process = hostile.start("--tfgrpo-resume")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert [row["gt_score"]["mean"] for row in hostile.report()["epochs"]] == [1.0]
    abandoned = [one["rollout_id"] for one in hostile.events("abandoned")]
    assert sorted(abandoned) == (sorted(waiting) if lost else [])
    killed_in_between = asked - len(waiting)
    assert len(hostile.calls) == 2 + killed_in_between + (len(waiting) if lost else 0)
    assert not folder.exists()
    assert not (run / "workspaces.json").exists()


def test_nothing_is_lost_on_file_when_the_second_resume_reads_it(
    hostile: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (hostile.root / "suite.scenario.json").unlink()
    hostile.agent(LOSING).checker(CHECKER).ini(actor="python:agent2:solve", group_size=2)
    monkeypatch.setenv("KILL", "1")
    for resume in ([], ["--tfgrpo-resume"], ["--tfgrpo-resume"]):
        hostile.start(*resume).communicate()
        (run,) = hostile.runs()
        shutil.rmtree(json.loads((run / "workspaces.json").read_text())["folder"])
    monkeypatch.delenv("KILL")
    process = hostile.start("--tfgrpo-resume")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert [row["gt_score"]["mean"] for row in hostile.report()["epochs"]] == [1.0]
    assert [row["rollouts"] for row in hostile.report()["epochs"]] == [2]
    paid = hostile.report()["epochs"]
    assert sum(row["latency_ms"]["n"] for row in paid) >= 2
    assert hostile.cli("report") == 0
    assert "complete" in (run / "manifest.json").read_text()
    capsys.readouterr()
