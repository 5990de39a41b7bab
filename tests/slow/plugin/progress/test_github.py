"""What a job on GitHub Actions shows of a run."""

from pathlib import Path

import pytest
from support.project import Project


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def commands(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("::")]


def test_with_xdist_the_page_and_the_annotations_are_written_once(project: Project, page: Path) -> None:
    project.scenarios().ini(actor="python:agent:wrong", gate_min_mean=0.5)
    result = project.run("--tfgrpo", "-p", "xdist", "-n", "2")
    assert len([line for line in commands(result) if line.startswith("::error")]) == 1
    assert page.read_text().count("## tfgrpo: gate") == 1
