"""Find runs, rollouts and libraries of a task by what you type."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pytest_tfgrpo.cli.project import Project
from pytest_tfgrpo.core.errors import JournalError, SettingError, StoreError
from pytest_tfgrpo.core.files import JOURNAL, REPORT_JSON, REPORT_SCHEMA, read_plain
from pytest_tfgrpo.core.keys.agent_list import PLACE, listed_agents
from pytest_tfgrpo.core.keys.setting_parsers import task_of
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.settings.runs import LIBRARY
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.learning.library.library import as_of, empty, load_library
from pytest_tfgrpo.runs.journal.journal_contents import list_runs, load_run, read_log
from pytest_tfgrpo.runs.schedule import rollout_id

LATEST = "latest"
PREVIOUS = "previous"
COMMITTED = "committed"
SHOWN = 10


class FoundRollout(NamedTuple):
    """A rollout with what belongs to it."""

    rollout: Rollout
    score: Score | None
    """None when its group never became whole."""
    scenario: Scenario
    shared: str = ""
    """Id in the control that this answer of the final sweep serves too; no agent ran under it."""


def find_run(project: Project, wanted: str) -> Path:
    """Return the folder of a run: its id, the beginning or end of its id, ``latest``, or ``previous``.

    Raises JournalError when there is none, or when several are named so.
    """
    folders = list_runs(project.out, project.task_id)
    if wanted in (LATEST, PREVIOUS):
        place = 1 if wanted == LATEST else 2
        chosen = folders[-place : len(folders) - place + 1]
    else:
        chosen = [path for path in folders if path.name == wanted] or [
            path
            for path in folders
            if wanted and (path.name.startswith(wanted) or path.name.endswith(wanted))
        ]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise JournalError(f"{wanted!r} matches several runs: {_names(chosen)}")
    none = other_tasks(project) or "there are none yet; run pytest --tfgrpo"
    known = f"latest: {_names(folders)}" if folders else none
    raise JournalError(f"no run {wanted!r} of task {project.task_id!r} under {project.out} ({known})")


def find_agents(project: Project, wanted: str) -> dict[str, Path]:
    """Return the folders of runs of a list of agents, by name: by the id that they share, or ``latest``.

    Raises SettingError without a list, and JournalError where fewer than two agents have such a run.
    """
    names = [agent.name for agent in listed_agents(ACTOR.of(project.settings))]
    if not names:
        raise SettingError("--agents compares the agents of a list; name two or more in the setting actor")
    shared: dict[str, dict[str, Path]] = {}
    for name in names:
        for path in list_runs(project.out, task_of(project.task_id, name)):
            shared.setdefault(path.name.removesuffix(f"-{name}"), {})[name] = path
    known = sorted(id_ for id_, folders in shared.items() if len(folders) > 1)
    chosen = known[-1:] if wanted == LATEST else [id_ for id_ in known if id_.startswith(wanted)]
    if len(chosen) != 1:
        found = f"matches {len(chosen)} runs" if chosen else "is no run"
        latest = ", ".join(line(id_, 120) for id_ in known[-SHOWN:]) or "none"
        raise JournalError(
            f"{wanted!r} {found} that several of the agents {', '.join(names)} share under {project.out} "
            f"(latest: {latest})"
        )
    return shared[chosen[0]]


def run_before(project: Project, folder: Path, wanted: str) -> Path:
    """Return the folder of the run that the one in `folder` is to be compared with.

    `wanted` is as for `find_run`, or a folder that holds a journal; ``previous`` is the run before that in
    `folder`. Raises JournalError.
    """
    path = Path(wanted)
    if (path / JOURNAL).is_file():
        return path.resolve()
    if os.sep in wanted:
        raise JournalError(f"{wanted!r} is not the folder of a run: it has no {JOURNAL}")
    if wanted == PREVIOUS:
        earlier = [one for one in list_runs(project.out, project.task_id) if one.name < folder.name]
        if not earlier:
            raise JournalError(f"there is no run before {line(folder.name)} to compare it with")
        return earlier[-1]
    return find_run(project, wanted)


def find_rollout(project: Project, wanted: str) -> FoundRollout:
    """Return the rollout with this id, or the one whose id ends so, the latest run that can be read first.

    Raises JournalError when there is none, or several in the same run.
    """
    unread, scenarios = "", dict[str, None]()
    for folder in reversed(list_runs(project.out, project.task_id)):
        try:
            known = list(_rollouts(folder))
            named = [f for f in known if ("." + _id(f)).endswith("." + wanted)]
            scenarios |= dict.fromkeys(f.scenario.id for f in known)
        except JournalError as error:
            unread = unread or f"\nnot searched: {error}"
            continue
        found = [f for f in named if not f.shared] or named
        exact = [f for f in found if _id(f) == wanted] or found
        if len(exact) == 1:
            return exact[0]
        if exact:
            ids = [f.rollout.rollout_id for f in exact]
            more = f"\n  ... {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
            listed = "".join(f"\n  {id_}" for id_ in ids[:SHOWN])
            raise JournalError(f"{wanted!r} matches {len(ids)} rollouts; give more of the id:{listed}{more}")
    if not list_runs(project.out, project.task_id):
        raise JournalError(
            f"no run of task {project.task_id!r} under {project.out}, so nothing of {wanted!r}: plain pytest "
            "keeps none; run pytest --tfgrpo, or pytest --tfgrpo-out=out"
        )
    raise JournalError(
        f"no rollout or scenario {wanted!r} in any run of task {project.task_id!r} under {project.out}; "
        f"ids look like e1.count-words.r0{nearest(wanted, scenarios)}; tfgrpo report RUN prints a run{unread}"
    )


def find_scenario(project: Project, wanted: str) -> list[FoundRollout]:
    """Return the rollouts of the scenario with this id in the latest run that can be read and has some."""
    for folder in reversed(list_runs(project.out, project.task_id)):
        with suppress(JournalError):
            if found := [f for f in _rollouts(folder) if f.scenario.id == wanted and not f.shared]:
                return found
    return []


def _id(found: FoundRollout) -> str:
    return found.shared or found.rollout.rollout_id


def _rollouts(folder: Path) -> Iterator[FoundRollout]:
    """Yield the rollouts of a run, also under the ids in the control of those that it shares."""
    run = load_run(folder)
    scenarios = {scenario.id: scenario for scenario in run.scenarios}
    whole = set()
    for group in (group for result in run.phases for group in result.with_dev):
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            whole.add(rollout.rollout_id)
            yield FoundRollout(rollout, score, scenarios[rollout.scenario_id])
    for result in run.phases:
        for group in result.shared:
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                alias = rollout_id(run.run_id, result.phase, rollout.scenario_id, rollout.index)
                yield FoundRollout(rollout, score, scenarios[rollout.scenario_id], alias)
    for rollout in read_log(folder).rollouts.values():
        if rollout.rollout_id not in whole:
            yield FoundRollout(rollout, None, scenarios[rollout.scenario_id])


def read_report(folder: Path) -> dict[str, Any] | None:
    """Return the report of a run, None when it was killed before there was one; raises JournalError."""
    path = folder / REPORT_JSON
    try:
        report = load_json(read_plain(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise JournalError(f"cannot read {path}: {error}") from error
    if not isinstance(report, dict) or report.get("schema") != REPORT_SCHEMA:
        raise JournalError(
            f"{path} is not a report of schema {REPORT_SCHEMA!r}; resume the run or leave it out"
        )
    for wrong in violations("report", report)[:1]:
        raise JournalError(f"{path} is no report: {wrong.pointer}: {wrong.message}; restore or delete it")
    return report


def committed_file(project: Project) -> Path | None:
    """Return the file of the setting `library`, None when it is ``none``."""
    name = LIBRARY.of(project.settings)
    return None if name == "none" else project.root / str(name).replace(PLACE, _agent(project, name))


def _agent(project: Project, file: str) -> str:
    """Return the agent of a list whose task it is; raises SettingError where `file` needs one."""
    if PLACE not in file:
        return ""
    names = [agent.name for agent in listed_agents(ACTOR.of(project.settings))]
    task = project.task_id
    own = max((name for name in names if task.endswith(f".{name}")), key=len, default=None)
    if own is None:
        raise SettingError(
            f"library = {file!r} is a file of each agent; say whose with --task-id, for example "
            f"--task-id {task_of(task, names[0] if names else 'NAME')}"
        )
    return own


def other_tasks(project: Project) -> str:
    """Return where runs are if not in the project's task: in those of its agents; empty for nowhere."""
    base = project.task_id
    tasks = [task_of(base, agent.name) for agent in listed_agents(ACTOR.of(project.settings))]
    known = [task for task in tasks if list_runs(project.out, task)]
    said = "the runs of agents are in tasks of their own: add --task-id"
    return f"{said} {' or '.join(known)}" if known else ""


def find_library(project: Project, wanted: str) -> tuple[Library, Sequence[Experience]]:
    """Return a library and the revisions that led to it.

    `wanted` is ``committed`` (the file of the setting `library`; empty when there is none), a library file
    ``*.json``, or a run as for `find_run`, as of an epoch with ``RUN@EPOCH``. Raises StoreError and
    JournalError.
    """
    if wanted == COMMITTED:
        file = committed_file(project)
        return (load_library(file) if file and file.is_file() else empty()), ()
    if wanted.endswith(".json"):
        return load_library(project.root / wanted), ()
    name, _, epoch = wanted.partition("@")
    run = load_run(find_run(project, name or LATEST))
    revisions = [result.revision for result in run.phases if result.revision is not None]
    history = [op.experience for r in revisions for op in r.applied if op.experience is not None]
    if not epoch:
        return run.library, history
    if not epoch.isdecimal() or int(epoch) > max((result.phase.epoch for result in run.phases), default=0):
        raise StoreError(f"{wanted!r}: there is no epoch {epoch!r} in run {run.run_id}")
    return as_of(run.library_start, revisions, int(epoch)), history


def require_promotable(project: Project, run: Run) -> Path:
    """Return the file that a run's library is to be committed as; raises SettingError, StoreError."""
    file = committed_file(project)
    if file is None:
        raise SettingError(
            "library is 'none' (the default), so there is no file to promote to; set it in pytest's ini "
            "file, for example tfgrpo_library = library.json"
        )
    if run.status != "complete":
        raise StoreError(
            f"run {run.run_id} is {run.status}, so its library is not promoted; "
            f"finish it with {project.resume(run.run_id)}"
        )
    return file


def _names(folders: Sequence[Path]) -> str:
    return ", ".join(line(path.name, 120) for path in folders[-SHOWN:])
