"""The wire: every record goes to JSON and comes back equal; anything else is refused by path."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_group, make_pack, make_rollout, make_scenario

from pytest_tfgrpo.core import scenarios
from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Frame, Group, Rollout
from pytest_tfgrpo.core.scenarios import Attachment, Scenario
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire

CHECK = {"kind": "exact", "weight": 1.0, "credit": 1.0}
texts = st.text(max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=4), json_values)
def test_nested_records_survive_the_trip_through_json(credited, value):
    rollouts = tuple(
        make_rollout(i, c, frames=(Frame(kind="tool", name="t", input=value),))
        for i, c in enumerate(credited)
    )
    group = make_group(credited, rollouts=rollouts)
    assert from_wire(Group, json.loads(json.dumps(to_wire(group)))) == group


@pytest.mark.parametrize(
    "record",
    [
        make_scenario(attachments=(Attachment(name="a.csv", path=Path("x/a.csv"), sha256="0" * 64),)),
        make_scenario(tools=(), input={"a": [1, None]}, min_score=0.5),
        make_rollout(0, None),
        make_pack(inject=("more",)),
        make_experience(3),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_whole_record_survives_the_trip_through_json(record):
    assert from_wire(type(record), json.loads(json.dumps(to_wire(record)))) == record


def test_a_record_on_the_wire_has_its_fields_in_order():
    assert list(to_wire(make_experience())) == list(Experience.__slots__)


def test_a_left_out_field_takes_its_default():
    wire = {"id": "a", "domain": "d", "split": "eval", "prompt": "p"}
    assert from_wire(Scenario, wire) == Scenario(id="a", domain="d", split="eval", prompt="p")


def changed(record, **changes):
    return {**to_wire(record), **changes}


@pytest.mark.parametrize(
    ("cls", "wire", "message"),
    [
        (Scenario, [], "Scenario: expected dict, got []"),
        (Scenario, {}, "Scenario: missing key 'domain'"),
        (Scenario, changed(make_scenario(), zeal=1), "Scenario: unknown key 'zeal'"),
        (Scenario, changed(make_scenario(), split="test"), "Scenario/split: expected one of 'train', 'dev', 'eval', got 'test'"),  # noqa: E501
        (Scenario, changed(make_scenario(), tags="abc"), "Scenario/tags: expected list, got 'abc'"),
        (Scenario, changed(make_scenario(), tags=["a", 1]), "Scenario/tags/1: expected str, got 1"),
        (Scenario, changed(make_scenario(), timeout_s=True), "Scenario/timeout_s: expected a number, got True"),  # noqa: E501
        (Scenario, changed(make_scenario(), prompt=None), "Scenario/prompt: expected str, got None"),
        (Rollout, changed(make_rollout(), seed=1.0), "Rollout/seed: expected int, got 1.0"),
        (Rollout, changed(make_rollout(), seed=True), "Rollout/seed: expected int, got True"),
        (Rollout, changed(make_rollout(), failure={"code": "x"}), "Rollout/failure: missing key 'message'"),
        (scenarios.PromptPack, changed(make_pack(), weights=[1]), "PromptPack/weights: expected 2 items, got 1"),  # noqa: E501
        (scenarios.Check, {"kind": "exact", "params": []}, "Check/params: expected dict, got []"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_path(cls, wire, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_wire(cls, wire)


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), 1j])
def test_what_json_cannot_hold_does_not_go_on_the_wire(value):
    with pytest.raises(TypeError, match="cannot put"):
        to_wire({"a": [value]})


@dataclass(frozen=True)
class Tree:
    name: str
    kind: Literal["leaf", "branch"] = "leaf"
    parts: tuple[Tree, ...] = field(default=())


def test_a_record_may_hold_records_of_its_own_type():
    tree = Tree("a", "branch", (Tree("b"), Tree("c", "branch", (Tree("d"),))))
    assert from_wire(Tree, to_wire(tree)) == tree


class Growth(StrEnum):
    GREEN = "green"
    CUT = "cut"


@dataclass(frozen=True)
class Shrub:
    id: str
    state: Growth


def test_a_choice_travels_as_its_text_and_no_other_text_is_one():
    row = Shrub(id="x", state=Growth.CUT)
    assert to_wire(row)["state"] == "cut"
    assert from_wire(Shrub, to_wire(row)) == row
    with pytest.raises(ValueError, match=r"Shrub/state: expected one of 'green', .* got 'maybe'"):
        from_wire(Shrub, {"id": "x", "state": "maybe"})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"index": True}, "Rollout/index: expected int, got True"),
        ({"seed": "7"}, "Rollout/seed: expected int, got '7'"),
        ({"checks": [{"kind": "exact", "weight": 1.0}]}, "Rollout/checks/0: missing key 'credit'"),
        ({"trajectory_id": "x"}, "Rollout: unknown key 'trajectory_id'"),
        ({"cost_usd": -0.1}, "Rollout/cost_usd: expected numbers from 0 to all that is finite, got -0.1"),
        (
            {"latency_ms": float("nan")},
            "Rollout/latency_ms: expected numbers from 0 to all that is finite, got",
        ),
        ({"checks": [CHECK | {"credit": 7}]}, "Rollout/checks/0/credit: expected numbers from 0 to 1, got 7"),
        ({"checks": [CHECK | {"weight": -1.0}]}, "Rollout/checks/0/weight: expected numbers from 0"),
        (
            {"opinion": {"score": 0.5, "votes": [0.5, 2]}},
            "Rollout/opinion/votes: expected numbers from 0 to 1",
        ),
        ({"temperature": 10**400}, "Rollout/temperature: a number of 401 digits is too large"),
    ],
)
def test_what_is_not_as_written_is_refused_by_path_however_quickly_the_rest_is_read(
    change: dict[str, Any], told: str
) -> None:
    value = to_wire(make_rollout()) | change
    with pytest.raises(ValueError, match=re.escape(told)):
        from_wire(Rollout, value)
