"""Simple sets of scenarios as CSV: ``prompt`` and ``answer`` columns, and a few optional ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.csv_rows import csv_table
from pytest_tfgrpo.suite.documents.document import Problem, Refused
from pytest_tfgrpo.suite.ground_truth import ESTIMATES


def _number(text: str) -> float:
    number = float(text)
    if "_" in text or not math.isfinite(number):
        raise ValueError
    return number


COLUMNS = (
    "prompt", "answer", "id", "domain", "split", "family", "kind", "tags", "agents", "rubric", "truth",
    "min_score",
)  # fmt: skip
PLAIN = ("prompt", "id", "domain", "split", "family", "rubric", "truth")
"""Columns that are fields of a scenario as they are."""
LISTS = ("tags", "agents")
"""Columns whose words are the entries of a list."""
ANSWERS: Mapping[str, tuple[str, Callable[[str], Json]]] = {
    "exact": ("value", str),
    "contains": ("value", str),
    "number": ("value", _number),
    "math": ("value", str),
    "regex": ("pattern", str),
}
"""Check kinds that one answer is enough for: its parameter, and how to read it."""


def parse_csv(text: str, stem: str) -> Iterator[tuple[int, Json] | Problem]:
    """Yield each row as line and scenario, or what is wrong with it.

    An empty cell is a value left out, and a row may end with its answer; ids default to ``<stem>-<row>``;
    tags and agents are parted by white space. Raises Refused for the file as a whole.
    """
    table = csv_table(text, COLUMNS)
    header = [name.casefold() for name in table.names]
    _check_header(header, table.line)
    rows, needed = 0, {"prompt", "answer"}
    for line, cells in table.rows:
        if len(cells) != len(header) and (len(cells) > len(header) or needed & {*header[len(cells) :]}):
            yield Problem(line, (), f"{len(cells)} cells in a table of {len(header)} columns")
            continue
        rows += 1
        named = {name: cell for name, cell in zip(header, cells, strict=False) if cell.strip()}
        if "" in named:
            yield Problem(line, (), f"{short(named[''])} is in a column without a name; name or remove it")
            continue
        found = _scenario({"id": f"{stem}-{rows}", **named})
        yield Problem(line, *found) if isinstance(found, tuple) else (line, found)


def _check_header(header: list[str], line: int) -> None:
    for name in filter(None, header):
        if name not in COLUMNS:
            raise Refused(line, f"unknown column {short(name)}{nearest(name, COLUMNS)}", (name,))
        if header.count(name) > 1:
            raise Refused(line, f"duplicate column {name!r}", (name,))
    for name in ("prompt",) if "truth" in header else ("prompt", "answer"):
        if name not in header:
            raise Refused(line, f"no column {name!r}; the first line names the columns {', '.join(COLUMNS)}")


def _scenario(cells: Mapping[str, str]) -> dict[str, Json] | tuple[tuple[str], str]:
    """Return the scenario that the cells of a row describe, or the column and what is wrong with it."""
    kind = cells.get("kind", "exact")
    if kind not in ANSWERS:
        return (
            "kind",
        ), f"kind {short(kind)} must be one of {', '.join(ANSWERS)} in a CSV file{nearest(kind, ANSWERS)}"
    scenario: dict[str, Json] = {name: cells[name] for name in PLAIN if name in cells}
    for name in LISTS:
        if name in cells:
            scenario[name] = list[Json](cells[name].split())
    if "min_score" in cells:
        try:
            scenario["min_score"] = _number(cells["min_score"])
        except ValueError:
            return ("min_score",), f"{short(cells['min_score'])} is not a number"
    if "answer" not in cells:
        if cells.get("truth") in ESTIMATES:
            return scenario
        return ("answer",), "an answer is missing"
    param, read = ANSWERS[kind]
    try:
        check = {"kind": kind, param: read(cells["answer"])}
    except ValueError:
        return ("answer",), f"{short(cells['answer'])} is not a number"
    return scenario | {"checks": [check]}
