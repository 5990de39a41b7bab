"""Prepare a run under pytest: what hooks supply, and our errors as pytest's usage errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.settings import TABLE, Settings, unknown_variables
from pytest_tfgrpo.core.settings.agents import ACTOR, OPTIMIZER, RECORD
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.engine.request import RunRequest, SharedLimits
from pytest_tfgrpo.engine.supplied import Supplied
from pytest_tfgrpo.launch.agents import Agent, agents_of
from pytest_tfgrpo.launch.launch import open_launch
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.plugin import hook_calls
from pytest_tfgrpo.plugin.distributed import RUN_ID

if TYPE_CHECKING:
    from pytest_tfgrpo.core.scenarios import Scenario
    from pytest_tfgrpo.engine.supplied import Supplied
    from pytest_tfgrpo.gate.config import NamedGate
    from pytest_tfgrpo.launch.agents import Agent
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.llm.limits.budget import Budget
    from pytest_tfgrpo.llm.limits.slots import EndpointSlots
    from pytest_tfgrpo.plugin.items.selection import Pick
    from pytest_tfgrpo.protocols import Actor, Tracing
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind

TRACING: pytest.StashKey[dict[str | None, Tracing | None]] = pytest.StashKey()
"""Where the spans of each actor's run go."""


REPLAY = "replay:"
"""How the specification of a replay begins."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn our errors into pytest's usage errors."""
    try:
        yield
    except TfgrpoError as error:
        raise pytest.UsageError(str(error)) from error


@usage_errors()
def prepare(
    config: pytest.Config,
    pick: Pick,
    *,
    kinds: Mapping[str, CheckKind],
    gates: Iterable[NamedGate],
    elsewhere: Callable[[Sequence[str]], str],
    budget: Budget | None = None,
    slots: EndpointSlots | None = None,
) -> Launch:
    """Return the launch of what pytest selected; raises pytest.UsageError on any misuse.

    `budget` and the `slots` of endpoints are those that it shares with others.
    """
    agent, scenarios = pick.agent, pick.scenarios
    settings = agent.settings
    _require_known_environment(os.environ)
    if agent.name:
        _refuse_own_agents(scenarios)
    _refuse_replay_of_acts(ACTOR.of(settings), scenarios)
    request = RunRequest(
        root=config.rootpath,
        settings=settings,
        scenarios=scenarios,
        phases=pick.phases,
        supplied=_supplied(config, agent, kinds, scenarios),
        environ=os.environ,
        gates=tuple(gates),
        resume=agent.resume,
        run_id=agent.run_id,
        again=agent.again,
        partial=pick.partial,
        elsewhere=elsewhere,
        shared=SharedLimits(budget=budget, slots=slots),
        dry=config.getoption("tfgrpo_dry_run", False),
    )
    return open_launch(request)


def one_agent(settings: Settings) -> tuple[Agent, ...]:
    """Return the settings as those of a single actor."""
    return (Agent(settings=settings),)


@usage_errors()
def open_agents(config: pytest.Config, settings: Settings) -> tuple[Agent, ...]:
    """Return the agents of an invocation, a run each."""
    run_id = getattr(config, "workerinput", {}).get(RUN_ID)
    return agents_of(settings, config.rootpath, resume=config.getoption("tfgrpo_resume", None), run_id=run_id)


def _supplied(
    config: pytest.Config, agent: Agent, kinds: Mapping[str, CheckKind], scenarios: Sequence[Scenario]
) -> Supplied:
    """Return what hooks supply; raises pytest.UsageError when one breaks."""
    settings = agent.settings
    actor, optimizer, named = ACTOR.of(settings), OPTIMIZER.of(settings), ("name", "identity")
    return Supplied(
        actor=hook_calls.supply_one(config, "pytest_tfgrpo_actor", actor, (*named, "paid"))
        if actor
        else _own_agents(config, scenarios),
        optimizer=hook_calls.supply_one(config, "pytest_tfgrpo_optimizer", optimizer, named),
        rewarders=hook_calls.supply_rewarders(config),
        kinds=kinds,
        rules=tuple(hook_calls.gate_rules(config)),
        tracing=config.stash.get(TRACING, {}).get(actor),
    )


def _refuse_replay_of_acts(actor: str | None, scenarios: Sequence[Scenario]) -> None:
    """Refuse to replay agents that fixtures make: a recording has answers, but not what they did."""
    acting = [(s.id, s.fixtures[0]) for s in scenarios if s.fixtures and s.fixtures[0]]
    if acting and (actor or "").startswith(REPLAY):
        id_, agent = acting[0]
        raise pytest.UsageError(
            f"{actor} has the answer to {id_}, but not the side effects of its agent, the fixture {agent!r}, "
            "which the test checks; run it without a replay, or deselect it"
        )


def _refuse_own_agents(scenarios: Sequence[Scenario]) -> None:
    """Refuse a test with an agent of its own where agents are compared: it would be the same for all."""
    acting = [(s.checker, s.fixtures[0]) for s in scenarios if s.fixtures and s.fixtures[0]]
    if acting:
        test, fixture = acting[0]
        raise pytest.UsageError(
            f"{test} has an agent of its own, the fixture {fixture!r}, so it cannot compare agents "
            "of a list; deselect it, or name a single actor"
        )


def _own_agents(config: pytest.Config, scenarios: Sequence[Scenario]) -> Actor | None:
    """Return the stand-in for an actor where each scenario has an agent that a fixture makes."""
    if not scenarios or not all(s.fixtures and s.fixtures[0] for s in scenarios):
        return None
    from pytest_tfgrpo.plugin.fixtures.fixture_agents import OwnAgents

    files = {str(scenario.checker).partition("::")[0] for scenario in scenarios}
    return OwnAgents({name: stamp_bytes((config.rootpath / name).read_bytes()) for name in sorted(files)})


@usage_errors()
def open_tracing(config: pytest.Config, settings: Settings) -> None:
    """Open where the run's spans go; raises pytest.UsageError without the extra, or for a bad variable."""
    from pytest_tfgrpo.telemetry.sinks.otel import open_telemetry

    actors: list[str | None] = [agent.spec for agent in listed_agents(ACTOR.of(settings))]
    opened: dict[str | None, Tracing | None] = {
        actor: open_telemetry(settings.with_values(actor=actor), os.environ)
        for actor in actors or [ACTOR.of(settings)]
    }
    config.stash[TRACING] = opened


def _require_known_environment(environ: Mapping[str, str]) -> None:
    for name in unknown_variables(environ):
        hint = nearest(name, [setting.env for setting in TABLE])
        raise pytest.UsageError(
            f"unknown environment variable {name}={environ[name]!r}{hint or '; unset it'}"
        )


def shared_budget(settings: Settings, runs: int) -> Budget | None:
    """Return what several runs may spend together; None for a single one, which has its own."""
    if runs < 2:
        return None

    return Budget(settings.values)


def dry_run(launches: Sequence[tuple[str, Launch]]) -> list[str]:
    """Return the lines of a dry run: what each agent's launch would run, and what that may cost."""
    from pytest_tfgrpo.estimate.forecast import forecast
    from pytest_tfgrpo.estimate.plan_text import plan_text, together

    lines: list[str] = []
    parts = []
    for agent, launch in launches:
        job, folder, record = launch.prepared.job, launch.prepared.folder, RECORD.of(launch.settings)
        runs = None if folder is None else folder.parent
        known = launch.root / record if record else None
        found = forecast(job, runs, known, launch.looks)
        parts.append((agent, job, found))
        lines += ["", f"agent  {agent}"] if agent else []
        lines += plan_text(job, found)
    return [*lines, "", *together(parts)] if len(parts) > 1 else lines
