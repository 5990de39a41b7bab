"""The export of a suite: a folder for each task, whole or absent, and what could not be said."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.export.harbor.task_files import HarborTask, NoTask, task_of
from pytest_tfgrpo.export.harbor.written_scenarios import WrittenScenario, written_scenarios
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.suite.imports.harbor.task_form import CONFIG, OURS

SCRIPTS = (".sh",)


def export_tasks(suite: Path, into: Path, *, force: bool) -> Iterator[str]:
    """Write the scenarios of a file or folder as tasks below `into`; yield what became of them.

    Raises ExportError where no scenario can be exported, or a task is there and `force` is not, and
    ScenarioError where there is no suite.
    """
    done = _Exported()
    for one in written_scenarios(suite):
        if not isinstance(one, WrittenScenario):
            done.refuse(*one)
            continue
        id_ = one.scenario.id
        if id_ in done.sources:
            done.refuse(one.scenario.source, f"the id {id_!r} is that of {done.sources[id_]} too")
            continue
        try:
            task = task_of(one)
        except NoTask as error:
            done.refuse(id_, str(error))
            continue
        _write(task, into / id_, force=force)
        done.add(one.scenario, task)
    if not done.sources:
        none = [f"{suite} has no scenario file; name the folder of a suite, or a scenario file"]
        raise ExportError("\n".join(["no scenario could be exported", *(done.refused or none)]))
    yield f"{plural(len(done.sources), 'task')} in {line(os.path.relpath(into))}"
    yield from done.report()


class _Exported:
    """What was exported so far, and what was not."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        """Where each scenario stands, by id."""
        self.refused: list[str] = []
        self._kept = Counter[str]()
        self._lost: dict[str, list[str]] = {}

    def add(self, scenario: Scenario, task: HarborTask) -> None:
        self.sources[scenario.id] = scenario.source
        self._kept.update(task.kept)
        for what in task.lost:
            self._lost.setdefault(what, []).append(scenario.id)

    def refuse(self, name: str, why: str) -> None:
        self.refused.append(f"not exported: {line(name, 200)}: {line(why, 300)}")

    def report(self) -> Iterator[str]:
        """Yield what was not exported, what was lost, and what a container does not follow."""
        yield from self.refused
        for what, ids in self._lost.items():
            yield f"lost: {line(what, 200)}, of {few(ids, 5)}"
        if self._kept:
            counted = ", ".join(f"{what} ({times})" for what, times in self._kept.items())
            yield f"kept for the way back, without effect in a container: {counted}"
        yield (
            "no container was built or run: before you use a task, let Harbor's oracle agent solve it, which "
            "must get 1"
        )


def _write(task: HarborTask, folder: Path, *, force: bool) -> None:
    """Write a task beside its place, and move it there; raises ExportError, OSError."""
    if os.path.lexists(folder):
        if not force:
            raise ExportError(f"{folder} exists; name another folder with --into, or replace it with --force")
        if not _is_ours(folder):
            raise ExportError(
                f"{folder} was not written by tfgrpo, and stays; name another folder with --into"
            )
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        _write_files(task.files, draft)
        draft.chmod(0o755)
        if folder.exists() and (left := remove(folder)):
            raise ExportError(f"cannot replace {folder}: {left}")
        draft.rename(folder)
    except BaseException:
        remove(draft)
        raise


def _write_files(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if path.suffix in SCRIPTS:
            path.chmod(0o755)


def _is_ours(folder: Path) -> bool:
    try:
        config = tomllib.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return not folder.is_symlink() and OURS in config.get("metadata", {})
