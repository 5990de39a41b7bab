"""Frozen projects: pytest runs in a project once in a session, and each test gets a copy of its folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.guard import shared
from support.project import Project

Build = Callable[[Project], object]
"""Writes a project and runs pytest in it; of what it changes, the files alone last."""

TASK_ID = "frozen"
"""The task of all frozen projects; unnamed, it would be named after a folder that no two tests share."""


class FrozenProjects:
    """The frozen projects of a session, each under the function that makes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[Build, tuple[Path, object]] = {}

    def copy_into(self, project: Project, build: Build) -> object:
        """Copy the folder that `build` makes into the project; returns what `build` returned."""
        if build not in self._built:
            self._built[build] = self._build(project, build)
        frozen, returned = self._built[build]
        project.name_task(TASK_ID)
        ignored = shutil.ignore_patterns("__pycache__")  # compiled tests have the path of their source
        shutil.copytree(frozen, project.root, symlinks=True, ignore=ignored, dirs_exist_ok=True)
        return returned

    def _build(self, project: Project, build: Build) -> tuple[Path, object]:
        """Build in a folder of its own, so that the first test that asks gets a copy like all others."""
        root = self._folder / str(len(self._built))
        shutil.rmtree(root, ignore_errors=True)  # of a build that failed
        root.mkdir()
        with shared(), project.beside(root) as new:
            returned = build(new.name_task(TASK_ID))
        if isinstance(returned, pytest.RunResult):
            vars(returned).pop("reprec", None)  # it holds all objects of the run
        return root, returned


class Frozen:
    """Freezes the project of one test."""

    def __init__(self, projects: FrozenProjects, project: Project) -> None:
        self._projects, self._project = projects, project

    def __call__(self, build: Build) -> Project:
        """Return the test's project as `build` makes it."""
        self._projects.copy_into(self._project, build)
        return self._project

    def run(self, build: Callable[[Project], pytest.RunResult]) -> pytest.RunResult:
        """Return the result of the run in which `build` ends; the test's project is as that left it."""
        result = self._projects.copy_into(self._project, build)
        assert isinstance(result, pytest.RunResult)
        return result


def learned(project: Project) -> None:
    """Learn in three epochs with an agent whom the lessons help, as the task ``demo``."""
    project.pages().ini(actor="python:agent:learner", task_id="demo").scenarios(train=4, sweep=12)
    assert project.learn().ret == 0
