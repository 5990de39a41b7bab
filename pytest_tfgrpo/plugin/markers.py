"""Test functions as scenarios: the function is the checker, one item per rollout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.stamp import stamp
from pytest_tfgrpo.harness.suite.scenario import build_scenario

SLOT = "tfgrpo_slot"
SUFFIX = re.compile(r"-?tfgrpo-(?:early|baseline|epoch\d+(?:-eval)?|eval)-r\d+(?=\]$)")


@dataclass(frozen=True, slots=True)
class RolloutSlot:
    """Which rollout of its scenario an item judges."""

    epoch: int
    index: int


def parametrize(metafunc: pytest.Metafunc, phases: list[Phase], *, learning: bool) -> None:
    """Give a marked test function one item per rollout of the `phases` that its split takes part in."""
    split = _mark_data(metafunc.definition).get("split", "train")
    slots: dict[str, RolloutSlot] = {}
    for phase in phases:
        # In plain mode train items are made too, so that pytest counts them as deselected.
        if learning and not takes_part(split, phase):
            continue
        label = phase.label if learning or phase.is_control else "eval"
        for index in range(phase.rollouts):
            slots[f"tfgrpo-{label}-r{index}"] = RolloutSlot(phase.epoch, index)
    metafunc.fixturenames.append(SLOT)
    metafunc.parametrize(SLOT, list(slots.values()), ids=list(slots), indirect=True)


def takes_part(split: str, phase: Phase) -> bool:
    """Return whether scenarios of `split` take part in a phase."""
    return (split == "train") == (phase.mode == "train")


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
    """Return the node id without the rollout: what all items of a scenario share."""
    return SUFFIX.sub("", item.nodeid).removesuffix("[]")


def scenario_of(item: pytest.Item) -> Scenario:
    """Return the scenario of a marked test function; raises ScenarioError."""
    data = _mark_data(item)
    params = {name: value for name, value in _params(item).items() if name != SLOT}
    data = {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
    data["prompt"] = _fill(str(data.get("prompt", "")), params)
    data["id"] = scenario_id(base_id(item))
    data.setdefault("split", "train")
    path, line, _ = item.location
    source = f"{path}:{(line or 0) + 1}"
    return build_scenario(data, source=source, checker=base_id(item), folder=item.path.parent)


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
    """Return all items of an item's scenario, in order, by collecting its parent again."""
    parent = item.parent
    if not isinstance(parent, pytest.Collector):
        return [item]
    nodes = (node for node in parent.collect() if isinstance(node, pytest.Item))
    wanted = base_id(item)
    return [node for node in nodes if slot_of(node) is not None and base_id(node) == wanted] or [item]
