"""The session: created with the first scenario; connects pytest's hooks with the run, or one per agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.keys.list_values import domains
from pytest_tfgrpo.core.python.collector import collecting_seldom
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import is_gated
from pytest_tfgrpo.core.settings.agents import DOMAIN_AGENTS
from pytest_tfgrpo.core.settings.gate import BASELINE
from pytest_tfgrpo.core.settings.runs import OUT
from pytest_tfgrpo.launch.choice import choose, phases_of
from pytest_tfgrpo.launch.launch import read_gates, stored_baseline
from pytest_tfgrpo.plugin import categories, distributed, hook_calls, one_process, prepare
from pytest_tfgrpo.plugin.items import markers
from pytest_tfgrpo.plugin.items.catalog import Catalog, Marked
from pytest_tfgrpo.plugin.items.failures import ItemFailed
from pytest_tfgrpo.plugin.items.item_reports import ItemReports
from pytest_tfgrpo.plugin.items.items import (
    GateItem,
    RunFile,
    ScenarioItem,
    StandIn,
    make_gates,
    make_items,
)
from pytest_tfgrpo.plugin.items.selection import (
    Pick,
    elsewhere,
    functions_of,
    in_turn,
    is_scenario_item,
    left_out,
    may_add,
    narrowed,
    order,
    whole,
)
from pytest_tfgrpo.plugin.session_end import SessionEnd
from pytest_tfgrpo.plugin.start import agent_folders, garbage, gate_ids, options
from pytest_tfgrpo.runs.agents import is_tried, require_listed, unused_domains

if TYPE_CHECKING:
    from pytest_tfgrpo.core.settings import Settings
    from pytest_tfgrpo.launch.agents import Agent
    from pytest_tfgrpo.llm.limits.slots import EndpointSlots
    from pytest_tfgrpo.plugin.items.checkers import Checkers
    from pytest_tfgrpo.plugin.session_run import SessionRun
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind

NAME = "tfgrpo-session"
ONLY_DEV = (
    "only dev scenarios are selected; they validate what train scenarios teach, "
    "so select train scenarios as well"
)
ONLY_TRAIN = (
    "only train and dev scenarios are selected; they run only with --tfgrpo; "
    "a scenario with split: eval is a test of plain pytest too"
)


def session_of(config: pytest.Config) -> TfgrpoSession:
    """Return the session of an invocation, made and registered on first use."""
    session: TfgrpoSession | None = config.pluginmanager.get_plugin(NAME)
    if session is None:
        session = TfgrpoSession(config)
        # Registered late, so that its wrapper of the item list is the outermost one.
        config.pluginmanager.register(session, NAME)
        config.pluginmanager.register(ItemReports(), "tfgrpo-item-reports")
        categories.register(config)
    return session


class TfgrpoSession:
    """The scenarios of one invocation of pytest and their run."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the settings; nothing is opened yet."""
        self.config = config
        self.settings = options.settings_of(config)
        self._agents, self.misuse = _open_agents(config, self.settings)
        """`misuse`: what is wrong with the list of agents, or with the mark of a test function."""
        self.domain_agents: Mapping[str, Sequence[str]] = domains(DOMAIN_AGENTS.of(self.settings))
        """Names of those of a list that try a domain, by domain."""
        self.marked: dict[str, str] = {}
        self.phases: list[Phase] = phases_of(self._agents[0].settings, config.rootpath)
        self._kinds: dict[str, CheckKind] = {}
        self._catalog = Catalog(config.rootpath, self._kinds)
        self._broken = ""
        """Why no scenario file can be read: a hook that supplies check kinds broke."""
        try:
            self._kinds.update(hook_calls.check_kinds(config))
        except pytest.UsageError as error:
            self._broken = str(error)
        self._partial = ""
        """What left out scenarios of the suite; empty when all of them were selected."""
        self._unrun = ""
        """Why the gate fails though nothing ran: no eval scenario is left."""
        self._runs: dict[str, SessionRun] = {}
        """The prepared runs by agent."""
        self._end = SessionEnd(config, self.settings, self._runs)
        config.pluginmanager.register(self._end, f"{NAME}-end")
        self._alone = False
        """True before the first scenario's item, when no test of the user runs beside them."""

    @property
    def learning(self) -> bool:
        """Whether the run learns."""
        return self.settings.learning

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents that run side by side; one empty name for a single actor."""
        return tuple(agent.name for agent in self._agents)

    def load(self, path: Path) -> tuple[Scenario, ...]:
        """Return the scenarios of a file, known from now on; raises ScenarioError."""
        if self._broken:
            raise ScenarioError(self._broken)
        scenarios = self._catalog.load(path)
        require_listed(scenarios, self.agents)
        return scenarios

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> Any:
        """Bring back whole scenarios, restore epoch order, add the gate, and prepare the run."""
        with distributed.handing_over(self.config):
            if self.misuse is not None:
                raise self.misuse
            functions = functions_of(items, learning=self.learning)
            result = yield
            kept = functions_of(items, learning=self.learning)
            self._partial = left_out(sorted(functions), kept, functions) or self._partial
        self.arrange(session, items)
        return result

    def arrange(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Select the scenarios of a run, order their items, and prepare it; raises pytest.UsageError."""
        with distributed.handing_over(self.config):
            if self.misuse is not None:
                raise self.misuse
            self._partial = narrowed(session) or self._partial
            chosen = [item for item in items if is_scenario_item(item)]
            named = [item for item in items if isinstance(item, StandIn)]
            others = _others(self.config, items)
            self._alone = all(isinstance(item, ScenarioItem) for item in items)
            if chosen or may_add(session, asked=bool(named) or self.learning):
                if OUT.of(self.settings) or self.learning:
                    agent_folders.refuse_output(self.config, items)
                items[:] = others + self._select(session, chosen)
                gate_ids.require_gates(self.config, items)
            elif named:
                raise pytest.UsageError(f"{named[0].nodeid} needs the scenarios of its run; select these too")
            else:
                items[:] = others + self._without_eval(session)

    def _select(self, session: pytest.Session, chosen: list[pytest.Item]) -> list[pytest.Item]:
        files = [item for item in chosen if isinstance(item, ScenarioItem)]
        marked = [(item, slot.agent) for item in chosen if (slot := markers.slot_of(item)) is not None]
        own = {
            name: (
                [item for item in files if item.agent == name],
                self._catalog.functions([item for item, agent in marked if agent == name], self.phases),
            )
            for name in self.agents
        }
        ids = {
            name: {s.id for item in items for s in item.scenarios} | {f.scenario.id for f in functions}
            for name, (items, functions) in own.items()
        }
        # In order of collection, whatever --ff or random-order plugins made of it.
        known = set[str]().union(*ids.values())
        selected = {id_: s for id_, s in self._catalog.scenarios.items() if id_ in known}
        wanted = hook_calls.revise_scenarios(self.config, list(selected.values()), self._kinds)
        with prepare.usage_errors():
            require_listed(wanted, self.agents)
        if any(self.agents) and not self._partial and distributed.places(self.config)[1]:
            self._end.section.warnings = unused_domains(
                self.domain_agents, [*self._catalog.scenarios.values(), *wanted]
            )
        changed = {s.id: s for s in wanted}
        for item in files:
            item.scenarios = tuple(changed.get(s.id, s) for s in item.scenarios)
        home = RunFile.of(session)
        picks = [
            self._pick(home, agent, wanted, selected.keys() - ids[agent.name], selected, *own[agent.name])
            for agent in self._agents
            if ids[agent.name] or not chosen
        ]
        ordered = in_turn(self.phases, (pick.items for pick in picks))
        kept = {item.nodeid for item in ordered}
        dropped = [item for item in chosen if item.nodeid not in kept]
        if dropped:
            self.config.hook.pytest_deselected(items=dropped)
        if not ordered:
            idle = any(pick.scenarios for pick in picks) if self.learning else selected
            self._end.section.lines = [ONLY_DEV if self.learning else ONLY_TRAIN] if idle else []
            return self._without_eval(session)
        gates = self._prepare_all(
            home, [pick for pick in picks if pick.items], [*self._catalog.scenarios.values(), *wanted]
        )
        return [] if self.config.getoption("tfgrpo_dry_run", False) else [*ordered, *gates]

    def _pick(
        self,
        home: RunFile,
        agent: Agent,
        wanted: Sequence[Scenario],
        others: Set[str],
        selected: Mapping[str, Scenario],
        files: list[ScenarioItem],
        functions: list[Marked],
    ) -> Pick:
        """Return what an agent runs of what is `wanted`, without what was selected for `others` only."""
        own = [s for s in wanted if s.id not in others and is_tried(s, agent.name, self.domain_agents)]
        choice = choose(own, agent.settings, self.config.rootpath, agent.resume)
        added = [s for s in choice.scenarios if s.id not in selected]
        items = [
            *(whole(files) if self.learning else files),
            *make_items(home, added, self, (agent.name,)),
        ]
        collected = [
            s.id
            for s in self._catalog.scenarios.values()
            if (self.learning or s.split == "eval") and is_tried(s, agent.name, self.domain_agents)
        ]
        return Pick(
            agent=agent,
            scenarios=choice.scenarios,
            phases=choice.phases,
            functions=functions,
            items=order(choice.phases, items, functions),
            partial=self._partial
            or left_out(collected, selected.keys() - others, {s.id for s in choice.suite})
            or choice.left_out,
        )

    @collecting_seldom()  # what is loaded here stays
    def _prepare_all(self, home: RunFile, picks: list[Pick], known: list[Scenario]) -> list[pytest.Item]:
        """Prepare the runs, and return the items of their gates."""
        from pytest_tfgrpo.launch.engine_thread import LoopThread
        from pytest_tfgrpo.plugin.session_run import SessionRun

        if not (self.config.option.collectonly or self.config.getoption("tfgrpo_dry_run", False)):
            self._end.process = one_process.keep(self.config, [item for p in picks for item in p.items])
        if not self.config.option.collectonly:
            _require_known_fixtures(picks)
        gates, root = list[pytest.Item](), self.config.rootpath
        shared = prepare.shared_budget(self.settings, len(picks))
        screen, host = distributed.screen_of(self.config), LoopThread()
        slots: EndpointSlots = {}
        for pick in picks:
            settings, name = pick.agent.settings, pick.agent.name
            with prepare.usage_errors():
                named = read_gates(settings, root, known, partial=bool(pick.partial))
            if not self.config.option.collectonly:
                launch = prepare.prepare(
                    self.config,
                    pick,
                    kinds=self._kinds,
                    gates=named,
                    elsewhere=self._elsewhere,
                    budget=shared and shared.share(),
                    slots=slots,
                )
                functions = {str(f.scenario.checker): f.scenario for f in pick.functions}
                self._runs[name] = SessionRun(
                    self.config, launch, functions, agent=name, screen=screen, host=host
                )
            gates += make_gates(home, self, named, name) if is_gated(settings) else []
        for run in self._runs.values():
            run.live.together = [one.live for one in self._runs.values()]
        if self.config.getoption("tfgrpo_dry_run", False):
            self._end.section.lines = prepare.dry_run(
                [(run.agent, run.launch) for run in self._runs.values()]
            )
        return gates

    def _elsewhere(self, ids: Sequence[str], *, anywhere: bool = False) -> str:
        """Return which of `ids` are outside the paths that pytest looked in; see `elsewhere`."""
        missing = [id_ for id_ in ids if id_ not in self._catalog.scenarios]
        return elsewhere(self.config, missing, anywhere=anywhere)

    def _without_eval(self, session: pytest.Session) -> list[pytest.Item]:
        """Return the gate, which fails, where a baseline is set and the whole suite has nothing to run."""
        if not BASELINE.of(self.settings) or self._partial or self.config.getoption("tfgrpo_dry_run", False):
            return []
        agent = self._agents[0]
        missing = partial(self._elsewhere, anywhere=not self._catalog.scenarios)
        self._unrun = _missing_eval(agent.settings, self.config.rootpath, missing)
        return [*make_gates(RunFile.of(session), self, [], agent.name)] if self._unrun else []

    def show(self, item: ScenarioItem) -> None:
        """Wait for the item's groups, and raise ItemFailed when the item fails."""
        self._runs[item.agent].show(item)
        if self._alone:  # by now all is loaded that a run needs
            self._alone = False
            self._end.spared.enter_context(garbage.spare_lasting())

    def show_gate(self, item: GateItem) -> None:
        """Wait for the end of the run, and raise ItemFailed when the gate fails."""
        if self._unrun:
            raise ItemFailed(self._unrun)
        self._runs[item.agent].show_gate(item)

    def checkers_of(self, slot: object) -> Checkers | None:
        """Return what judges the rollout of a marked test function; None before the run is prepared."""
        run = self._runs.get(slot.agent) if isinstance(slot, markers.RolloutSlot) else None
        return None if run is None else run.checkers

    def hints(self, missing: str) -> list[str]:
        """Return what the items of marked test functions are called that a message says are `missing`."""
        return markers.hints_at(self.marked, self.config.args, missing)

    def adopt(self, output: dict[str, Any]) -> None:
        """Take over the terminal section from the xdist worker that made the run."""
        self._end.section.adopt(output)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        """Keep xdist from handing out the items of a worker that has ended with a usage error."""
        distributed.raise_again(self.config)


def _open_agents(
    config: pytest.Config, settings: Settings
) -> tuple[tuple[Agent, ...], pytest.UsageError | None]:
    """Return the agents, and what is wrong with their list: raised here, it would be an error of a file."""
    try:
        return prepare.open_agents(config, settings), None
    except pytest.UsageError as error:
        return prepare.one_agent(settings), error


def _others(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return what runs beside the scenarios."""
    return gate_ids.beside(
        config, [item for item in items if not (is_scenario_item(item) or isinstance(item, StandIn))]
    )


def _require_known_fixtures(picks: Sequence[Pick]) -> None:
    functions = {one.scenario.id: one for pick in picks for one in pick.functions}
    if functions:
        from pytest_tfgrpo.plugin.items.known_fixtures import require_known

        require_known(items[0] for one in functions.values() for items in [*one.items.values()][:1])


def _missing_eval(settings: Settings, root: Path, elsewhere: Callable[[Sequence[str]], str]) -> str:
    """Return why the gate fails where no eval scenario was collected; empty where it has none to miss."""
    with prepare.usage_errors():
        baseline = stored_baseline(settings, root)
    if baseline is None:  # a library or packs, which name no scenarios
        return ""
    ids = list(baseline.scenarios)
    if elsewhere(ids):
        return ""
    return (
        f"no eval scenario was collected to compare with the {len(ids)} of the baseline "
        f"{BASELINE.of(settings)!r}; bring them back, or set tfgrpo_baseline = none"
    )
