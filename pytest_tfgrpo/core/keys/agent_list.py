"""Lists of agents: several specs in the setting `actor`, each with a name that items and folders have."""

from __future__ import annotations

import re
from typing import NamedTuple

KINDS = ("offline", "openai", "command", "python", "replay", "reference", "nothing")
"""Where one of these begins after a comma, an agent begins; a command may have other commas."""
NAME_LENGTH = 40
MOST = 5
"""Agents that fit beside each other in tables and pages."""
PLACE = "{agent}"
"""Stands for an agent's name in the settings that name a file."""
_BREAK = re.compile(rf"\n|,(?=\s*(?:[A-Za-z0-9][\w.-]*\s*=\s*)?(?:{'|'.join(KINDS)})(?::|\s*(?:,|\n|$)))")
_NAMED = re.compile(r"([^\s:=]+)\s*=\s*(.*)", re.DOTALL)
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH - 1}}}")


class ListedAgent(NamedTuple):
    """One agent of a list."""

    name: str
    """Its name in the list: a part of node ids, and of the names of its runs and folder."""
    spec: str


def listed_agents(text: str | None) -> tuple[ListedAgent, ...]:
    """Return the agents of the setting `actor`: none where it names a single one, without a name of its own.

    Agents are separated by lines, or by commas before a kind of actor; each is ``spec`` or ``name = spec``.
    Raises ValueError with a text that starts with ``must``.
    """
    if text is None:
        return ()
    entries = [entry.strip() for entry in _BREAK.split(text)]
    agents = [listed_agent(entry) for entry in entries if entry]
    if len(agents) == 1 and agents[0].spec == text.strip():
        _require_spec(agents[0])
        return ()
    if not agents:
        raise ValueError("must not be empty")
    if len(agents) > MOST:
        raise ValueError(f"must list at most {MOST} agents")
    for place, agent in enumerate(agents):
        for other in agents[:place]:
            _require_apart(other, agent)
    for agent in agents:
        _require_name(agent)
        _require_spec(agent)
    return tuple(agents)


def is_agent_name(text: str) -> bool:
    """Return whether an agent of a list can be called so."""
    return _NAME.fullmatch(text) is not None


def listed_agent(entry: str) -> ListedAgent:
    """Return one entry of a list, ``spec`` or ``name = spec``, as it is written."""
    named = _NAMED.fullmatch(entry)
    return ListedAgent(named[1], named[2].strip()) if named else ListedAgent(_name_of(entry), entry)


def _name_of(spec: str) -> str:
    """Return a name made from a spec: ``gpt-x`` of ``openai:gpt-x``, ``my.solve`` of ``python:my:solve``.

    It may be empty or too long; then the list has to name the agent.
    """
    kind, _, rest = spec.partition(":")
    if kind == "replay":
        rest = rest.rpartition("/")[2].partition(".")[0]
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", (rest or kind).replace(":", "."))
    return re.sub(r"-{2,}", "-", clean).strip("-._")


def _require_apart(one: ListedAgent, other: ListedAgent) -> None:
    if one.spec == other.spec:
        raise ValueError(f"must list each agent once ({other.spec!r} is there twice)")
    if one.name.casefold() == other.name.casefold():
        raise ValueError(
            f"must name each agent differently ({one.spec!r} and {other.spec!r} are both "
            f"{other.name!r}; write NAME = {other.spec})"
        )


def _require_spec(agent: ListedAgent) -> None:
    """Refuse a comma after a Python agent that begins no other: neither modules nor names have any."""
    spec, comma, rest = agent.spec.partition(",")
    if comma and spec.startswith("python:"):
        wrong = f"{rest.strip()!r} is none" if rest.strip() else "nothing does"
        raise ValueError(
            f"must have an agent such as 'python:module:name' after the comma that follows {spec!r} ({wrong})"
        )


def _require_name(agent: ListedAgent) -> None:
    if not agent.spec:
        raise ValueError(f"must say what each agent is ({agent.name!r} has no spec)")
    if not is_agent_name(agent.name):
        raise ValueError(
            "must list agents whose names match "
            f"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH - 1}}} ({agent.name!r} does not; "
            f"write NAME = {agent.spec})"
        )
