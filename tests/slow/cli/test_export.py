"""The command ``tfgrpo export`` on runs as they are made: interrupted, replayed, by a model with tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo


def learn(project: Project) -> None:
    project.scenarios(train=3).ini(actor="python:agent:learner", group_size=4, epochs=3, out="out")
    assert project.learn().ret == 0


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    """A project that has learned in a run of two epochs."""
    return frozen(learn)


def export(*argv: str, code: int = 0, file: str = "rows.jsonl") -> list[Any]:
    """Return the rows that the command writes."""
    tfgrpo("export", *argv, "--force", "-o", file, code=code)
    return [json.loads(line) for line in Path(file).read_bytes().splitlines()]


def test_a_run_that_was_killed_and_resumed_gives_the_same_rows(learned: Project) -> None:
    whole = export("--format", "rollouts")
    assert len(whole) == 24
    folder = learned.runs()[-1]
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    groups = [n for n, line in enumerate(lines) if b'"event":"group"' in line]
    for path in folder.iterdir():
        path.unlink()
    journal.write_bytes(b"".join(lines[: groups[1] + 2]))
    said = tfgrpo("export", "--format", "rollouts", "-o", "no.jsonl", code=1)
    assert f"finish it with pytest --tfgrpo --tfgrpo-resume={folder.name}" in said
    assert not Path("no.jsonl").exists()
    assert learned.learn(f"--tfgrpo-resume={folder.name}").ret == 0
    assert export("--format", "rollouts") == whole
