"""Exported rows give what a trainer computes, and show the types of their columns first."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout, make_scenario
from support.exports import write_run_of_rare_calls

from pytest_tfgrpo.export import attempts
from pytest_tfgrpo.export.attempts import ALL_EQUAL, ALONE, read_group
from pytest_tfgrpo.export.export import Export, export


def load(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.parametrize(("shape", "column"), [("rollouts", "messages"), ("preference", "rejected")])
def test_rows_that_show_the_types_of_all_columns_come_first(tmp_path: Path, shape: Any, column: str) -> None:
    write_run_of_rare_calls(tmp_path)
    file = tmp_path / "rows.jsonl"
    assert [*export(tmp_path, file, Export(format=shape))]
    rows = load(file)
    with_tools = [any(m["tool_calls"] for m in row[column][-3:]) for row in rows]
    assert 0 < sum(with_tools) < len(rows)
    assert with_tools[0]
    if shape == "rollouts":
        assert [row["sampled"] is not None for row in rows] == with_tools
        spoken = [row["sampled"] and row["sampled"][1] for row in rows[:5]]
        assert [one and one["logprobs"] for one in spoken] == [None, None, [-0.5], [-0.5], None]
        assert [one and one["token_ids"] for one in spoken[:3]] == [[7], [7], None]
    shown = [row["scenario_id"] for row in rows].index("plain")
    assert shown == (4 if shape == "rollouts" else 1)


@pytest.mark.parametrize(
    ("rewards", "reason", "mean"),
    [
        ([1.0, 0.0], "", 0.5),
        ([0.5, 0.5], ALL_EQUAL, 0.5),
        ([0.5, None], ALONE, 0.5),
        ([None, None], "", None),
        ([], "", None),
    ],
)
def test_a_group_says_why_all_its_advantages_are_0(
    monkeypatch: pytest.MonkeyPatch, rewards: list[float | None], reason: str, mean: float | None
) -> None:
    monkeypatch.setattr(attempts, "prompt_of", lambda *_: "left out")
    rollouts = tuple(make_rollout(n, credit) for n, credit in enumerate(rewards))
    group = replace(make_group([1.0]), rollouts=(), scores=())
    if rewards:
        group = make_group(rewards, rollouts=rollouts)
    index: Any = SimpleNamespace(load=lambda _: group, scenarios={"count-words": make_scenario()})
    left_out = Counter[str]()
    found = read_group(index, "g", "grpo", left_out)
    assert (found.reason, None if math.isnan(found.mean) else found.mean) == (reason, mean)
    assert left_out.total() == len(rewards)
