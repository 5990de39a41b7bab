"""Exported rows give what a trainer computes, and show the types of their columns first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.exports import write_run_of_rare_calls

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
