"""Configurations of promptfoo: prompts, tests with variables, assertions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice, product
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.sandbox.paths import confined
from pytest_tfgrpo.harness.suite.document import Refused, read_text
from pytest_tfgrpo.harness.suite.imports.chats import said
from pytest_tfgrpo.harness.suite.imports.imported import Imported
from pytest_tfgrpo.harness.suite.imports.promptfoo_assertions import carried
from pytest_tfgrpo.harness.suite.imports.tables import FILE_MAX_BYTES
from pytest_tfgrpo.harness.suite.json_text import parse_json_line
from pytest_tfgrpo.harness.suite.yaml_text import parse_yaml

FILE = "file://"
DATA = (".txt", ".md", ".json", ".jsonl", ".yaml", ".yml")
"""Files whose text is a value; others are programs, which an import does not run."""
MOST = 1_000
"""Combinations of the values of one test's variables."""
USED = ("prompts", "tests", "defaultTest", "description", "providers", "targets")
OF_TEST = ("vars", "assert", "threshold", "description")
OF_PROMPT = ("raw", "id", "label")
_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][A-Za-z0-9_.]*)\s*-?\}\}")
_EXPECTED = re.compile(r"__expected\d*")


def read_config(found: Imported, path: Path) -> None:
    """Add a scenario for each test, put with the first prompt; raises ScenarioError."""
    try:
        config = parse_yaml(read_text(path, FILE_MAX_BYTES)).value  # JSON is YAML, too
    except Refused as error:
        raise ScenarioError(f"{path}:{error.problem.line}: {error}") from None
    if not isinstance(config, dict) or not {"tests", "scenarios"} & config.keys():
        raise ScenarioError(f"{path} is no configuration of promptfoo: it has no tests")
    found.leave_out_keys(config, USED, " of the configuration", path.name)
    prompts = [one for one in _prompts(found, config.get("prompts"), path.parent) if one]
    if config.get("prompts") and not prompts:
        told = "\n".join(["", *found.report()])
        raise ScenarioError(f"{path}: none of its prompts is a text, or a file of text beside it{told}")
    if len(prompts) > 1:
        found.leave_out("further prompts: a scenario has one", f"prompts[1] of {len(prompts)}")
    usual = _written_out(found, config.get("defaultTest"), path.parent, "defaultTest")
    found.leave_out_keys(usual, OF_TEST, " of a test", "defaultTest")
    for where, test in _tests(found, config.get("tests"), path.parent):
        _add(found, path, where, test, usual, (prompts or ["{{prompt}}"])[0])


def _prompts(found: Imported, value: Json, folder: Path) -> Iterator[str]:
    """Yield prompts: texts, files, objects, or an object of files and labels as older versions have."""
    if isinstance(value, dict) and not {"raw", "id"} & value.keys():
        value = list(value)
    for i, one in enumerate(_listed(value)):
        text = one.get("raw", one.get("id")) if isinstance(one, dict) else one
        if not isinstance(text, str):
            if one is not None:
                found.leave_out("prompts that are no text", f"prompts[{i}]")
            continue
        if isinstance(one, dict):
            found.leave_out_keys(one, OF_PROMPT, " of a prompt", f"prompts[{i}]")
        if text.startswith(FILE) or text.endswith(DATA):
            text = _read(found, folder, text.removeprefix(FILE), f"prompts[{i}]")
            yield from text.split("\n---\n") if text else ()
        else:
            yield text


def _read(found: Imported, folder: Path, name: str, where: str) -> str | None:
    """Return the text of a file beside the configuration; None where it is a program or cannot be read."""
    if "://" in name:
        found.leave_out("addresses that promptfoo would fetch", f"{where}: {name}")
        return None
    if not name.endswith(DATA):
        found.leave_out("files that promptfoo would run", f"{where}: {name}")
        return None
    try:
        return read_text(confined(folder, name.removeprefix("./"), FILE_MAX_BYTES), FILE_MAX_BYTES)
    except (Refused, ValueError) as error:
        found.leave_out("files that cannot be read", f"{where}: {error}")
        return None


def _data(found: Imported, folder: Path, name: str, where: str) -> Json:
    """Return what a YAML, JSON or JSON lines file beside the configuration holds; None for nothing."""
    name = name.removeprefix(FILE)
    text = _read(found, folder, name, where)
    try:
        if text and name.endswith(".jsonl"):
            lines = enumerate(text.split("\n"), 1)
            return [parse_json_line(line, n) for n, line in lines if line.strip()]
        return parse_yaml(text).value if text else None
    except Refused as error:
        found.leave_out("files that cannot be read", f"{where}: {error}")
        return None


def _written_out(found: Imported, value: Json, folder: Path, where: str) -> Mapping[str, Json]:
    """Return an object that may stand in a file of its own; an empty one where there is none."""
    if isinstance(value, str):
        value = _data(found, folder, value, where)
    if value is not None and not isinstance(value, dict):
        found.leave_out("values that are no object", where)
    return value if isinstance(value, dict) else {}


def _tests(found: Imported, value: Json, folder: Path) -> Iterator[tuple[str, Mapping[str, Json]]]:
    for i, test in enumerate(_listed(value)):
        where = f"tests[{i}]"
        if isinstance(test, dict) and "path" in test:  # what makes tests, with its settings
            found.leave_out_keys(test, ("path",), " of a file of tests", where)
            test = test["path"]
        if isinstance(test, dict):
            found.leave_out_keys(test, OF_TEST, " of a test", where)
            yield where, test
        elif isinstance(test, str) and (name := test.removeprefix(FILE)).endswith(".csv"):
            yield from _csv_tests(found, folder, name, where)
        elif isinstance(test, str):
            listed = [one for one in _listed(_data(found, folder, test, where)) if one is not None]
            whole = [one for one in listed if isinstance(one, dict) and "path" not in one]
            if len(whole) < len(listed):
                found.leave_out(
                    "tests in a file that are no object, or name another file", f"{where}: {test}"
                )
            yield from _tests(found, whole, folder)
        elif test is not None:
            found.leave_out("tests that are neither an object nor a file", where)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _csv_tests(
    found: Imported, folder: Path, name: str, where: str
) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the tests of a table: a column is a variable, ``__expected`` an assertion."""
    try:
        text = read_text(confined(folder, name.removeprefix("./"), FILE_MAX_BYTES), FILE_MAX_BYTES)
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (Refused, ValueError, csv.Error) as error:
        found.leave_out("files that cannot be read", f"{where}: {error}")
        return
    for n, cells in enumerate(rows, 1):
        known = {key: cell for key, cell in cells.items() if isinstance(key, str) and isinstance(cell, str)}
        special = {key: cell for key, cell in known.items() if key.startswith("__")}
        expected = [key for key in special if _EXPECTED.fullmatch(key)]
        found.leave_out_keys(special, ("__description", *expected), " of a table", f"{name}, row {n}")
        asserted = [_written(special[key]) for key in expected if special[key]]
        test = {
            "vars": {key: cell for key, cell in known.items() if not key.startswith("__")},
            "assert": asserted,
        }
        yield (
            f"{name}, row {n}",
            test | ({"description": known["__description"]} if "__description" in known else {}),
        )


def _written(cell: str) -> dict[str, Json]:
    """Return the assertion that a cell stands for: ``contains: x``, ``similar(0.8): x``, or the answer."""
    marked = re.fullmatch(r"(not-)?([a-z][a-z-]*)(?:\(([\d.]+)\))?(?::\s*([\s\S]*))?", cell.strip())
    if marked is None or (marked[4] is None and marked[2] not in ("is-json", "contains-json")):
        return {"type": "equals", "value": cell}
    kind = {"fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}.get(marked[2], marked[2])
    value: Json = marked[4]
    if kind.endswith(("-any", "-all")) and isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    threshold = {"threshold": float(marked[3])} if marked[3] else {}
    return {"type": (marked[1] or "") + kind, "value": value, **threshold}


def _add(
    found: Imported, path: Path, where: str, test: Mapping[str, Json], usual: Mapping[str, Json], prompt: str
) -> None:
    given = [_written_out(found, part.get("vars"), path.parent, f"{where}.vars") for part in (usual, test)]
    merged = {key: value for part in given for key, value in part.items()}
    combinations = list(islice(_expanded(found, path.parent, merged, where), MOST + 1))
    if len(combinations) > MOST:
        found.leave_out(f"tests with more than {MOST:,} combinations of variables", where)
        return
    written = [one for part in (usual, test) for one in _listed(part.get("assert"))]
    asserted = [one for one in written if isinstance(one, dict)]
    if any(one is not None and not isinstance(one, dict) for one in written):
        found.leave_out("assertions that are no object", where)
    least = _least(found, test.get("threshold", usual.get("threshold")), where)
    for values in combinations:
        try:
            task = _task(found, render(prompt, values), where)
            fields = carried(found, asserted, where, partial(render, values=values))
        except ValueError as error:
            found.leave_out(str(error), where)
            return
        if "checks" not in fields and "rubric" not in fields:
            found.leave_out("tests of which no assertion could be carried over", where)
            return
        name = test.get("description")
        found.add(name if isinstance(name, str) else f"{path.stem}-{where}", task | fields | least)


def _least(found: Imported, threshold: Json, where: str) -> dict[str, Json]:
    """Return the least score of a test, where its threshold can be one."""
    if threshold is None:
        return {}
    if isinstance(threshold, int | float) and not isinstance(threshold, bool) and 0 <= threshold <= 1:
        return {"min_score": threshold}
    found.leave_out("`threshold` of a test that is no number from 0 to 1", where)
    return {}


def _expanded(
    found: Imported, folder: Path, values: Mapping[str, Json], where: str
) -> Iterator[dict[str, Json]]:
    """Yield each combination of variables: a list is a choice of values; none where a file is missing."""
    read: dict[str, list[Json]] = {}
    for key, value in values.items():
        listed = _listed(value)
        files = [isinstance(one, str) and one.startswith(FILE) for one in listed]
        read[key] = [
            _read(found, folder, one.removeprefix(FILE), f"{where}.vars.{key}") if is_file else one
            for one, is_file in zip(listed, files, strict=True)
        ]
        if any(is_file and text is None for text, is_file in zip(read[key], files, strict=True)):
            return
    for chosen in product(*read.values()):
        yield dict(zip(read, chosen, strict=True))


def render(template: str, values: Mapping[str, Json]) -> str:
    """Return `template` with its variables filled in; raises ValueError for anything else in braces."""

    def fill(match: re.Match[str]) -> str:
        value: Json = values
        for part in match[1].split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise ValueError(f"templates with a variable that has no value: {match[1]}")
            value = value[part]
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    rest = _VARIABLE.sub("", template)
    if "{{" in rest or "{%" in rest:
        raise ValueError("templates with more than {{ variable }}")
    return _VARIABLE.sub(fill, template)


def _task(found: Imported, text: str, where: str) -> dict[str, Json]:
    """Return the task of a prompt: the text, or what the user says in chat messages; raises ValueError."""
    try:
        messages = json.loads(text)
    except ValueError:
        messages = None
    if isinstance(messages, list) and messages and all(isinstance(one, dict) for one in messages):
        return said(found, messages, where)
    if not text.strip():
        raise ValueError("tests with an empty prompt")
    return {"prompt": text}
