"""Selection: which scenarios pytest selected, and the order in which they run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.plugin.distributed import places
from pytest_tfgrpo.plugin.items.catalog import Marked
from pytest_tfgrpo.plugin.items.items import ScenarioItem
from pytest_tfgrpo.plugin.items.markers import base_id, slot_of, split_of

if TYPE_CHECKING:
    from pytest_tfgrpo.launch.agents import Agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Pick:
    """What pytest selected for the run of an agent."""

    agent: Agent
    scenarios: Sequence[Scenario]
    phases: Sequence[Phase]
    functions: Sequence[Marked]
    items: Sequence[pytest.Item]
    """In the order of the run."""
    partial: str
    """What left out scenarios of the suite; empty when all of them were selected."""


def is_scenario_item(item: pytest.Item) -> bool:
    """Return whether an item belongs to a scenario, from a file or from a marked test function."""
    return isinstance(item, ScenarioItem) or slot_of(item) is not None


def functions_of(items: Iterable[pytest.Item], *, learning: bool) -> frozenset[str]:
    """Return the marked test functions among `items` that a run would have, by the id their items share."""
    return frozenset(
        base_id(item)
        for item in items
        if slot_of(item) is not None and (learning or split_of(item) == "eval")
    )


def narrowed(session: pytest.Session) -> str:
    """Return why pytest did not even collect some scenarios of the suite; empty when it did, or may have.

    Node ids and --lf keep it from looking at the rest, a file that is broken keeps its scenarios to itself.
    """
    config = session.config
    if config.getoption("lf", False) and config.cache and config.cache.get("cache/lastfailed", {}):
        return "--lf"
    if session.testsfailed > 0:
        return "a file could not be collected"
    named = next((arg for arg in config.args if "::" in arg), "")
    return f"only {named} and the like were selected" if named else ""


def left_out(collected: Sequence[str], selected: Collection[str], wanted: Collection[str]) -> str:
    """Return which of what was collected was not selected, or is not `wanted` by a hook; empty for none."""
    if deselected := [id_ for id_ in collected if id_ not in selected]:
        return f"{few(deselected)} deselected"
    dropped = [id_ for id_ in collected if id_ not in wanted]
    return f"a hook pytest_tfgrpo_scenarios dropped {few(dropped)}" if dropped else ""


def elsewhere(config: pytest.Config, missing: Sequence[str], *, anywhere: bool) -> str:
    """Return which scenarios of a baseline are `missing` because pytest did not look at their files.

    Unless `anywhere`, what the whole suite leaves out is nowhere.
    """
    looked_in, whole_suite = places(config)
    if (whole_suite and not anywhere) or not missing:
        return ""
    from pytest_tfgrpo.suite.collection import uncollected

    found = uncollected(config.rootpath.resolve(), list(map(Path, looked_in)), missing)
    return f"{few(found)} of the baseline in files that were not selected" if found else ""


def may_add(session: pytest.Session, *, asked: bool) -> bool:
    """Return whether a hook may add scenarios where none was collected.

    Not to tests that the command line selects by name, unless a run was `asked` for.
    """
    config = session.config
    by_name = narrowed(session) or config.getoption("keyword", "") or config.getoption("markexpr", "")
    return bool(config.hook.pytest_tfgrpo_scenarios.get_hookimpls()) and (asked or not by_name)


def whole(items: Iterable[ScenarioItem]) -> list[ScenarioItem]:
    """Return `items` and those that their scenarios lack: choosing one item brings its whole scenario."""
    chosen = {item.nodeid: item for item in items}
    known = dict(chosen)
    seen: set[str] = set()
    for item in chosen.values():
        if item.scenarios[0].id not in seen:
            seen.add(item.scenarios[0].id)
            for sibling in item.siblings():
                known.setdefault(sibling.nodeid, sibling)
    return list(known.values())


def order(
    phases: Sequence[Phase], items: Iterable[ScenarioItem], functions: Iterable[Marked]
) -> list[pytest.Item]:
    """Return the items of the planned phases: epochs in order, scenarios in order within each.

    Items of scenarios that a phase did not draw are left out.
    """
    found: dict[tuple[int, str], Sequence[pytest.Item]] = {}
    for item in items:
        found.update({(item.phase.epoch, scenario.id): (item,) for scenario in item.scenarios})
    for function in functions:
        found.update({(epoch, function.scenario.id): nodes for epoch, nodes in function.items.items()})
    ordered: dict[str, pytest.Item] = {}
    for phase in phases:
        for scenario_id in (*phase.scenarios, *phase.dev):
            for node in found.get((phase.epoch, scenario_id), ()):
                ordered.setdefault(node.nodeid, node)
    return list(ordered.values())


def in_turn(phases: Sequence[Phase], runs: Iterable[Sequence[pytest.Item]]) -> list[pytest.Item]:
    """Return the items of runs that go on side by side: phase by phase, those of each run together."""
    place = {phase.epoch: n for n, phase in enumerate(phases)}
    return sorted((item for items in runs for item in items), key=lambda item: place[_epoch(item)])


def _epoch(item: pytest.Item) -> int:
    slot = slot_of(item)
    if slot is not None:
        return slot.epoch
    assert isinstance(item, ScenarioItem)
    return item.phase.epoch
