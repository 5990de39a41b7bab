"""Tools on tables: lists of rows, each a mapping of column names to text or numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from pytest_tfgrpo.actors.offline.reading import as_number
from pytest_tfgrpo.actors.offline.values import MAX_ITEMS, ToolError, Value, kind_of, render

MAX_COLUMNS = 200

TableRow = Mapping[str, Value]


def read_table(content: str) -> list[dict[str, Value]]:
    """Return the rows of CSV `content`; cells that are numbers become numbers."""
    rows: list[dict[str, Value]] = []
    try:
        reader = csv.reader(io.StringIO(content))
        header = [name.strip() for name in next(reader, [])]
        if not 1 < len(header) <= MAX_COLUMNS or len(set(header)) < len(header):
            raise ToolError("the file has no header line of at least two different column names")
        for cells in reader:
            if len(rows) == MAX_ITEMS:
                raise ToolError(f"the table has more than {MAX_ITEMS} rows")
            if cells:
                rows.append(dict(zip(header, map(_cell, cells), strict=False)))
    except csv.Error as error:
        raise ToolError(f"not a CSV file: {error}") from None
    return rows


def _cell(text: str) -> Value:
    number = as_number(text.strip())
    return text.strip() if number is None else number


def filter_rows(table: Sequence[TableRow], column: str, equals: str) -> list[TableRow]:
    """Return the rows whose cell in `column` is `equals`, letters' case ignored."""
    return [row for row in table if render(row.get(column)).casefold() == equals.casefold()]


def pick_column(table: Sequence[TableRow], column: str) -> list[Value]:
    """Return the cells of one column."""
    return [row[column] for row in table if column in row]


def top_row(table: Sequence[TableRow], column: str) -> TableRow:
    """Return the first row with the largest number in `column`; raises ToolError when it holds no numbers."""
    rows = [row for row in table if isinstance(row.get(column), int | float)]
    if not rows:
        raise ToolError(f"no numbers in column {column!r}")
    return max(rows, key=lambda row: row[column])


def save_file(value: Value) -> str:
    """Return what to write: CSV with a header line for a table, else the text as answered."""
    if kind_of(value) != "table":
        return render(value) + "\n"
    out = io.StringIO()
    columns = list(value[0])
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([render(row.get(column, "")) for column in columns] for row in value)
    return out.getvalue()
