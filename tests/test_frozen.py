"""Frozen projects: built once, and copied so that no test sees what another one did."""

from pathlib import Path

import pytest
from support.frozen import Frozen, FrozenProjects
from support.project import Project


def build(project: Project) -> None:
    with (Path.cwd().parent / "built").open("a") as file:
        file.write(".")
    project.write("out/demo/report.json", "{}").ini(epochs=2)
    (project.root / "out/demo/report.json").chmod(0o600)
    project.write("__pycache__/agent.pyc", "")
    assert Path.cwd() == project.root


def broken(project: Project) -> None:
    build(project)
    raise RuntimeError("pytest failed")


@pytest.fixture
def projects(tmp_path: Path) -> FrozenProjects:
    return FrozenProjects(tmp_path)


def test_a_project_is_built_once_and_each_copy_is_its_own(
    project: Project, projects: FrozenProjects, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        root = project.root / name
        root.mkdir()
        with project.beside(root) as other:
            kept = Frozen(projects, other)(build).root / "out/demo/report.json"
        assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("{}", 0o600)
        assert kept.stat().st_mtime_ns == (tmp_path / "0/out/demo/report.json").stat().st_mtime_ns
        assert not (root / "__pycache__").exists()
        kept.write_text("changed")
    assert (tmp_path / "built").read_text() == "."
    assert Path.cwd() == project.root


def test_a_copy_keeps_its_task_whatever_else_its_ini_file_says(
    project: Project, projects: FrozenProjects
) -> None:
    frozen = Frozen(projects, project)(build)
    ini = frozen.root / "pytest.ini"
    assert ini.read_text().endswith("tfgrpo_task_id = frozen\ntfgrpo_epochs = 2\n")
    frozen.ini(seed=1)
    assert ini.read_text().endswith("tfgrpo_task_id = frozen\ntfgrpo_seed = 1\n")


def test_a_build_that_fails_fails_each_test_and_leaves_nothing(
    project: Project, projects: FrozenProjects, tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match="pytest failed"):
            Frozen(projects, project)(broken)
    assert (tmp_path / "built").read_text() == ".."
    assert not (project.root / "out").exists()
    assert Path.cwd() == project.root
    Frozen(projects, project)(build)
    assert (project.root / "out").exists()
