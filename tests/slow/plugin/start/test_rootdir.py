"""A command finds the same ini file and rootdir each time, whatever its options are."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import Project
from support.tools import run_pytest


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder outside the project, with which it shares no ini file."""
    return tmp_path_factory.mktemp("other")


def failing_gate(project: Project) -> Project:
    """Write a suite whose gate fails, by a rule that the ini file sets."""
    return project.ini(actor="python:agent:wrong", gate_min_mean=0.9).scenarios()


def test_the_program_refuses_before_it_collects(project: Project, other: Path) -> None:
    failing_gate(project).write("test_x.py", "raise SystemExit('collected')\n")
    done = run_pytest(project.root, "--tfgrpo", "--tfgrpo-out", str(other))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert done.stderr.startswith("ERROR: --tfgrpo-out ")
