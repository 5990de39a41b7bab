"""Goldens and test cases of DeepEval, as its datasets are saved: JSON, JSON lines or CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.imports.imported import Imported, expectation
from pytest_tfgrpo.harness.suite.imports.tables import read_rows

SPOKEN = ("turns", "scenario", "expected_outcome", "user_description")
"""What only a conversation has."""
UNUSED = (
    "actual_output",
    "retrieval_context",
    "additional_metadata",
    "comments",
    "source_file",
    "custom_column_key_values",
)
MANY = ";"
"""Parts the values of a list in a CSV cell."""


def read_goldens(found: Imported, path: Path, *, expect: str) -> None:
    """Add a scenario for each golden; raises ScenarioError."""
    for n, (where, cells) in enumerate(read_rows(path), 1):
        golden = {key: value for key, value in cells.items() if value not in (None, "", [])}
        if "input" not in golden:
            spoken = any(key in golden for key in SPOKEN)
            found.leave_out("conversations" if spoken else "goldens without input", where)
            continue
        for key in UNUSED:
            if key in golden:
                found.leave_out(f"`{key}`", where)
        fields = _golden(found, golden, expect, where)
        if "checks" in fields or "rubric" in fields:
            found.add(str(golden.get("name") or f"{path.stem}-{n}"), fields)
        else:
            found.leave_out("goldens without expected output or tools", where)


def _golden(found: Imported, golden: Mapping[str, Json], expect: str, where: str) -> dict[str, Json]:
    fields: dict[str, Json] = {"prompt": str(golden["input"])}
    if context := golden.get("context"):
        fields["input"] = {"context": context.split(MANY) if isinstance(context, str) else context}
    if "expected_output" in golden:
        try:
            fields |= expectation(golden["expected_output"], expect)
        except ValueError as error:
            found.leave_out(str(error), where)
    if calls := _calls(golden.get("expected_tools")):
        check = {"kind": "tool_calls", "order": "any_order", "calls": calls}
        fields["checks"] = [*fields.get("checks", ()), check]
        fields.pop("truth", None)  # checks decide; the rubric is for a judge beside them
    return fields


def _calls(tools: Json) -> list[dict[str, Json]]:
    """Return the calls that a golden expects: a list, or in CSV a list as JSON or names."""
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except ValueError:
            tools = [name.strip() for name in tools.split(MANY) if name.strip()]
    calls = []
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else tool
        if isinstance(name, str) and name:
            arguments = tool.get("input_parameters") if isinstance(tool, dict) else None
            calls.append({"name": name, **({"arguments": arguments} if isinstance(arguments, dict) else {})})
    return calls
