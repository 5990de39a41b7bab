"""Items: one per scenario and phase, and the gate with its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.plugin.items.failures import ItemFailed
from pytest_tfgrpo.plugin.items.markers import Outline
from pytest_tfgrpo.plugin.start.gate_ids import run_id
from pytest_tfgrpo.runs.agents import is_tried

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.config import NamedGate

BULK = 20_000
"""A file with more scenarios collects to one item per phase."""


class SessionView(Outline, Protocol):
    """What collectors and items need of the session."""

    @property
    def learning(self) -> bool:
        """Whether the run learns."""
        ...

    def load(self, path: Path) -> tuple[Scenario, ...]:
        """Return the scenarios of a file, known to the session from now on; raises ScenarioError."""
        ...

    def show(self, item: ScenarioItem) -> None:
        """Wait for the item's groups, and raise ItemFailed when the item fails."""
        ...

    def show_gate(self, item: GateItem) -> None:
        """Wait for the end of the run, and raise ItemFailed when the gate fails."""
        ...


class _Plain(pytest.Item):
    """An item whose failure is a text, not a traceback."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the text of a shortfall, or the usual traceback of anything else."""
        if isinstance(excinfo.value, ItemFailed):  # a traceback takes 0.2 s
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class ScenarioItem(_Plain):
    """One scenario in one phase; for a very large file, all its scenarios in one phase."""

    def __init__(
        self,
        *,
        board: SessionView,
        phase: Phase,
        scenarios: tuple[Scenario, ...],
        agent: str = "",
        **kwargs: Any,
    ) -> None:
        """`scenarios` are those of the item: one, except for a very large file; `agent` solves them."""
        super().__init__(**kwargs)
        self.board = board
        self.phase = phase
        self.agent = agent
        self.scenarios = scenarios
        self.together: Sequence[ScenarioItem] = ()
        """For a very large file, its items of the same agent in all phases."""
        for tag in {tag for scenario in scenarios[:1] for tag in scenario.tags}:
            self.extra_keyword_matches.add(tag)

    def runtest(self) -> None:
        """Wait for the groups; whichever item comes first starts the whole phase."""
        self.board.show(self)

    def siblings(self) -> list[ScenarioItem]:
        """Return the items of the same scenarios and agent in all phases."""
        assert isinstance(self.parent, pytest.Collector)
        if self.together:
            return [*self.together]
        return make_items(self.parent, self.scenarios, self.board, (self.agent,))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the scenario is written."""
        file, _, line = self.scenarios[0].source.rpartition(":")
        known = line.isdigit() and file and self.path.as_posix().endswith(file)
        return self.path, int(line) - 1 if known else None, self.name


class GateItem(_Plain):
    """A gate, at the end of a run."""

    def __init__(
        self, *, board: SessionView, named: NamedGate | None = None, agent: str = "", **kwargs: Any
    ) -> None:
        """`board` knows the run; without `named` it is the default gate, which the settings make."""
        super().__init__(**kwargs)
        self.board = board
        self.agent = agent
        self.named = named

    def runtest(self) -> None:
        """Judge the run."""
        self.board.show_gate(self)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return the ini file: the gate belongs to no other."""
        return self.path, None, f"tfgrpo {self.name}"


class StandIn(pytest.Item):
    """What the command line names of a run, until the run makes its items."""

    def runtest(self) -> None:
        """Never called."""
        raise AssertionError(f"{self.nodeid} is taken out of the items before they run")


class RunFile(pytest.File):
    """The file of what no file of the suite has: the gates, and scenarios that a hook adds.

    Editors draw the tree of tests by the paths of files, and they and people run one by its path and name. So
    this is the ini file, as far as there is one in the rootdir.
    """

    @classmethod
    def of(cls, parent: pytest.Collector) -> RunFile:
        """Return the file of a run."""
        config = parent.config
        name = run_id(config)
        made: RunFile = cls.from_parent(parent, path=config.rootpath / name, name=name, nodeid=name)
        return made

    def collect(self) -> Iterable[pytest.Item]:
        """Return a stand-in for each item that the command line names; the run makes the items themselves."""
        start = self.config.invocation_params.dir
        named = (word.partition("::") for word in self.config.args)
        for name in dict.fromkeys(name for path, _, name in named if name and start / path == self.path):
            yield StandIn.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}")


def items_of(
    file: pytest.Collector, scenarios: tuple[Scenario, ...], board: SessionView
) -> list[ScenarioItem]:
    """Return the items of a file with `scenarios`."""
    if len(scenarios) <= BULK:
        return make_items(file, scenarios, board, board.agents)
    items: list[ScenarioItem] = []
    for phase in board.phases if board.learning else board.phases[-1:]:
        label = phase.label if board.learning else "eval"
        for agent in board.agents:
            part = tuple(
                s for s in scenarios if _takes_part(s, phase) and is_tried(s, agent, board.domain_agents)
            )
            items += [_item(file, _joined(agent, label), phase, part, board, agent)] if part else []
    for item in items:
        item.together = [one for one in items if one.agent == item.agent]
    return items


def make_items(
    parent: pytest.Collector, scenarios: Iterable[Scenario], board: SessionView, agents: Sequence[str]
) -> list[ScenarioItem]:
    """Return the items of `scenarios`, one for each agent and each phase that a scenario takes part in."""
    items: list[ScenarioItem] = []
    for scenario in scenarios:
        own = [agent for agent in agents if is_tried(scenario, agent, board.domain_agents)]
        if not board.learning:
            items += [
                _item(parent, _in(scenario.id, agent), board.phases[-1], (scenario,), board, agent)
                for agent in own
            ]
            continue
        items += [
            _item(parent, _in(scenario.id, _joined(agent, phase.label)), phase, (scenario,), board, agent)
            for phase in board.phases
            if _takes_part(scenario, phase)
            for agent in own
        ]
    return items


def _joined(agent: str, rest: str) -> str:
    return "-".join(filter(None, (agent, rest)))


def _in(name: str, brackets: str) -> str:
    return f"{name}[{brackets}]" if brackets else name


def _takes_part(scenario: Scenario, phase: Phase) -> bool:
    return (scenario.split != "eval") == phase.trains


def _item(
    parent: pytest.Collector,
    name: str,
    phase: Phase,
    scenarios: tuple[Scenario, ...],
    board: SessionView,
    agent: str,
) -> ScenarioItem:
    # The explicit node id keeps --lf and --ff right on pytest 9.2, which would otherwise escape the name.
    make: Callable[..., ScenarioItem] = ScenarioItem.from_parent
    nodeid = f"{parent.nodeid}::{name}"
    return make(parent, name=name, nodeid=nodeid, board=board, phase=phase, scenarios=scenarios, agent=agent)


def make_gates(
    parent: pytest.Collector, board: SessionView, gates: Iterable[NamedGate], agent: str
) -> list[pytest.Item]:
    """Return the items of an agent's named gates, and of its default gate, which is the last."""
    make: Callable[..., pytest.Item] = GateItem.from_parent
    made = []
    for gate in (*gates, None):
        name = _in("gate", _joined(agent, gate.name if gate is not None else ""))
        nodeid = f"{parent.nodeid}::{name}"
        made.append(make(parent, name=name, nodeid=nodeid, board=board, named=gate, agent=agent))
    return made
