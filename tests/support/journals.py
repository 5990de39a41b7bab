"""Journals for tests: a finished run written event by event, without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Group, Phase, Rollout, RunHeader, header_fields
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.runs.journal.journal import SCHEMA, encode
from pytest_tfgrpo.suite.prompt import render_prompt
from support.builders import make_group, make_pack, make_rollout, make_scenario

JournalEvent: TypeAlias = tuple[str, Any]
PACK = make_pack()


def make_training_group(
    rewards: Sequence[float | None],
    scenario: Scenario | None = None,
    *,
    epoch: int = 1,
    lessons: Sequence[Experience] = (),
    pack: PromptPack = PACK,
    change: Callable[[Rollout], Rollout] = lambda rollout: rollout,
) -> Group:
    """Return a group whose rollouts carry the stamp of their prompt; each passes through `change`.

    A reward of None makes an error. Rollouts answer what they are worth.
    """
    scenario = scenario or make_scenario()
    stamp = render_prompt(pack, scenario, lessons).stamp
    rollouts = tuple(
        change(
            make_rollout(
                i,
                reward,
                scenario_id=scenario.id,
                epoch=epoch,
                answer=f"answer {i}",
                prompt_stamp=stamp,
                experiences=tuple(lesson.id for lesson in lessons),
            )
        )
        for i, reward in enumerate(rewards)
    )
    return make_group(list(rewards), rollouts=rollouts, domain=scenario.domain)


def group_events(group: Group) -> list[JournalEvent]:
    """Return the events of a group: its rollouts, then its scores."""
    value = to_wire(replace(group, rollouts=()))
    value["rollouts"] = [[r.rollout_id, r.status] for r in group.rollouts]
    return [*(("rollout", to_wire(r)) for r in group.rollouts), ("group", value)]


def write_run(
    folder: Path,
    events: Iterable[JournalEvent],
    scenarios: Sequence[Scenario] = (),
    *,
    epochs: int = 1,
    library: Library | None = None,
    packs: Sequence[PromptPack] = (PACK,),
    status: str | None = "complete",
    **header_changes: Any,
) -> Path:
    """Write the journal of the run ``run1``, with all `scenarios` in each epoch; returns its folder.

    `status` None leaves the run killed. Other fields of its header are given by name.
    """
    known = scenarios or [make_scenario()]
    fields: dict[str, Any] = {"run_id": "run1", "task_id": "demo", "started_at": ""}
    fields |= {"settings": {}, "stamps": {}, "versions": {}, "scenarios": tuple(known)}
    header = RunHeader(**fields | header_changes)
    ids = tuple(s.id for s in known)
    phases = [
        Phase(epoch=n, mode="train", temperature=0.7, rollouts=2, scenarios=ids) for n in range(1, epochs + 1)
    ]
    start = {
        "schema": SCHEMA,
        **to_wire(header_fields(header)),
        "phases": to_wire(phases),
        "library": to_wire(library or Library(experiences=(), hash="")),
        "packs": to_wire(packs),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / JOURNAL).open("wb") as file:
        n = 1
        file.write(encode(n, "run", start))
        for n, (name, data) in enumerate(events, 2):
            file.write(encode(n, name, data))
        if status is not None:
            end = {"status": status, "reason": "", "finished_at": "", "warnings": []}
            file.write(encode(n + 1, "finish", end))
    return folder
