"""Goldens of DeepEval, single and conversational, as its datasets are saved: JSON, JSON lines or CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import parse_json_line
from pytest_tfgrpo.suite.imports.chats import said
from pytest_tfgrpo.suite.imports.imported import Imported, outcome
from pytest_tfgrpo.suite.imports.tables import Row, read_rows
from pytest_tfgrpo.suite.imports.values import asked, expected, name_of, shape

USED = ("input", "expected_output", "expected_tools", "context", "name", "id")
SPOKEN = ("scenario", "turns", "expected_outcome", "user_description", "persona", "context", "name", "id")
WRAPPERS = ("goldens", "conversational_goldens")
"""Keys of a whole dataset, which hold its goldens."""
OPENING = "Hello."
"""What the user says first where DeepEval would let a model write it."""
_MEDIA = re.compile(r"\[DEEPEVAL:[A-Z]+:")
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
            named = (name_of(found, golden, where, key) for key in ("name", "id"))
            found.add(next(filter(None, named), f"{path.stem}-{n}"), fields, where)
        else:
            found.leave_out("goldens without expected output, outcome or tools", where)


def _goldens(found: Imported, path: Path) -> Iterator[Row]:
    """Yield the goldens of a file, or of the dataset that it is; raises ScenarioError for anything else."""
    for where, cells in read_rows(path, (*USED, *SPOKEN)):
        row = _snaked(found, cells, where)
        wrapped = [key for key in WRAPPERS if isinstance(row.get(key), list)]
        if wrapped and "input" not in row:
            found.leave_out_keys(row, wrapped, " of the dataset", where)
            inside = [(f"{where}, {key}[{i}]", one) for key in wrapped for i, one in enumerate(row[key])]
            rows = [(at, _snaked(found, one, at) if isinstance(one, dict) else {}) for at, one in inside]
        else:
            rows = [(where, row)]
        for at, golden in rows:
            if not {*USED, *SPOKEN} & golden.keys() - {"name", "id", "context"}:
                raise ScenarioError(
                    f"{at}: not a golden of DeepEval: there are {few(list(golden), 10) or 'no keys'}; a "
                    "golden has 'input', or 'scenario' and 'turns'"
                )
            yield at, golden


def _snaked(found: Imported, cells: Mapping[str, Json], where: str) -> dict[str, Json]:
    """Return cells by their names in Python: ``expectedOutput`` is one of an export."""
    snaked: dict[str, Json] = {}
    for key, value in cells.items():
        name = _UPPER.sub(lambda match: f"_{match[0].lower()}", key)
        if snaked.get(name) not in (None, "", []):
            if value not in (None, "", [], snaked[name]):
                found.leave_out(f"`{key}` beside `{name}`, which says something else", where)
            continue
        snaked[name] = value
    return snaked


def _golden(found: Imported, golden: Mapping[str, Json], expect: str, where: str) -> dict[str, Json]:
    if any(_MEDIA.search(str(golden.get(key))) for key in ("input", "expected_output")):
        raise ValueError("inputs and outputs with pictures or other media")
    fields = asked(found, golden["input"], where, "inputs") | _context(golden)
    if "expected_output" in golden:
        try:
            fields |= expected(found, golden["expected_output"], expect, where)
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
        turns = _parsed(turns, "turns that are no JSON")
    said_first: dict[str, Json] = {}
    if isinstance(turns, list) and turns:
        said_first = said(found, turns, where)
    elif turns not in (None, []):
        raise ValueError(f"turns that are {shape(turns)}")
    elif "scenario" in golden:
        found.leave_out(f'a first message that a model writes: the user says "{OPENING}"', where)
        said_first = {"prompt": OPENING}
    else:
        raise ValueError("goldens without input, scenario and turns")
    fields: dict[str, Json] = {"turns": said_first.get("turns") or [said_first["prompt"]], **_context(golden)}
    if "scenario" in golden:
        fields["user"] = _user(found, golden, where)
    return fields | (outcome(_only_text(golden, "expected_outcome")) if "expected_outcome" in golden else {})


def _user(found: Imported, golden: Mapping[str, Json], where: str) -> dict[str, Json]:
    """Return whom a model may play; raises ValueError where a part of that is no text."""
    persona = golden.get("persona")
    if isinstance(persona, dict):
        found.leave_out_keys(persona, ("characteristics",), " of a persona", where)
        if persona.get("characteristics"):
            golden = {**golden, "persona": persona["characteristics"]}
        else:
            golden = {key: value for key, value in golden.items() if key != "persona"}
    who = next((key for key in ("persona", "user_description") if key in golden), None)
    user: dict[str, Json] = {"goal": _only_text(golden, "scenario")}
    if who is not None:
        user["persona"] = _only_text(golden, who)
    if "expected_outcome" in golden:
        user["stop"] = f"This is reached, or cannot be: {_only_text(golden, 'expected_outcome')}"
    return user


def _only_text(golden: Mapping[str, Json], key: str) -> str:
    if not isinstance(golden[key], str):
        raise ValueError(f"`{key}` that is {shape(golden[key])}")
    return str(golden[key])


def _parsed(text: str, otherwise: str) -> Json:
    try:
        return parse_json_line(text, 1, as_written=True)
    except Refused:
        raise ValueError(otherwise) from None


def _context(golden: Mapping[str, Json]) -> dict[str, Json]:
    context = golden.get("context")
    if isinstance(context, str):  # of a table; older versions wrote semicolons
        context = context.split("|" if "|" in context else ";")
    return {"input": {"context": context}} if context else {}


def _calls(found: Imported, tools: Json, where: str) -> list[dict[str, Json]]:
    """Return the calls that a golden expects: a list, or in CSV a list as JSON or names."""
    if isinstance(tools, str):
        try:
            tools = _parsed(tools, "")
        except ValueError:
            if tools.lstrip().startswith(("[", "{")):
                found.leave_out("expected tools that are no JSON", where)
                return []
            tools = [name.strip() for name in tools.split(";") if name.strip()]
    if not isinstance(tools, list | None):
        found.leave_out(f"expected tools that are {shape(tools)}", where)
        return []
    calls = []
    for one in tools or ():
        tool = _snaked(found, one, where) if isinstance(one, dict) else {"name": one}
        name, arguments = tool.get("name"), tool.get("input_parameters")
        if not isinstance(name, str) or not name:
            found.leave_out(f"expected tools whose name is {shape(name)}", where)
            continue
        if not isinstance(arguments, dict | None):
            found.leave_out(f"arguments of an expected tool that are {shape(arguments)}", where)
        calls.append({"name": name, **({"arguments": arguments} if isinstance(arguments, dict) else {})})
        found.leave_out_keys(tool, ("name", "type", "input_parameters"), " of an expected tool", where)
    return calls
