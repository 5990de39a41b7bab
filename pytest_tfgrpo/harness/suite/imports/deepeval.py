"""Goldens of DeepEval, single and conversational, as its datasets are saved: JSON, JSON lines or CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.text import few
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.imports.chats import said
from pytest_tfgrpo.harness.suite.imports.imported import Imported, expectation, outcome
from pytest_tfgrpo.harness.suite.imports.tables import Row, read_rows

USED = ("input", "expected_output", "expected_tools", "context", "name", "id")
SPOKEN = ("scenario", "turns", "expected_outcome", "user_description", "persona", "context", "name", "id")
WRAPPERS = ("goldens", "conversational_goldens")
"""Keys of a whole dataset, which hold its goldens."""
OPENING = "Hello."
"""What the user says first where DeepEval would let a model write it."""
_UPPER = re.compile(r"(?<=[a-z])[A-Z]")


def read_goldens(found: Imported, path: Path, *, expect: str) -> None:
    """Add a scenario for each golden; raises ScenarioError."""
    for n, (where, cells) in enumerate(_goldens(found, path), 1):
        golden = {key: value for key, value in cells.items() if value not in (None, "", [])}
        spoken = "input" not in golden
        found.leave_out_keys(golden, SPOKEN if spoken else USED, "", where)
        try:
            fields = _talk(found, golden, where) if spoken else _golden(found, golden, expect, where)
        except ValueError as error:
            found.leave_out(str(error), where)
            continue
        if "checks" in fields or "rubric" in fields:
            found.add(str(golden.get("name") or golden.get("id") or f"{path.stem}-{n}"), fields)
        else:
            found.leave_out("goldens without expected output, outcome or tools", where)


def _goldens(found: Imported, path: Path) -> Iterator[Row]:
    """Yield the goldens of a file, or of the dataset that it is; raises ScenarioError for anything else."""
    for where, cells in read_rows(path):
        row = _snaked(cells)
        wrapped = [key for key in WRAPPERS if isinstance(row.get(key), list)]
        if wrapped and "input" not in row:
            found.leave_out_keys(row, wrapped, " of the dataset", where)
            inside = [(f"{where}, {key}[{i}]", one) for key in wrapped for i, one in enumerate(row[key])]
            rows = [(at, _snaked(one) if isinstance(one, dict) else {}) for at, one in inside]
        else:
            rows = [(where, row)]
        for at, golden in rows:
            if not {*USED, *SPOKEN} & golden.keys() - {"name", "id", "context"}:
                raise ScenarioError(
                    f"{at}: no golden of DeepEval: there are {few(list(golden), 10) or 'no keys'}; a golden "
                    "has 'input', or 'scenario' and 'turns'"
                )
            yield at, golden


def _snaked(cells: Mapping[str, Json]) -> dict[str, Json]:
    """Return cells by their names in Python: ``expectedOutput`` is one of an export."""
    return {_UPPER.sub(lambda match: f"_{match[0].lower()}", key): value for key, value in cells.items()}


def _golden(found: Imported, golden: Mapping[str, Json], expect: str, where: str) -> dict[str, Json]:
    fields: dict[str, Json] = {"prompt": str(golden["input"]), **_context(golden)}
    if "expected_output" in golden:
        try:
            fields |= expectation(golden["expected_output"], expect)
        except ValueError as error:
            found.leave_out(str(error), where)
    if calls := _calls(found, golden.get("expected_tools"), where):
        check = {"kind": "tool_calls", "order": "any_order", "calls": calls}
        fields["checks"] = [*fields.get("checks", ()), check]
        fields.pop("truth", None)  # checks decide; the rubric is for a judge beside them
    return fields


def _talk(found: Imported, golden: Mapping[str, Json], where: str) -> dict[str, Json]:
    """Return a conversation: its turns as a script, and its scenario as the goal of whom a model may play."""
    turns = golden.get("turns")
    if isinstance(turns, str):
        try:
            turns = json.loads(turns)
        except ValueError:
            raise ValueError("turns that are no JSON") from None
    asked: dict[str, Json] = {}
    if isinstance(turns, list) and turns:
        asked = said(found, turns, where)
    elif "scenario" in golden:
        found.leave_out(f'a first message that a model writes: the user says "{OPENING}"', where)
        asked = {"prompt": OPENING}
    else:
        raise ValueError("goldens without input, scenario and turns")
    fields: dict[str, Json] = {"turns": asked.get("turns") or [asked["prompt"]], **_context(golden)}
    expected = golden.get("expected_outcome")
    if "scenario" in golden:
        persona = golden.get("persona")
        who = persona.get("characteristics") if isinstance(persona, dict) else golden.get("user_description")
        fields["user"] = {"goal": str(golden["scenario"]), **({"persona": str(who)} if who else {})}
        if isinstance(persona, dict):
            found.leave_out_keys(persona, ("characteristics",), " of a persona", where)
        if expected:
            fields["user"]["stop"] = f"This is reached, or cannot be: {expected}"
    return fields | (outcome(expected) if expected else {})


def _context(golden: Mapping[str, Json]) -> dict[str, Json]:
    context = golden.get("context")
    if isinstance(context, str):  # of a table; older versions wrote semicolons
        context = context.split("|" if "|" in context else ";")
    return {"input": {"context": context}} if context else {}


def _calls(found: Imported, tools: Json, where: str) -> list[dict[str, Json]]:
    """Return the calls that a golden expects: a list, or in CSV a list as JSON or names."""
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except ValueError:
            tools = [name.strip() for name in tools.split(";") if name.strip()]
    calls = []
    for one in tools if isinstance(tools, list) else ():
        tool = _snaked(one) if isinstance(one, dict) else {"name": one}
        if isinstance(name := tool.get("name"), str) and name:
            arguments = tool.get("input_parameters")
            calls.append({"name": name, **({"arguments": arguments} if isinstance(arguments, dict) else {})})
            found.leave_out_keys(tool, ("name", "type", "input_parameters"), " of an expected tool", where)
    return calls
