"""What the commands of learning work on: the repository, its settings, and the queue of its jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import Project, open_project
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.patterns.jobs.alerts import AlertCall, AlertCommand
from pytest_tfgrpo.patterns.jobs.manifest import LEARNING
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.jobs.settle import settle
from pytest_tfgrpo.patterns.learn_file import LearnSettings, load_learn_settings


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenLearning:
    """The jobs of a repository's task."""

    root: Path
    project: Project
    settings: LearnSettings
    queue: JobQueue

    def settle(self) -> list[str]:
        """Do what the queue owes, and return the lines of warnings; raises StoreError."""
        return [f"warning: {one}" for one in settle(self.queue, alert_call(self.root, self.settings))]


def alert_call(root: Path, settings: LearnSettings) -> AlertCall | None:
    """Return what calls the command of alerts, in the root of the repository; None where there is none."""
    return AlertCommand(settings.alert_command, root) if settings.alert_command else None


@contextmanager
def open_learning(arguments: Arguments) -> Iterator[OpenLearning]:
    """Open the queue of the current folder's repository; raises SettingError, StoreError."""
    root = locate(Path.cwd()).root
    settings = load_learn_settings(root, os.environ)
    flags = {name: value for name in ("out", "task_id") if (value := getattr(arguments, name))}
    project = open_project(root, flags, os.environ)
    with JobQueue(project.out / project.task_id / LEARNING) as queue:
        yield OpenLearning(root=root, project=project, settings=settings, queue=queue)
