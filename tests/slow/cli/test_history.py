"""The command ``tfgrpo history``: the runs of a task, on the terminal and as a page."""

import json
import subprocess
from pathlib import Path

import pytest
from support import frozen as frozen_projects
from support.frozen import Frozen
from support.project import Project
from support.tools import require_tool, tfgrpo


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    return frozen(frozen_projects.learned)


def commit(folder: Path) -> str:
    """Commit all of a folder but its output; returns the id."""
    git = [require_tool("git"), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (folder / ".gitignore").write_text("out/\n*.log\n__pycache__/\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "now", "--allow-empty"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True)
    return head.stdout.decode().strip()


def test_the_runs_are_listed_and_a_page_links_to_theirs(learned: Project) -> None:
    learned.pages().ini(actor="python:agent:right", task_id="demo").learn()
    shown = tfgrpo("history").splitlines()
    first, second = (folder.name for folder in learned.runs())
    heads = ["run", "mean,", "95", "%", "gain", "cost", "time", "commit", "library", "of"]
    assert shown[0].split() == heads
    assert [row.split()[0] for row in shown[1:3]] == [first[:15], second[:15]]
    assert f" {learned.report()['epochs'][-1]['gt_score']['mean']:.3f} " in shown[2]
    assert [row.split()[-1] for row in shown[1:3]] == ["a", "b"]
    assert shown[4:6] == ["a: python:agent:learner", "b: python:agent:right"]
    assert shown[6] == "page   out/demo/history.html"
    page = (learned.root / "out/demo/history.html").read_text()
    for name in (first, second):
        assert f'<a href="./runs/{name}/report.html">{name}</a>' in page
    tfgrpo("history", "--html", "elsewhere.html")
    assert f'"./out/demo/runs/{first}/report.html"' in (learned.root / "elsewhere.html").read_text()
    assert "it is a folder" in tfgrpo("history", "--html", ".", code=1)


def test_a_run_knows_its_commit_and_a_resumed_one_keeps_it(learned: Project) -> None:
    head = commit(learned.root)[:12]
    learned.learn()
    folder = learned.runs()[-1]
    assert learned.report()["versions"]["commit"] == learned.manifest()["versions"]["commit"] == head
    assert tfgrpo("history").splitlines()[2].split()[-2] == head[:7]
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-5]))
    assert commit(learned.root)[:12] != head
    assert learned.pages().learn("--tfgrpo-resume").ret == 0
    assert learned.runs()[-1] == folder
    assert learned.report()["versions"]["commit"] == head
    before = (folder / "report.html").read_bytes()
    tfgrpo("report")
    assert (folder / "report.html").read_bytes() == before


def test_a_comparison_shows_that_the_commits_differ(learned: Project) -> None:
    commit(learned.root)
    learned.learn()
    (learned.root / "suite.scenario.json").touch()
    commit(learned.root)
    learned.learn()
    before, after = (
        json.loads((f / "report.json").read_text())["versions"]["commit"] for f in learned.runs()[1:]
    )
    shown = tfgrpo("report", "--compare", "previous", "-v")
    assert f"commit {before} {after}" in " ".join(shown.split())
