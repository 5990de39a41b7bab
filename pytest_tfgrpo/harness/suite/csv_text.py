"""Simple sets of scenarios as CSV: ``prompt`` and ``answer`` columns, and a few optional ones."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping

from pytest_tfgrpo.core.schema import nearest, short
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.document import Problem, Refused
from pytest_tfgrpo.harness.suite.ground_truth import ESTIMATES


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

    An empty cell is a value left out; ids default to ``<stem>-<row>``; tags and agents are parted by white
    space. Raises Refused for the file as a whole.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header)
        rows, line = 0, reader.line_num + 1
        for cells in reader:
            start, line = line, reader.line_num + 1
            if len(cells) == len(header):
                rows += 1
                named = {name: cell for name, cell in zip(header, cells, strict=True) if cell.strip()}
                found = _scenario({"id": f"{stem}-{rows}", **named})
                yield Problem(start, *found) if isinstance(found, tuple) else (start, found)
            elif cells:
                yield Problem(start, (), f"{len(cells)} cells in a table of {len(header)} columns")
    except csv.Error as error:
        raise Refused(reader.line_num, f"not CSV: {error}") from None


def _check_header(header: list[str]) -> None:
    parted = header[0] if len(header) == 1 else ""
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if mark in parted and {part.strip() for part in parted.split(mark)} & set(COLUMNS):
            raise Refused(1, f"{short(parted)} is parted by {name}; save the file with commas")
    for name in header:
        if name not in COLUMNS:
            raise Refused(1, f"unknown column {short(name)}{nearest(name, COLUMNS)}", (name,))
        if header.count(name) > 1:
            raise Refused(1, f"duplicate column {name!r}", (name,))
    for name in ("prompt",) if "truth" in header else ("prompt", "answer"):
        if name not in header:
            raise Refused(1, f"no column {name!r}; the first line names the columns {', '.join(COLUMNS)}")


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
