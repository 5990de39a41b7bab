"""Whatever an agent does to its workspace costs its own rollout, and neither the run nor other folders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest
from support.hostile_trees import TREES, removable
from support.plugin.hostile_workspaces import AGENT, CHECKS
from support.project import Project

from pytest_tfgrpo.sandbox.removal import remove


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


def test_a_deep_tree_in_the_folder_of_an_earlier_run_is_not_walked(hostile: Project) -> None:
    hostile.ini(actor="python:agent:right").scenarios(train=0, sweep=1)
    run = hostile.root / "out" / "demo" / "runs" / "20260101T000000-00000000"
    (run / "work" / "r0").mkdir(parents=True)
    (run / "journal.jsonl").write_text('{"n":1,"event":"run","data":{"schema":"tfgrpo.journal/1"}}\n')
    TREES["deep"](run / "work" / "r0", run)
    result = hostile.run()
    assert remove(run) == ""  # pytest cannot
    result.assert_outcomes(passed=1)
