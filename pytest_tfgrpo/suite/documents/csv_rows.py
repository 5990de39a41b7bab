"""Rows of CSV tables as programs save them: pandas, Excel, Sheets, LibreOffice."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.suite.documents.document import Refused

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

CELL_MAX_CHARS = 64_000_000
HEAD_CHARS = 10_000
"""Of a text that may show how its names are parted."""
AT_ONCE = 100
"""Rows that are read at once."""
SEPARATORS = ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))
"""What programs put between cells in place of commas, and how it is called."""
_DECLARED = re.compile(r"sep=([^\r\n])(?=\r|\n|\Z)", re.IGNORECASE)
"""The first line by which Excel names its separator."""

_BLANK_AND_QUOTE = re.compile(', +"')


class CsvTable(NamedTuple):
    """The names of the columns, and the rows as they are read."""

    names: list[str]
    """Without blanks around; '' for a column without a name."""
    line: int
    """Line of the names."""
    rows: Iterator[tuple[int, list[str]]]
    """Line and cells of each row that is not blank, without blank cells beyond the names.

    A row has as many cells as it was written with, so fewer or more than there are names. Raises Refused.
    """


def csv_table(text: str, known: Collection[str]) -> CsvTable:
    """Return the table that a text is; `known` are names of columns that show its separator.

    A first line ``sep=,`` and blank rows are passed over; line ends in a cell are newlines. Raises Refused.
    """
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Refused(line, "holds a NUL character; if it is UTF-16, save the file as UTF-8")
    declared = _DECLARED.match(text)
    if declared is not None and declared[1] != ",":
        named = dict(SEPARATORS).get(declared[1], short(declared[1]))
        raise Refused(
            1, f"{short(declared[0])} says that it is separated by {named}; save the file with commas"
        )
    _check_quoted(text)
    rows = _rows(text)
    if declared is not None:
        next(rows)
    line, header = next(rows, (1, []))
    names = [name.strip().strip("\N{ZERO WIDTH NO-BREAK SPACE}").strip() for name in header]
    _check_separator(names, line, known)
    return CsvTable(names, line, ((at, _without_spare(cells, len(names))) for at, cells in rows))


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    rows = _lined(csv.reader(io.StringIO(text, newline=""), strict=True))
    beside = None
    if _BLANK_AND_QUOTE.search(text):
        beside = _lined(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    returns = "\r" in text
    for start, cells in rows:
        if beside is not None and not _alike(cells, next(beside, (0, None))[1]):
            raise Refused(start, "there are spaces between a comma and a quoted cell; remove them")
        if any(map(str.strip, cells)):
            yield start, [_newlines(cell) if "\r" in cell else cell for cell in cells] if returns else cells


def _lined(reader: CsvReader) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a reader with the line where each starts; some are read at once."""
    more = True
    while more:
        some: list[tuple[int, list[str]]] = []
        wrong: csv.Error | None = None
        limit = csv.field_size_limit(CELL_MAX_CHARS)  # of the whole process, so it is put back at once
        try:
            while len(some) < AT_ONCE:
                some.append((reader.line_num + 1, next(reader)))
        except StopIteration:
            more = False
        except csv.Error as error:
            wrong = error
        finally:
            csv.field_size_limit(limit)
        yield from some
        if wrong is not None:
            raise Refused(reader.line_num, f"not CSV: {wrong}")


def _alike(cells: Sequence[str], others: Sequence[str] | None) -> bool:
    """Return whether cells are the same as others that were read without blanks before quotes."""
    if others is None or len(cells) != len(others):
        return False
    return all(a in (b, " " * (len(a) - len(b)) + b) for a, b in zip(cells, others, strict=True))


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_spare(cells: list[str], width: int) -> list[str]:
    while len(cells) > width and not cells[-1].strip():
        cells.pop()
    return cells


def _check_quoted(text: str) -> None:
    """Raise Refused where the first name has quotes and something else than a comma ends it."""
    first = text[:HEAD_CHARS].lstrip("\N{ZERO WIDTH NO-BREAK SPACE}").splitlines()[:1]
    for mark, named in SEPARATORS:
        if first and re.match(rf' *"[^"]*" *{re.escape(mark)}', first[0]):
            raise Refused(1, f"{short(first[0])} is separated by {named}; save the file with commas")


def _check_separator(names: Sequence[str], line: int, known: Collection[str]) -> None:
    """Raise Refused where the names hold known ones, but parted by something else than commas."""
    if not known or any(folded(name) in known for name in names):
        return
    for mark, named in SEPARATORS:
        parted = [part.strip().strip("\"'") for name in names for part in name.split(mark)]
        if len(parted) > len(names) and any(folded(part) in known for part in parted):
            raise Refused(
                line, f"{short(','.join(names))} is separated by {named}; save the file with commas"
            )


def parted_by(name: str) -> str:
    """Return what parts the only name of a table into several, as semicolons; empty where nothing does."""
    return next((named for mark, named in SEPARATORS if name.count(mark)), "")


def named_cells(names: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row by their names; '' has the first that is not blank and has none."""
    found = {name: cell for name, cell in zip(names, cells, strict=False) if name}
    unnamed = (cell for name, cell in zip(names, cells, strict=False) if not name and cell.strip())
    first = next(unnamed, None)
    return found if first is None else {**found, "": first}


def folded(name: str) -> str:
    """Return the name of a column as those are compared: in small letters, with ``_`` for blanks."""
    return "_".join(name.replace("-", " ").replace("_", " ").casefold().split())
