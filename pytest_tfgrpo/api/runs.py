"""The runs that a call amounts to: one, or one for each agent, ready to start."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_tfgrpo.api.agents import GivenAgents, open_agent, read_agents, require_attributes
from pytest_tfgrpo.api.progress import follow
from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.keys.list_values import domains
from pytest_tfgrpo.core.keys.setting_parsers import default_task_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import Settings, from_arguments
from pytest_tfgrpo.core.settings.agents import ACTOR, DOMAIN_AGENTS
from pytest_tfgrpo.core.settings.runs import TASK_ID
from pytest_tfgrpo.core.settings.telemetry import OTEL
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.engine.request import RunRequest, SharedLimits
from pytest_tfgrpo.engine.supplied import Supplied
from pytest_tfgrpo.launch.agents import Agent, agents_of, compare_agents, page_of
from pytest_tfgrpo.launch.choice import choose
from pytest_tfgrpo.launch.launch import Launch, open_launch, read_gates
from pytest_tfgrpo.launch.result import RunResult, RunResults
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.limits.slots import EndpointSlots
from pytest_tfgrpo.runs.agents import is_tried, require_listed
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import Source, collect, uncollected

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import GateRule
    from pytest_tfgrpo.launch.running import Follow
    from pytest_tfgrpo.protocols import Rewarder, Tracing
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind

Given: TypeAlias = "tuple[Iterable[Rewarder], Mapping[str, CheckKind] | None, Iterable[GateRule]]"
"""Objects in addition to the built-in ones: rewarders, check kinds, rules of the gate."""
GivenScenarios: TypeAlias = "Source | Sequence[Source] | None"


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """What is ready to start."""

    launches: Mapping[str, Launch]
    """By agent; of a single one by the empty name."""
    listed: bool
    """Whether agents were given as a list or by name."""
    task: str
    """Names the suite."""
    follow: Follow | None
    """Shows how far the runs are; None where nothing is to be shown."""
    unrun: int
    """Scenarios without a split that are not run, as nothing is learned."""

    def result(self, results: Mapping[str, RunResult]) -> RunResult | RunResults:
        """Return what the runs came to, of several agents with their comparison; raises JournalError."""
        results = {name: replace(one, unrun=self.unrun) for name, one in results.items()}
        if not self.listed:
            (result,) = results.values()
            return result
        if len(results) < 2:
            return RunResults(results=results)
        lines = compare_agents(
            {name: one.run for name, one in results.items()},
            {name: one.folder for name, one in results.items()},
            task=self.task,
            verbosity=0,
            start=Path.cwd(),
        )
        name, first = next(iter(results.items()))
        page = None if first.folder is None else page_of(name, first.run, first.folder, self.task)
        return RunResults(results=results, lines=tuple(lines), page=page)


def open_runs(
    root: str | Path,
    scenarios: GivenScenarios,
    given: Given,
    learning: bool,
    resume: str | None,
    arguments: Mapping[str, Any],
) -> Runs:
    """Return the runs that a call amounts to; raises TfgrpoError on any misuse, before a call is made."""
    if not isinstance(root, str | Path):
        raise SettingError(f"root is a {type(root).__name__}, not a folder; write actor=..., scenarios=...")
    root, arguments = Path(root).resolve(), dict(arguments)
    shown = arguments.pop("progress", True)
    if not isinstance(shown, bool):
        raise SettingError(f"progress must be True or False, not {shown!r}")
    given_agents = read_agents(arguments.get("actor"))
    supplied = _supplied(given, arguments.get("optimizer"))
    arguments["actor"] = given_agents.setting
    if supplied.optimizer is not None:
        arguments["optimizer"] = supplied.optimizer.name
    settings = from_arguments(arguments, learning=learning)
    if ACTOR.of(settings) is None:
        raise SettingError("no actor is given; write actor=your_function, or a spec such as actor='offline'")
    agents = agents_of(settings, root, resume=resume)
    sources = _sources(scenarios)
    found = collect(root, sources, supplied.kinds)
    require_listed(found, [agent.name for agent in agents])
    opened = _Openings(
        root=root,
        sources=sources,
        whole=scenarios is None,
        found=found,
        supplied=supplied,
        agents=given_agents,
    )
    shared = Budget(settings.values) if len(agents) > 1 else None
    slots: EndpointSlots = {}
    tried = [one for one in agents if not one.name or opened.tries(one)]
    if not tried:
        raise ScenarioError(
            f"no scenario is for {few([one.name for one in agents])}; see agents and domain_agents"
        )
    return Runs(
        launches={one.name: opened.launch(one, shared and shared.share(), slots) for one in tried},
        listed=bool(listed_agents(ACTOR.of(settings))),
        task=TASK_ID.of(settings) or default_task_id(root.name),
        follow=follow() if shown else None,
        unrun=0 if learning else sum(one.split == "train" and bool(one.hashed) for one in found),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Openings:
    """What the runs of all agents are opened with."""

    root: Path
    sources: Sequence[Source]
    whole: bool
    """True where all scenario files below the root are meant."""
    found: Sequence[Scenario]
    supplied: Supplied
    agents: GivenAgents

    def tries(self, agent: Agent) -> bool:
        """Return whether there is a scenario for an agent of a list."""
        return bool(self._own(agent))

    def launch(self, agent: Agent, budget: Budget | None, slots: EndpointSlots) -> Launch:
        """Return the launch of an agent; `budget` and `slots` are those that it shares with others."""
        settings = agent.settings
        choice = choose(self._own(agent), settings, self.root, agent.resume)
        request = RunRequest(
            root=self.root,
            settings=settings,
            scenarios=choice.scenarios,
            phases=choice.phases,
            supplied=replace(
                self.supplied,
                actor=open_agent(self.agents, settings, ACTOR.of(settings)),
                tracing=_tracing(settings),
            ),
            environ=os.environ,
            gates=tuple(read_gates(settings, self.root, self.found, partial=False)),
            resume=agent.resume,
            run_id=agent.run_id,
            again=agent.again,
            partial=choice.left_out,
            elsewhere=None if self.whole else self._elsewhere,
            shared=SharedLimits(budget=budget, slots=slots),
        )
        return open_launch(request)

    def _own(self, agent: Agent) -> list[Scenario]:
        by_domain = domains(DOMAIN_AGENTS.of(agent.settings))
        return [scenario for scenario in self.found if is_tried(scenario, agent.name, by_domain)]

    def _elsewhere(self, ids: Sequence[str]) -> str:
        looked_in = [self.root / source for source in self.sources if isinstance(source, str | Path)]
        missed = uncollected(self.root, looked_in, ids)
        return f"{few(missed)} of the baseline in files that are no part of `scenarios`" if missed else ""


def _tracing(settings: Settings) -> Tracing | None:
    if not OTEL.of(settings):
        return None
    from pytest_tfgrpo.telemetry.sinks.otel import open_telemetry

    return open_telemetry(settings, os.environ)


def _sources(scenarios: GivenScenarios) -> Sequence[Source]:
    """Return the scenarios as a sequence; raises ScenarioError where it is empty, or no sequence."""
    if scenarios is None:
        return (".",)
    if isinstance(scenarios, str | Path | Scenario | Mapping):
        return (scenarios,)
    if not isinstance(scenarios, Iterable):
        raise ScenarioError(f"scenarios must be files, folders, records or mappings, not {short(scenarios)}")
    if hasattr(scenarios, "to_dict"):
        raise ScenarioError("scenarios is a data frame; give its rows: scenarios.to_dict('records')")
    found = list(scenarios)
    if not found:
        raise ScenarioError(
            "scenarios: the list is empty; leave it out to take all scenario files of the folder"
        )
    for n, one in enumerate(found):
        if not isinstance(one, str | Path | Scenario | Mapping):
            raise ScenarioError(
                f"scenarios[{n}] is {short(one)}; give a file, a folder, a record, or a mapping as in a file"
            )
    return found


def _supplied(given: Given, optimizer: object) -> Supplied:
    """Return what is given as objects; raises SettingError when a check kind takes a known name."""
    rewarders, checks, rules = given
    for name in checks or ():
        if name in KINDS:
            raise SettingError(f"checks: the check kind {name!r} is built in; use another name")
    is_object = optimizer is not None and not isinstance(optimizer, str)
    return Supplied(
        optimizer=_complete("optimizer", optimizer, ("name", "identity", "propose")) if is_object else None,
        rewarders=tuple(_complete("rewarders", one, ("name", "weight", "__call__")) for one in rewarders),
        kinds={**KINDS, **(checks or {})},
        rules=tuple(_complete("gate_rules", one, ("name", "judge")) for one in rules),
    )


def _complete(name: str, value: Any, wanted: Sequence[str]) -> Any:
    require_attributes(name, value, wanted)
    return value
