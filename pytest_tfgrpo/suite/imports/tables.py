"""Tables of tasks and answers with any column names: CSV, JSON lines, Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.csv_rows import csv_table, folded, named_cells, parted_by
from pytest_tfgrpo.suite.documents.document import Refused, read_text
from pytest_tfgrpo.suite.documents.json_text import parse_json, parse_json_line
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.values import as_text, asked, expected, listed_in, shape

FILE_MAX_BYTES = 200_000_000
PROMPT = (
    "prompt", "question", "input", "instruction", "query", "problem", "task", "user_input", "messages",
)  # fmt: skip
ANSWER = (
    "answer", "expected", "expected_output", "target", "output", "response", "label", "solution", "ideal",
    "ground_truth", "reference", "answers", "completion",
)  # fmt: skip
KNOWN = frozenset((*PROMPT, *ANSWER))
TABLES = (".csv", ".tsv", ".tab")
SPLITS = ("train", "dev", "eval")
INPUTS, OUTPUTS = "inputs", "outputs"
"""Objects of an example of LangSmith, whose keys are columns: ``inputs.question``."""


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

    def names(self) -> tuple[str, ...]:
        """Return all columns that you named."""
        return tuple(name for name in (self.prompt, self.answer, *self.others()) if name)


Row = tuple[str, Mapping[str, Json]]
"""Where a row stands, and its cells by column."""


def read_rows(path: Path, named: Collection[str] = ()) -> Iterator[Row]:
    """Yield the rows of a CSV, JSON or JSON lines file; `named` are columns that you named.

    Raises ScenarioError with file and line.
    """
    try:
        text = read_text(path, FILE_MAX_BYTES)
        if path.suffix.lower() in TABLES:
            yield from _csv_rows(path, text, KNOWN.union(map(folded, named)))
        elif path.suffix == ".json":
            yield from _json_rows(path, text)
        else:
            for n, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield f"{path.name}:{n}", _object(parse_json_line(line, n, as_written=True), n)
    except Refused as error:
        raise ScenarioError(f"{path}:{error.problem.line}: {error}") from None


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    document = parse_json(text, as_written=True)
    values = document.value if isinstance(document.value, list) else [document.value]
    lines = [document.line((i,)) for i in range(len(values))]
    shared = len(set(lines)) < len(lines)
    for n, (value, at) in enumerate(zip(values, lines, strict=True), 1):
        yield f"{path.name}:{at}" + (f", row {n}" if shared else ""), _object(value, at)


def _object(value: Json, line: int) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise Refused(line, "a row must be an object with a key for each column")
    return value


def _csv_rows(path: Path, text: str, known: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a table; one that ends early has all cells of `known` columns."""
    table = csv_table(text, known)
    names = table.names
    for name in filter(None, names):
        if names.count(name) > 1:
            raise Refused(table.line, f"two columns are called {short(name)}; rename or remove one")
    for line, cells in table.rows:
        ends_early = any(folded(name) in known for name in names[len(cells) :])
        if len(cells) > len(names) or ends_early:
            raise Refused(line, f"a row must have {len(names)} cells, not {len(cells)}")
        yield f"{path.name}:{line}", named_cells(names, cells)


def read_table(found: Imported, path: Path, columns: TableColumns, expect: str) -> None:
    """Add the scenarios of a CSV or JSON lines file; raises ScenarioError."""
    rows = read_rows(path, columns.names())
    is_csv = path.suffix.lower() in TABLES
    add_rows(found, path.stem, rows, columns=columns, expect=expect, is_csv=is_csv)


def add_rows(
    found: Imported,
    stem: str,
    rows: Iterator[Row],
    *,
    columns: TableColumns,
    expect: str,
    is_csv: bool = False,
) -> None:
    """Add a scenario for each row; raises ScenarioError where a column is missing."""
    n = 0
    for n, (where, row) in enumerate(rows, 1):
        cells = _opened(row, columns.names())
        prompt = _column(cells, where, "prompt", columns.prompt, _usual(PROMPT, INPUTS))
        answer = _column(cells, where, "answer", columns.answer, _usual(ANSWER, OUTPUTS))
        others = {_column(cells, where, "", name, ()) for name in columns.others()}
        found.leave_out_keys(cells, {prompt, answer, *others}, "", where)
        try:
            right = listed_in(found, cells[answer], expect, where) if is_csv else cells[answer]
            fields = asked(found, cells[prompt], where) | expected(found, right, expect, where)
        except ValueError as error:
            found.leave_out(str(error), where)
            continue
        fields |= placed(found, cells, where, columns)
        id_ = _plain(found, cells, where, columns.id, "ids") if columns.id else None
        found.add(id_ or f"{stem}-{n}", fields, where)
    if not n:
        found.refuse(stem, "it has no rows")


def _opened(row: Mapping[str, Json], named: Collection[str]) -> Mapping[str, Json]:
    """Return the cells of a row, those inside the objects of LangSmith too unless you named the object."""
    cells: dict[str, Json] = {}
    for name, value in row.items():
        inside = isinstance(value, dict) and name in (INPUTS, OUTPUTS) and name not in named
        cells |= {f"{name}.{key}": one for key, one in value.items()} if inside else {name: value}
    return cells


@cache
def _usual(names: tuple[str, ...], holder: str) -> tuple[str, ...]:
    """Return the usual names of a column, also inside the object `holder`."""
    return (*names, *(f"{holder}.{name}" for name in names))


def placed(found: Imported, cells: Mapping[str, Json], where: str, columns: TableColumns) -> dict[str, Json]:
    """Return domain and split of a row where `columns` name them; raises ScenarioError."""
    fields: dict[str, Json] = {}
    for name in ("domain", "split"):
        column = getattr(columns, name)
        if column and (value := _plain(found, cells, where, column, f"{name}s")):
            fields[name] = value
    if fields.get("split", "eval") not in SPLITS:
        found.leave_out(f"splits that are none of {', '.join(SPLITS)}", where)
        del fields["split"]
    return fields


def _plain(found: Imported, cells: Mapping[str, Json], where: str, named: str, what: str) -> str | None:
    """Return the text of the column that you named; notes where there is none, or another kind of value."""
    value = cells[_column(cells, where, "", named, ())]
    try:
        text = as_text(value).strip()
    except ValueError:
        text = ""
    if not text:
        found.leave_out(f"{what} that are {shape(value)}", where)
    return text or None


def _column(cells: Mapping[str, Json], where: str, role: str, named: str | None, usual: Sequence[str]) -> str:
    """Return the column that has a role: the one named, or the first usual one; raises ScenarioError."""
    try:
        return _chosen(tuple(cells), role, named, tuple(usual))
    except ValueError as error:
        raise ScenarioError(f"{where}: {error}") from None


@lru_cache(maxsize=256)
def _chosen(names: tuple[str, ...], role: str, named: str | None, usual: tuple[str, ...]) -> str:
    wanted = usual if named is None else (named,)
    exact = [name for name in wanted if name in names]
    alike = [name for one in wanted for name in names if folded(name) == folded(one)]
    if named is None and "instruction" in alike and alike[0] in ("input", "instruction") and "input" in alike:
        raise ValueError("is the prompt in 'instruction' or in 'input'? name the column with --prompt")
    if exact or len(alike) == 1 or (alike and folded(alike[0]) != folded(alike[1])):
        return (exact or alike)[0]
    if alike:
        raise ValueError(f"the columns {few(alike)} differ in capitals only; rename one")
    if named is not None:
        raise ValueError(f"there is no column {named!r}{nearest(named, names)}")
    if len(names) == 1 and (parted := parted_by(names[0])):
        raise ValueError(f"{short(names[0])} is one column, separated by {parted}; save the file with commas")
    raise ValueError(f"which column is the {role}? there are {few(names, 10)}; name it with --{role}")
