"""Tasks in the format of Harbor, read without running anything of them."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.imports.harbor.foreign_task import read_foreign
from pytest_tfgrpo.suite.imports.harbor.own_task import read_own
from pytest_tfgrpo.suite.imports.harbor.task_folder import TaskFolder, TaskProblem
from pytest_tfgrpo.suite.imports.harbor.task_form import CONFIG, INSTRUCTION, OURS
from pytest_tfgrpo.suite.imports.imported import Imported

MOST_TASKS = 100_000


def read_tasks(found: Imported, path: Path) -> None:
    """Add the scenario of a task, or those of all tasks in a folder.

    What no scenario can stand for is noted by name. Raises ScenarioError where there is no task.
    """
    folders = [path] if _is_file(path / CONFIG) else list(_below(found, path))
    if not folders and not found.refused:
        raise ScenarioError(f"{path}: there is no task: no {CONFIG}, and no folder with one")
    for folder in folders:
        task = TaskFolder(folder)
        try:
            _add(found, task)
        except TaskProblem as error:
            found.refuse(task.name, str(error))


def _below(found: Imported, path: Path) -> Iterator[Path]:
    try:
        entries = sorted(path.iterdir())
    except OSError as error:
        raise ScenarioError(f"{path}: cannot read the tasks: {error.strerror}") from None
    for entry in entries[:MOST_TASKS]:
        if _is_file(entry / CONFIG) or _is_file(entry / INSTRUCTION):
            if entry.is_symlink():
                found.refuse(entry.name, "it is a link; name its folder itself")
            else:
                yield entry


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - raises nothing where a folder cannot be looked into


def _add(found: Imported, task: TaskFolder) -> None:
    config = _config(task)
    id_ = found.free_id(task.name)
    metadata = config.get("metadata")
    if isinstance(metadata, Mapping) and OURS in metadata:
        parts = read_own(task, config, id_)
        if found.clashes(parts.files):
            parts = read_own(TaskFolder(task.path), config, id_, own_names=False)
    else:
        parts = read_foreign(task, config, id_)
    try:
        found.keep(parts.files)
    except ValueError as error:
        raise TaskProblem(str(error)) from None
    found.add(id_, parts.scenario, task.name)
    for what in dict.fromkeys(parts.lost):
        found.leave_out(what, task.name)
    if id_ != task.name:
        found.leave_out("names of tasks that cannot be ids, or that another one has", task.name)


def _config(task: TaskFolder) -> Mapping[str, Json]:
    try:
        found: Mapping[str, Json] = json.loads(
            json.dumps(tomllib.loads(task.text(CONFIG)), allow_nan=False, default=str)
        )
    except TaskProblem:
        raise
    except (ValueError, RecursionError) as error:
        raise TaskProblem(f"{CONFIG} is not TOML that can be read here: {error}") from None
    return found
