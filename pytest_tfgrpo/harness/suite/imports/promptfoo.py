"""Configurations of promptfoo: prompts, tests with variables, assertions."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.sandbox.paths import confined
from pytest_tfgrpo.harness.suite.document import Refused, read_text
from pytest_tfgrpo.harness.suite.imports.imported import Imported
from pytest_tfgrpo.harness.suite.imports.promptfoo_assertions import carried
from pytest_tfgrpo.harness.suite.imports.tables import FILE_MAX_BYTES
from pytest_tfgrpo.harness.suite.yaml_text import parse_yaml

FILE = "file://"
DATA = (".txt", ".md", ".json", ".yaml", ".yml")
"""Files whose text is a value; others are programs, which an import does not run."""
MOST = 1_000
"""Combinations of the values of one test's variables."""
USED = ("prompts", "tests", "defaultTest", "description", "providers", "targets")
UNUSED = ("options", "metadata", "provider", "providers", "providerOutput", "assertScoringFunction")
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
    for key in config.keys() - set(USED):
        found.leave_out(f"`{key}` of the configuration", path.name)
    prompts = [one for one in _prompts(found, config.get("prompts"), path.parent) if one]
    if len(prompts) > 1:
        found.leave_out("further prompts: a scenario has one", f"prompts[1] of {len(prompts)}")
    usual = config.get("defaultTest")
    for where, test in _tests(found, config.get("tests"), path.parent):
        _add(
            found, path, where, test, usual if isinstance(usual, dict) else {}, (prompts or ["{{prompt}}"])[0]
        )


def _prompts(found: Imported, value: Json, folder: Path) -> Iterator[str]:
    for i, one in enumerate(_listed(value)):
        text = one.get("raw", one.get("id")) if isinstance(one, dict) else one
        if not isinstance(text, str):
            continue
        if text.startswith(FILE) or text.endswith(DATA):
            text = _read(found, folder, text.removeprefix(FILE), f"prompts[{i}]")
            yield from text.split("\n---\n") if text else ()
        else:
            yield text


def _read(found: Imported, folder: Path, name: str, where: str) -> str | None:
    """Return the text of a file beside the configuration; None where it is a program or cannot be read."""
    if not name.endswith(DATA):
        found.leave_out("files that promptfoo would run", f"{where}: {name}")
        return None
    try:
        return read_text(confined(folder, name.removeprefix("./"), FILE_MAX_BYTES), FILE_MAX_BYTES)
    except (Refused, ValueError) as error:
        found.leave_out("files that cannot be read", f"{where}: {error}")
        return None


def _tests(found: Imported, value: Json, folder: Path) -> Iterator[tuple[str, Mapping[str, Json]]]:
    for i, test in enumerate(_listed(value)):
        where = f"tests[{i}]"
        if isinstance(test, dict):
            yield where, test
        elif isinstance(test, str) and (name := test.removeprefix(FILE)).endswith(".csv"):
            yield from _csv_tests(found, folder, name, where)
        elif isinstance(test, str) and (text := _read(found, folder, test.removeprefix(FILE), where)):
            try:
                listed = parse_yaml(text).value
            except Refused as error:
                found.leave_out("files that cannot be read", f"{where}: {error}")
                continue
            yield from _tests(found, [one for one in _listed(listed) if isinstance(one, dict)], folder)


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
        asserted = [_written(cell) for key, cell in known.items() if _EXPECTED.fullmatch(key) and cell]
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
    for key in UNUSED:
        if test.get(key) or usual.get(key):
            found.leave_out(f"`{key}` of a test", where)
    given = [part.get("vars") for part in (usual, test)]
    merged = {key: value for part in given if isinstance(part, dict) for key, value in part.items()}
    combinations = list(islice(_expanded(found, path.parent, merged, where), MOST + 1))
    if len(combinations) > MOST:
        found.leave_out(f"tests with more than {MOST:,} combinations of variables", where)
        return
    asserted = [one for part in (usual, test) for one in _listed(part.get("assert")) if isinstance(one, dict)]
    for values in combinations:
        try:
            text = _task(render(prompt, values))
            fields = carried(found, asserted, where, partial(render, values=values))
        except ValueError as error:
            found.leave_out(str(error), where)
            return
        if "checks" not in fields and "rubric" not in fields:
            found.leave_out("tests of which no assertion could be carried over", where)
            return
        least = test.get("threshold", usual.get("threshold"))
        if isinstance(least, int | float) and 0 <= least <= 1:
            fields["min_score"] = least
        name = test.get("description")
        found.add(name if isinstance(name, str) else f"{path.stem}-{where}", {"prompt": text, **fields})


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


def _task(text: str) -> str:
    """Return the task of a prompt: the text, or of chat messages the user's one; raises ValueError."""
    try:
        messages = json.loads(text)
    except ValueError:
        messages = None
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        if not text.strip():
            raise ValueError("tests with an empty prompt")
        return text
    users = [m for m in messages if isinstance(m, dict) and m.get("role") == "user"]
    if len(users) != 1 or len(messages) > 1:
        raise ValueError("chat prompts of several messages (a system message belongs into a prompt pack)")
    return str(users[0].get("content"))
