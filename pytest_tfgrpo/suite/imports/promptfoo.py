"""Configurations of promptfoo: prompts, tests with variables, assertions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice, product
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.csv_rows import csv_table, named_cells
from pytest_tfgrpo.suite.documents.document import Refused, read_text
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.promptfoo_assertions import KINDS, WITHOUT_VALUE, carried
from pytest_tfgrpo.suite.imports.promptfoo_files import DATA, FILE, FilesBeside
from pytest_tfgrpo.suite.imports.promptfoo_prompts import structure, task_of
from pytest_tfgrpo.suite.imports.promptfoo_values import (
    js_text,
    parse_file,
    render,
    resolved,
    with_joined_lists,
)
from pytest_tfgrpo.suite.imports.tables import FILE_MAX_BYTES
from pytest_tfgrpo.suite.imports.values import shape

MOST = 1_000
"""Combinations of the values of one test's variables."""
USED = ("prompts", "tests", "defaultTest", "description", "providers", "targets")
OF_TEST = ("vars", "assert", "threshold", "description")
OF_PROMPT = ("raw", "id", "label")
_ASSERTION = re.compile(r"(not-)?([a-z][a-z-]*)(?:\(([0-9]+(?:\.[0-9]+)?)\))?(?::\s*([\s\S]*))?")
_EXPECTED = re.compile(r"__expected\w*")


def read_config(found: Imported, path: Path) -> None:
    """Add a scenario for each test, put with the first prompt; raises ScenarioError."""
    found.source = path.name
    try:
        config = parse_file(found, read_text(path, FILE_MAX_BYTES), path.name, "configuration")
    except Refused as error:
        raise ScenarioError(f"{path}:{error.problem.line}: {error}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: {error}") from None
    if not isinstance(config, dict) or not {"tests", "scenarios"} & config.keys():
        raise ScenarioError(f"{path} is not a configuration of promptfoo: it has no tests")
    found.leave_out_keys(config, USED, " of the configuration", path.name)
    files = FilesBeside(found, path.parent)
    prompts = [one for one in _prompts(files, config.get("prompts")) if one.strip()]
    if config.get("prompts") and not prompts:
        told = "\n".join(["", *found.report()])
        raise ScenarioError(f"{path}: none of its prompts is a text, or a file of text beside it{told}")
    if len(prompts) > 1:
        found.leave_out("further prompts: a scenario has one", f"prompts[1] of {len(prompts)}")
    usual = _written_out(files, config.get("defaultTest"), "defaultTest")
    found.leave_out_keys(usual, OF_TEST, " of a test", "defaultTest")
    for where, test in _tests(files, config.get("tests")):
        _add(files, path.stem, where, test, usual, (prompts or ["{{prompt}}"])[0])


def _prompts(files: FilesBeside, value: Json) -> Iterator[str]:
    """Yield prompts: texts, files, objects, or an object of files and labels as older versions have."""
    if isinstance(value, dict) and not {"raw", "id"} & value.keys():
        value = list(value)
    for i, one in enumerate(_listed(value)):
        where = f"prompts[{i}]"
        text = one.get("raw", one.get("id")) if isinstance(one, dict) else one
        if not isinstance(text, str):
            if one is not None:
                files.found.leave_out(
                    f"prompts that are {shape(text if isinstance(one, dict) else one)}", where
                )
            continue
        if isinstance(one, dict):
            files.found.leave_out_keys(one, OF_PROMPT, " of a prompt", where)
        if text.startswith(FILE) or text.endswith(DATA):
            yield from _prompts_in(text, files.text(text, where) or "")
        else:
            yield text


def _prompts_in(name: str, text: str) -> list[str]:
    if name.endswith(".jsonl"):
        return [line for line in text.split("\n") if line.strip()]
    return text.split("\n---\n") if name.endswith((".txt", ".md")) else [text]


def _written_out(files: FilesBeside, value: Json, where: str) -> Mapping[str, Json]:
    """Return an object that may stand in a file of its own; an empty one where there is none."""
    if isinstance(value, str):
        value = files.data(value, where)
    if value is not None and not isinstance(value, dict):
        files.found.leave_out("values that are no object", where)
    return value if isinstance(value, dict) else {}


def _tests(files: FilesBeside, value: Json) -> Iterator[tuple[str, Mapping[str, Json]]]:
    found = files.found
    for i, test in enumerate(_listed(value)):
        where = f"tests[{i}]"
        if isinstance(test, dict) and "path" in test:  # what makes tests, with its settings
            found.leave_out_keys(test, ("path",), " of a file of tests", where)
            test = test["path"]
        if isinstance(test, dict):
            found.leave_out_keys(test, OF_TEST, " of a test", where)
            yield where, test
        elif isinstance(test, str) and (name := test.removeprefix(FILE)).endswith(".csv"):
            yield from _csv_tests(files, name, where)
        elif isinstance(test, str):
            listed = [one for one in _listed(files.data(test, where)) if one is not None]
            whole = [one for one in listed if isinstance(one, dict) and "path" not in one]
            if len(whole) < len(listed):
                found.leave_out(
                    "tests in a file that are no object, or name another file", f"{where}: {test}"
                )
            yield from ((f"{test.removeprefix(FILE)}, {at}", one) for at, one in _tests(files, whole))
        elif test is not None:
            found.leave_out("tests that are neither an object nor a file", where)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _csv_tests(files: FilesBeside, name: str, where: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the tests of a table: a column is a variable, ``__expected`` an assertion."""
    text = files.plain(name, where)
    try:
        table = csv_table(text or "", ("__expected", "expected"))
        rows = list(table.rows)
    except Refused as error:
        files.found.leave_out("files that cannot be read", f"{where}: {name}:{error.problem.line}: {error}")
        return
    for n, (line, cells) in enumerate(rows, 1):
        at = f"{name}, row {n}"
        if len(cells) > len(table.names):
            wrong = f"{len(cells)} cells in a table of {len(table.names)} columns"
            files.found.leave_out("rows of a table that do not fit", f"{at}, line {line}: {wrong}")
            continue
        yield at, _csv_test(files.found, named_cells(table.names, cells), at)


def _csv_test(found: Imported, cells: Mapping[str, str], where: str) -> dict[str, Json]:
    special = {key: cell for key, cell in cells.items() if key.startswith("__")}
    expected = [key for key in special if _EXPECTED.fullmatch(key)]
    found.leave_out_keys(special, ("__description", *expected), " of a table", where)
    found.leave_out_keys({"": cells.get("", "")}, (), "", where)
    test: dict[str, Json] = {
        "vars": {key: cell for key, cell in cells.items() if key and not key.startswith("__")},
        "assert": [_written(special[key]) for key in expected if special[key].strip()],
    }
    return test | ({"description": special["__description"]} if special.get("__description") else {})


def _written(cell: str) -> dict[str, Json]:
    """Return the assertion that a cell stands for: ``contains: x``, ``similar(0.8): x``, or the answer."""
    marked = _ASSERTION.fullmatch(cell.strip())
    kind = marked[2] if marked else ""
    if marked is None or kind not in KINDS or (marked[4] is None and kind not in WITHOUT_VALUE):
        return {"type": "equals", "value": cell}
    kind = {"fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}.get(kind, kind)
    value: Json = marked[4]
    if kind.endswith(("-any", "-all")) and isinstance(value, str) and '"' not in value:
        value = [part.strip() for part in value.split(",")]
    threshold = {"threshold": float(marked[3])} if marked[3] else {}
    return {"type": (marked[1] or "") + kind, "value": value, **threshold}


def _add(
    files: FilesBeside,
    stem: str,
    where: str,
    test: Mapping[str, Json],
    usual: Mapping[str, Json],
    prompt: str,
) -> None:
    """Add a scenario for each combination of a test's variables; notes why there is none."""
    found = files.found
    given = [_written_out(files, part.get("vars"), f"{where}.vars") for part in (usual, test)]
    merged = {key: value for part in given for key, value in part.items()}
    options = {key: one for part in (usual, test) for key, one in _object(part.get("options")).items()}
    inherited = () if options.get("disableDefaultAsserts") is True else (usual,)
    asserted = [one for part in (*inherited, test) for one in _asserted(files, part.get("assert"), where)]
    least = _least(found, test.get("threshold", usual.get("threshold")), where)
    try:
        template = structure(prompt)
        combinations = _combinations(files, merged, where, apart=options.get("disableVarExpansion") is True)
    except ValueError as error:
        found.leave_out(str(error), where)
        return
    name = test.get("description")
    id_ = name if isinstance(name, str) and name else f"{stem}-{where}"
    for values in combinations:
        try:
            known = resolved(values)
            task = task_of(found, template, partial(render, values=known), where)
            fields = task | carried(files, asserted, where, partial(render, values=with_joined_lists(known)))
            if "checks" not in fields and "rubric" not in fields:
                raise ValueError("tests of which no assertion could be carried over")
        except ValueError as error:
            found.leave_out(str(error), where)
        else:
            found.add(id_, fields | least, where)


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _asserted(files: FilesBeside, value: Json, where: str) -> Iterator[Mapping[str, Json]]:
    """Yield the assertions of a test, which may stand in a file; notes those that are no object."""
    if isinstance(value, str) and value.startswith(FILE):
        value = files.data(value, f"{where}.assert")
    for one in _listed(value):
        if isinstance(one, dict):
            yield one
        elif one is not None:
            files.found.leave_out("assertions that are no object", where)


def _least(found: Imported, threshold: Json, where: str) -> dict[str, Json]:
    """Return the least score of a test, where its threshold can be one."""
    if threshold is None:
        return {}
    if isinstance(threshold, int | float) and not isinstance(threshold, bool) and 0 <= threshold <= 1:
        return {"min_score": threshold}
    found.leave_out("`threshold` of a test that is no number from 0 to 1", where)
    return {}


def _combinations(
    files: FilesBeside, values: Mapping[str, Json], where: str, *, apart: bool
) -> list[dict[str, Json]]:
    """Return each combination of variables: a list is a choice of values, unless it is kept `apart`.

    Raises ValueError for too many, and for a list without values; none where a file is missing.
    """
    read: dict[str, list[Json]] = {}
    for key, value in values.items():
        read[key] = [
            _of_file(files, one, f"{where}.vars.{key}") for one in ([value] if apart else _listed(value))
        ]
        if not read[key]:
            raise ValueError("tests with a variable that is an empty list")
        if any(one is _MISSING for one in read[key]):
            return []
    found = [dict(zip(read, chosen, strict=True)) for chosen in islice(product(*read.values()), MOST + 1)]
    if len(found) > MOST:
        raise ValueError(f"tests with more than {MOST:,} combinations of variables")
    return found


_MISSING = object()


def _of_file(files: FilesBeside, value: Json, where: str) -> Json:
    """Return the text that a variable's file stands for, or the value as it is; _MISSING for none."""
    if not isinstance(value, str) or not value.startswith(FILE):
        return value
    if value.endswith((".yaml", ".yml")):
        data = files.data(value, where)
        return _MISSING if data is None else js_text(data)
    text = files.text(value, where)
    return _MISSING if text is None else text.strip()
