"""What writes the patterns of proven jobs, as learn.toml has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytest_tfgrpo.cli.harvest.harvest_model import MODEL, open_writer
from pytest_tfgrpo.cli.project import Project
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.authoring.job_author import JobAuthor
from pytest_tfgrpo.patterns.learn_file import LEARN_FILE, LearnSettings
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens


@contextmanager
def open_author(
    project: Project, settings: LearnSettings, tell: Callable[[str], None]
) -> Iterator[JobAuthor]:
    """Return the author of patterns: the model of learn.toml within the project's budget, else the template.

    `tell` is called with what a reader should know, from any thread. Raises SettingError.
    """
    if not settings.model:
        yield JobAuthor(None, screens=PatternScreens(), tell=tell)
        return
    if not settings.model.startswith(MODEL):
        raise SettingError(
            f"{LEARN_FILE}: model: {settings.model!r} is none; write {MODEL}<model>, or leave it out"
        )
    with open_writer(project, settings.model) as model:
        yield JobAuthor(model.answer, screens=PatternScreens(), tell=tell)
