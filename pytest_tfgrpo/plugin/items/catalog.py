"""The catalog: all collected scenarios, from files and from marked test functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.plugin.items import markers
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.scenario_files import Suite, load_scenarios


@dataclass(frozen=True, slots=True)
class Marked:
    """A marked test function with all its items."""

    scenario: Scenario
    items: Mapping[int, Sequence[pytest.Item]]
    """Its items by epoch, one per rollout."""


class Catalog:
    """Collects what pytest finds into one suite."""

    def __init__(self, root: Path, kinds: Mapping[str, CheckKind]) -> None:
        """`kinds` are all check kinds, supplied ones included."""
        self._root = root
        self._kinds = kinds
        self._suite = Suite()
        self._functions: dict[str, Scenario] = {}
        """Of marked test functions, by the node id that their items share."""

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """All scenarios by id, in order of collection."""
        return self._suite.scenarios

    def load(self, path: Path) -> tuple[Scenario, ...]:
        """Return the scenarios of a file; raises ScenarioError with all that is wrong."""
        scenarios = load_scenarios(path, root=self._root, kinds=self._kinds)
        problems = [problem for s in scenarios if (problem := self._suite.add(s)) is not None]
        if problems:
            raise ScenarioError("\n".join(problems))
        return scenarios

    def functions(self, items: Iterable[pytest.Item], phases: Sequence[Phase]) -> list[Marked]:
        """Return the marked test functions that `items` of one agent belong to, each with all its items.

        Items that pytest's selection left out are collected again. Raises pytest.UsageError.
        """
        found: dict[str, list[pytest.Item]] = {}
        for item in items:
            found.setdefault(markers.base_id(item), []).append(item)
        in_file_order = sorted(found.values(), key=lambda members: _place(members[0]))
        return [self._function(members, phases) for members in in_file_order]

    def _function(self, members: list[pytest.Item], phases: Sequence[Phase]) -> Marked:
        scenario = self._scenario(members[0])
        expected = sum(p.rollouts for p in phases if markers.takes_part(scenario.split, p))
        if len(members) < expected:
            members = markers.siblings(members[0])
        by_epoch: dict[int, list[pytest.Item]] = {}
        slots = [(slot, item) for item in members if (slot := markers.slot_of(item)) is not None]
        for slot, item in sorted(slots, key=lambda pair: pair[0].index):
            by_epoch.setdefault(slot.epoch, []).append(item)
        return Marked(scenario, by_epoch)

    def _scenario(self, item: pytest.Item) -> Scenario:
        name = markers.base_id(item)
        if name not in self._functions:
            try:
                scenario = markers.scenario_of(item)
            except ScenarioError as error:
                raise pytest.UsageError(str(error)) from error
            problem = self._suite.add(scenario)
            if problem is not None:
                raise pytest.UsageError(problem)
            self._functions[name] = scenario
        return self._functions[name]


def _place(item: pytest.Item) -> tuple[str, int, str]:
    path, line, _ = item.location
    return path, line or 0, markers.base_id(item)
