"""Test functions as scenarios: the function is the checker, one item per rollout."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario, stamped
from pytest_tfgrpo.core.wire.stamp import stamp, stamp_bytes
from pytest_tfgrpo.suite.scenario import DEFAULT_DOMAIN, build_scenario

SLOT = "_tfgrpo_slot"
AGENT = "tfgrpo_agent"
"""The fixture that is the agent, unless the mark names another."""
ROLLOUT = ("rollout", "rollout_workspace")
"""Fixtures that need the agent's answer."""
SUFFIX = re.compile(r"-?tfgrpo-(?:early|baseline|placebo|epoch\d+(?:-eval)?|eval)-r\d+(?=\]$)")


@dataclass(frozen=True, slots=True)
class RolloutSlot:
    """Which rollout of its scenario an item judges."""

    epoch: int
    index: int
    agent: str = ""
    """Whose rollout it is, where several agents run side by side."""


class Outline(Protocol):
    """What is known of a run before its scenarios are."""

    phases: list[Phase]
    marked: dict[str, str]
    """What the id of the first item of a marked test function ends in, by node id of the function."""
    domain_agents: Mapping[str, Sequence[str]]
    """Names of those that try a domain, by domain; all try any other."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents that run side by side; one empty name for a single actor."""
        ...


def parametrize(metafunc: pytest.Metafunc, outline: Outline, *, learning: bool) -> None:
    """Give a marked test function one item per agent and rollout of the phases that its split is in."""
    data = _mark_data(metafunc.definition)
    split, own = data.get("split", "train"), _own_agents(metafunc.definition, data, outline)
    slots: dict[str, RolloutSlot] = {}
    for phase in outline.phases:
        # In plain mode train items are made too, so that pytest counts them as deselected.
        if learning and not takes_part(split, phase):
            continue
        label = phase.label if learning or phase.mode != "eval" else "eval"
        for agent, index in product(own, range(phase.rollouts)):
            start = f"tfgrpo-{agent}-" if agent else "tfgrpo-"
            slots[f"{start}{label}-r{index}"] = RolloutSlot(phase.epoch, index, agent)
    metafunc.fixturenames.append(SLOT)
    world = world_of(metafunc.definition, metafunc.fixturenames)
    if world is not None:  # the rollout is made once all others are set up
        before = [name for name in (*metafunc.fixturenames, *world) if name and name not in ROLLOUT]
        after = [name for name in ROLLOUT[1:] if name in metafunc.fixturenames]
        metafunc.fixturenames[:] = [*dict.fromkeys(before), ROLLOUT[0], *after]
    if slots:
        outline.marked[metafunc.definition.nodeid] = next(iter(slots))
    metafunc.parametrize(SLOT, list(slots.values()), ids=list(slots), indirect=True)


def hints_at(marked: Mapping[str, str], named: Iterable[str], missing: str) -> list[str]:
    """Return what items are called of `marked` functions that are `named` by their parameters alone.

    `missing` says which of the names were not found.
    """
    hints = []
    for node, end in marked.items():
        path, _, name = node.partition("::")
        here = f"{Path(path).name}::{name}"
        for one in named if here in missing else ():
            asked, _, values = one.partition("[")
            if values and asked.endswith(here):
                hints.append(
                    f"{node} is a scenario with an item for each rollout: "
                    f"{node}[{values.removesuffix(']')}-{end}] is the first; {node} takes all"
                )
    return hints


def _own_agents(node: pytest.Item, data: Mapping[str, Any], outline: Outline) -> Sequence[str]:
    """Return those of a list of agents that a mark names, else those of its domain, else all."""
    agents = outline.agents
    of_domain = outline.domain_agents.get(str(data.get("domain", DEFAULT_DOMAIN)), ())
    named = data.get("agents", ()) or tuple(of_domain)
    if not named or not any(agents):
        return agents
    if not isinstance(named, list | tuple) or not all(name in agents for name in named):
        raise pytest.UsageError(
            f"{node.nodeid}: agents must be a list of names of {', '.join(agents)}, not {named!r}"
        )
    return [agent for agent in agents if agent in named]


def world_of(node: pytest.Item, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the fixtures that are set up before the agent runs, the agent's own first; None for none.

    They are those that the mark names as `fixtures` and `agent`, and ``tfgrpo_agent`` if it is `known`.
    """
    data = _mark_data(node)
    named, agent = data.get("fixtures", ()), data.get("agent")
    if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
        raise pytest.UsageError(f"{node.nodeid}: fixtures must be a list of names, not {named!r}")
    if agent is not None and not isinstance(agent, str):
        raise pytest.UsageError(f"{node.nodeid}: agent must be the name of a fixture, not {agent!r}")
    own = agent or (AGENT if AGENT in (*known, *named) else "")
    if not own and not named:
        return None
    return (own, *(name for name in named if name != own))


def takes_part(split: str, phase: Phase) -> bool:
    """Return whether scenarios of `split` take part in a phase."""
    return phase.asks and (split == "train") == phase.trains


def _mark_data(node: pytest.Item) -> dict[str, Any]:
    """Return the keywords of the marks on a node; the nearest mark wins."""
    data: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers("tfgrpo"))):
        if mark.args:
            raise pytest.UsageError(
                f"{node.nodeid}: the mark `tfgrpo` takes keywords only, not {mark.args!r}"
            )
        data.update(mark.kwargs)
    if data.get("split") == "dev":
        raise pytest.UsageError(
            f"{node.nodeid}: a test function cannot check split='dev': its rollouts run between epochs, "
            "when no test runs; write split='train' or 'eval', or a scenario file"
        )
    return data


def split_of(item: pytest.Item) -> str:
    """Return the split of a marked test function."""
    return str(_mark_data(item).get("split", "train"))


def slot_of(item: pytest.Item) -> RolloutSlot | None:
    """Return the slot of an item of a marked test function, None for any other item."""
    slot = _params(item).get(SLOT)
    return slot if isinstance(slot, RolloutSlot) else None


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None else {}


def base_id(item: pytest.Item) -> str:
    """Return the node id without agent and rollout: what all items of a scenario share."""
    node_id, slot = item.nodeid, slot_of(item)
    if slot is not None and slot.agent:  # a name may look like anything, so it is cut where it stands
        before, _, after = node_id.rpartition(f"tfgrpo-{slot.agent}-")
        node_id = f"{before}tfgrpo-{after}"
    return SUFFIX.sub("", node_id).removesuffix("[]")


def scenario_of(item: pytest.Item) -> Scenario:
    """Return the scenario of a marked test function; raises ScenarioError."""
    data = _mark_data(item)
    params = {name: value for name, value in _params(item).items() if name != SLOT}
    data = {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
    world = world_of(item, getattr(item, "fixturenames", ()))
    data = {key: value for key, value in data.items() if key not in ("fixtures", "agent")}
    if "prompt" in data or "turns" not in data:
        data["prompt"] = _fill(str(data.get("prompt", "")), params)
    if isinstance(data.get("turns"), list):
        data["turns"] = [_fill(turn, params) if isinstance(turn, str) else turn for turn in data["turns"]]
    data["id"] = scenario_id(base_id(item))
    data.setdefault("split", "train")
    path, line, _ = item.location
    source = f"{path}:{(line or 0) + 1}"
    made = build_scenario(data, source=source, checker=base_id(item), folder=item.path.parent)
    made = stamped(replace(made, checker_sha256=_source_sha256(getattr(item, "function", None))))
    return made if world is None else replace(made, fixtures=world)


@lru_cache(maxsize=1)  # the items of a function come together
def _source_sha256(function: Callable[..., Any] | None) -> str:
    """Return the digest of a function's source from its ``def`` on: decorators have limits and tags."""
    try:
        source = textwrap.dedent(inspect.getsource(function))  # type: ignore[arg-type]
        defined = ast.parse(source).body[0].lineno
    except (OSError, TypeError, SyntaxError):  # made by a program
        return ""
    return stamp_bytes("".join(source.splitlines(keepends=True)[defined - 1 :]).encode())


def _fill(prompt: str, params: dict[str, Any]) -> str:
    """Put the values of parameters where the prompt names them: ``{city}``."""
    for name, value in params.items():
        prompt = prompt.replace("{" + name + "}", str(value))
    return prompt


def scenario_id(node_id: str) -> str:
    """Return a scenario id for a node id: readable, and made unique by a hash."""
    path, _, name = node_id.partition("::")
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{Path(path).stem}.{name}").strip("-")
    return f"{clean[:80]}.{stamp(node_id)[:6]}"


def siblings(item: pytest.Item) -> list[pytest.Item]:
    """Return all items of an item's scenario and agent, in order, by collecting its parent again."""
    parent = item.parent
    if not isinstance(parent, pytest.Collector):
        return [item]
    nodes = (node for node in parent.collect() if isinstance(node, pytest.Item))
    wanted, own = base_id(item), slot_of(item)
    slots = [(node, slot) for node in nodes if (slot := slot_of(node)) is not None]
    agent = own.agent if own is not None else ""
    return [node for node, slot in slots if slot.agent == agent and base_id(node) == wanted] or [item]
