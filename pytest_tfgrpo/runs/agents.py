"""Which agents of a list try a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.texts.text import few


def is_tried(scenario: Scenario, agent: str, by_domain: Mapping[str, Sequence[str]]) -> bool:
    """Return whether an agent of a list tries a scenario; a single actor, without a name, tries all.

    What the scenario says itself counts before what is said of its domain.
    """
    if not agent:
        return True
    named = scenario.agents or by_domain.get(scenario.domain, ())
    return not named or agent in named


def unused_domains(named: Iterable[str], scenarios: Iterable[Scenario]) -> list[str]:
    """Return a warning for each domain of the setting ``domain_agents`` that none of `scenarios` has."""
    known = sorted({scenario.domain for scenario in scenarios})
    return [
        f"domain_agents: no scenario has the domain {short(domain)}"
        f"{nearest(domain, known) or f'; there are {few(known, 20)}'}"
        for domain in named
        if domain not in known
    ]


def require_listed(scenarios: Iterable[Scenario], agents: Sequence[str]) -> None:
    """Raise ScenarioError where scenarios name agents that the list lacks."""
    known = f"; the list has {', '.join(agents)}"
    lines = [
        f"{scenario.source}: #/agents: unknown agent {name!r}{nearest(name, agents) or known}"
        for scenario in scenarios
        for name in scenario.agents
        if any(agents) and name not in agents
    ]
    if lines:
        raise ScenarioError("\n".join(lines))
