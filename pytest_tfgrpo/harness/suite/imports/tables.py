"""Tables of tasks and answers with any column names: CSV, JSON lines, Hugging Face datasets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.schema import nearest
from pytest_tfgrpo.core.text import few
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.document import Refused, read_text
from pytest_tfgrpo.harness.suite.imports.imported import Imported, expectation
from pytest_tfgrpo.harness.suite.json_text import parse_json, parse_json_line

FILE_MAX_BYTES = 200_000_000
PROMPT = ("prompt", "question", "input", "instruction", "query", "problem", "task")
ANSWER = ("answer", "expected", "expected_output", "target", "output", "response", "label", "solution")
SPLITS = ("train", "dev", "eval")


@dataclass(frozen=True, kw_only=True, slots=True)
class TableColumns:
    """Which columns of a table are what; None: guessed by name, or left out."""

    prompt: str | None = None
    answer: str | None = None
    id: str | None = None
    domain: str | None = None
    split: str | None = None

    def others(self) -> tuple[str, ...]:
        """Return the columns that you named besides those of the task and its answer."""
        return tuple(name for name in (self.id, self.domain, self.split) if name)


Row = tuple[str, Mapping[str, Json]]
"""Where a row stands, and its cells by column."""


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV, JSON or JSON lines file; raises ScenarioError with file and line."""
    try:
        text = read_text(path, FILE_MAX_BYTES)
        if path.suffix == ".csv":
            yield from _csv_rows(path, text)
        elif path.suffix == ".json":
            yield from _json_rows(path, text)
        else:
            for n, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield f"{path.name}:{n}", _object(parse_json_line(line, n), n)
    except Refused as error:
        raise ScenarioError(f"{path}:{error.problem.line}: {error}") from None


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    document = parse_json(text)
    for i, value in enumerate(document.value if isinstance(document.value, list) else [document.value]):
        at = document.line((i,))
        yield f"{path.name}:{at}", _object(value, at)


def _object(value: Json, line: int) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise Refused(line, "a row must be an object with a key for each column")
    return value


def _csv_rows(path: Path, text: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, restkey="", restval=None)
    try:
        for cells in reader:
            if None in cells.values() or "" in cells:
                raise Refused(reader.line_num, f"a row must have {len(reader.fieldnames or ())} cells")
            yield f"{path.name}:{reader.line_num}", cells
    except csv.Error as error:
        raise Refused(reader.line_num, f"not CSV: {error}") from None


def read_table(found: Imported, path: Path, columns: TableColumns, expect: str) -> None:
    """Add the scenarios of a CSV or JSON lines file; raises ScenarioError."""
    add_rows(found, path.stem, read_rows(path), columns=columns, expect=expect)


def add_rows(found: Imported, stem: str, rows: Iterator[Row], *, columns: TableColumns, expect: str) -> None:
    """Add a scenario for each row; raises ScenarioError where a column is missing."""
    for n, (where, cells) in enumerate(rows, 1):
        prompt, answer = (_column(cells, where, *one) for one in _needed(columns))
        found.leave_out_keys(cells, {prompt, answer, *columns.others()}, "", where)
        if not (text := _text(cells[prompt]).strip()):
            found.leave_out("rows with an empty prompt", where)
            continue
        try:
            fields = {"prompt": text, **expectation(_text(cells[answer]), expect)}
        except ValueError as error:
            found.leave_out(str(error), where)
            continue
        fields |= placed(found, cells, where, columns)
        id_ = _text(cells[_column(cells, where, "id", columns.id, ())]) if columns.id else f"{stem}-{n}"
        found.add(id_, fields)


def placed(found: Imported, cells: Mapping[str, Json], where: str, columns: TableColumns) -> dict[str, Json]:
    """Return domain and split of a row where `columns` name them; raises ScenarioError."""
    named = {name: getattr(columns, name) for name in ("domain", "split") if getattr(columns, name)}
    fields: dict[str, Json] = {
        name: _text(cells[_column(cells, where, name, column, ())]) for name, column in named.items()
    }
    if fields.get("split", "eval") not in SPLITS:
        found.leave_out(f"splits that are none of {', '.join(SPLITS)}", where)
        del fields["split"]
    return fields


def _needed(columns: TableColumns) -> tuple[tuple[str, str | None, Sequence[str]], ...]:
    return ("prompt", columns.prompt, PROMPT), ("answer", columns.answer, ANSWER)


def _column(cells: Mapping[str, Json], where: str, role: str, named: str | None, usual: Sequence[str]) -> str:
    """Return the column that has a role: the one named, or the first usual one."""
    if named is not None and named not in cells:
        raise ScenarioError(f"{where}: there is no column {named!r}{nearest(named, cells)}")
    chosen = named or next((name for name in usual if name in cells), None)
    if chosen is None:
        raise ScenarioError(
            f"{where}: which column is the {role}? there are {few(list(cells), 10)}; name it with --{role}"
        )
    return chosen


def _text(value: Json) -> str:
    """Return a cell as text; a dataset may hold dates and bytes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
