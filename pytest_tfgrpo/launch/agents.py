"""Agents side by side: one run for each, with equal seeds, a library of its own and a shared budget."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_tfgrpo.core.errors import ResumeError, SettingError
from pytest_tfgrpo.core.file_writing import write_json, write_text
from pytest_tfgrpo.core.files import REPORT_HTML
from pytest_tfgrpo.core.keys.agent_list import PLACE, listed_agents
from pytest_tfgrpo.core.keys.list_values import domains
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import default_task_id, task_of
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.agents import ACTOR, DOMAIN_AGENTS, RECORD
from pytest_tfgrpo.core.settings.gate import BASELINE
from pytest_tfgrpo.core.settings.runs import CONCURRENCY, EXECUTOR, LIBRARY, TASK_ID
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.executors.registry import shared
from pytest_tfgrpo.engine.request import out_folder
from pytest_tfgrpo.llm.limits.concurrency import AUTO
from pytest_tfgrpo.runs.journal.journal_contents import list_runs, new_run_id, read_log
from pytest_tfgrpo.runs.resumable import is_concluded

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Run

COMPARISONS = "comparisons"
"""Folder of a task with the comparisons of its agents."""
FILES: tuple[Setting[str | None], ...] = (LIBRARY, RECORD, BASELINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Agent:
    """One of the agents that a session runs."""

    name: str = ""
    """Its name in the list; empty where the setting names a single actor."""
    settings: Settings
    """The settings of its run."""
    resume: str | None = None
    """The run to go on with; None starts a new one."""
    run_id: str | None = None
    """The id of a new run; None for any."""

    @property
    def again(self) -> bool:
        """Whether the run to go on with may have ended, as others of the list had not."""
        return bool(self.name)


def agents_of(
    settings: Settings, root: Path, *, resume: str | None = None, run_id: str | None = None
) -> tuple[Agent, ...]:
    """Return the agents that a session runs: of a single actor, one with the `settings` as they are.

    Runs of a list share their id but for the agent's name at its end, and `resume` goes on with all of them.
    Raises SettingError and ResumeError.
    """
    listed = listed_agents(ACTOR.of(settings))
    if not listed:
        return (Agent(settings=settings, resume=resume, run_id=run_id),)
    _require_listed(settings, [one.name for one in listed])
    task = TASK_ID.of(settings) or default_task_id(root.name)
    agents = [
        Agent(name=one.name, settings=_own(settings, task, one.name, one.spec, len(listed))) for one in listed
    ]
    if resume is not None:
        return tuple(_going_on(agents, root, resume))
    if run_id is None:
        run_id = new_run_id()
    return tuple(Agent(name=one.name, settings=one.settings, run_id=f"{run_id}-{one.name}") for one in agents)


def _require_listed(settings: Settings, names: Sequence[str]) -> None:
    """Refuse names of agents of a domain that the list lacks."""
    for domain, wanted in domains(DOMAIN_AGENTS.of(settings)).items():
        for name in wanted:
            if name not in names:
                hint = nearest(name, names) or f"; the list has {', '.join(names)}"
                raise SettingError(
                    f"domain_agents = {domain} = {name} ({settings.origins['domain_agents']}): unknown agent "
                    f"{name!r}{hint}"
                )


def _own(settings: Settings, task: str, name: str, spec: str, count: int) -> Settings:
    """Return the settings of one agent of `count`: its task, its files, its share of rollouts in flight."""
    files = {row.name: file.replace(PLACE, name) for row in FILES if (file := row.of(settings)) is not None}
    record, executor, most = RECORD.of(settings), EXECUTOR.of(settings), CONCURRENCY.of(settings)
    if record and count > 1 and PLACE not in record:
        raise SettingError(
            f"record = {record!r} ({settings.origins['record']}) is one file for {count} agents; "
            f"write {PLACE} into its name, for example recordings/{PLACE}.json"
        )
    return settings.with_values(
        **files,
        actor=spec,
        task_id=task_of(task, name),
        concurrency=most if most == AUTO else max(1, most // count),
        executor=executor if executor == "local" else _shared(executor, count),
    )


def _shared(executor: str, count: int) -> str:
    return shared(executor, count)


def _going_on(agents: Sequence[Agent], root: Path, wanted: str) -> list[Agent]:
    """Return the agents with the runs to go on with; one whose run had not begun starts it."""
    out = out_folder(root, agents[0].settings)
    if out is None:
        raise SettingError("--tfgrpo-resume needs an output folder: add --tfgrpo, or set --tfgrpo-out")
    tasks = {one.name: str(TASK_ID.of(one.settings)) for one in agents}
    folders = {name: {path.name: path for path in list_runs(out, task)} for name, task in tasks.items()}
    begun = {id_.removesuffix(f"-{name}") for name, known in folders.items() for id_ in known}
    if wanted == "latest":
        shared = next(
            (
                start
                for start in sorted(begun, reverse=True)
                for name, known in folders.items()
                if (path := known.get(f"{start}-{name}")) and not is_concluded(path, read_log(path))
            ),
            None,
        )
    else:
        starts = (wanted, *(wanted.removesuffix(f"-{one.name}") for one in agents))
        shared = next((start for start in starts if start in begun), None)
    if shared is None:
        which = "incomplete run" if wanted == "latest" else f"run {wanted!r}"
        known = ", ".join(sorted(begun)[-5:]) or "none"
        raise ResumeError(
            f"no {which} of these agents under {out} (latest: {known}); leave --tfgrpo-resume out to start "
            "new runs"
        )
    return [_resumed(one, f"{shared}-{one.name}", folders[one.name]) for one in agents]


def _resumed(agent: Agent, id_: str, known: dict[str, Path]) -> Agent:
    begun = id_ in known
    return Agent(
        name=agent.name, settings=agent.settings, resume=id_ if begun else None, run_id=None if begun else id_
    )


def compare_agents(
    runs: Mapping[str, Run],
    folders: Mapping[str, Path | None],
    *,
    task: str,
    verbosity: int,
    start: Path,
) -> list[str]:
    """Return the lines that compare the runs of agents, and write page and value where the runs have folders.

    The latter go to the folder of the suite's `task`.
    Paths are written as seen from the folder `start`. Raises JournalError when a file cannot be written.
    """
    from pytest_tfgrpo.report.agents.lines import agents_lines
    from pytest_tfgrpo.report.agents.value import agents_value

    name, run = next(iter(runs.items()))
    id_ = run.run_id.removesuffix(f"-{name}")
    value = agents_value(id_, runs)
    lines = agents_lines(value, verbosity=verbosity)
    first = folders[name]
    if first is None:
        lines.append(
            "page   none; the setting out (--tfgrpo-out=out) writes one with the answers side by side"
        )
    else:
        page = page_of(name, run, first, task)
        _write(page, value, runs, {key: folder for key, folder in folders.items() if folder is not None})
        lines += [f"page   {line(os.path.relpath(page, start))}", page.absolute().as_uri()]
    return lines


def page_of(name: str, run: Run, folder: Path, task: str) -> Path:
    """Return where the comparison of a list is, from the run of one of its agents and its folder."""
    return folder.parents[2] / task / COMPARISONS / f"{run.run_id.removesuffix(f'-{name}')}.html"


def _write(
    page: Path, value: Mapping[str, Any], runs: Mapping[str, Run], folders: Mapping[str, Path]
) -> None:
    from pytest_tfgrpo.report.agents.page import agents_page

    links = {
        name: "./"
        + quote(os.path.relpath(folder / REPORT_HTML, page.parent).encode("utf-8", "surrogateescape"))
        for name, folder in folders.items()
    }
    page.parent.mkdir(parents=True, exist_ok=True)
    write_json(page.with_suffix(".json"), value)
    write_text(page, agents_page(value, runs, links))
