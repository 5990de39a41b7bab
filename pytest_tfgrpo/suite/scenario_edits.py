"""Change fields of scenarios in the text of their file: YAML, JSON, JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from functools import cached_property

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.csv_rows import csv_table
from pytest_tfgrpo.suite.documents.csv_text import ANSWERS
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.nodes import Node, json_nodes
from pytest_tfgrpo.suite.documents.rewriting import Rewriter, Splice, spliced
from pytest_tfgrpo.suite.documents.yaml_text import yaml_nodes
from pytest_tfgrpo.suite.scenario_files import Candidate, candidates_in
from pytest_tfgrpo.suite.suite_files import SuiteFile

FieldChanges = Mapping[str, Mapping[str, Json]]
"""Fields to set, by scenario id."""
CELL = re.compile(r'[ \t]*"(?:[^"]|"")*"[^,\r\n]*|[^,\r\n]*')


class CannotEditError(ScenarioError):
    """A change that the text of a file cannot take without touching something else."""


class FileEditor:
    """Changes fields of the scenarios of one file, whose text it takes apart once."""

    def __init__(self, file: SuiteFile) -> None:
        self._file = file
        self._yaml = file.path.suffix in (".yaml", ".yml")

    def can_hold(self, id_: str, fields: Mapping[str, Json]) -> bool:
        """Return whether there is a place for a change of one scenario."""
        try:
            self._splices(id_, fields)
        except CannotEditError:
            return False
        return True

    def text(self, changes: FieldChanges) -> str:
        """Return the text with fields of scenarios changed, and nothing else.

        Raises CannotEditError, also where the new text would not say just that.
        """
        splices = [splice for id_, fields in changes.items() for splice in self._splices(id_, fields)]
        text = spliced(self._file.text, splices)
        _require(self._file, text, changes)
        return text

    def _splices(self, id_: str, fields: Mapping[str, Json]) -> list[Splice]:
        written, suffix = self._file.written[id_], self._file.path.suffix
        if suffix == ".csv":
            return _csv_splices(self._file, id_, fields, self._lines[written.line - 1])
        if suffix == ".jsonl":
            start, end = self._lines[written.line - 1], self._lines[written.line]
            root = json_nodes(self._file.text[:end], start)
        else:
            root = self._nodes
        node = root and root.at(written.at)
        if node is None or not isinstance(written.data, dict):
            raise CannotEditError("it is written by an alias")
        if "expected" in node.keys:
            raise CannotEditError("its check is written as `expected`; write `checks` in its place")
        rewriter = Rewriter(self._file.text, yaml=self._yaml)
        return list(rewriter.splices(node, written.data, {**written.data, **fields}))

    @cached_property
    def _nodes(self) -> Node | None:
        return yaml_nodes(self._file.text) if self._yaml else json_nodes(self._file.text)

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line starts, and the end of the text."""
        text = self._file.text
        return [0, *(match.end() for match in re.finditer("\n", text)), len(text)]


def _require(file: SuiteFile, text: str, changes: FieldChanges) -> None:
    """Raise CannotEditError unless the new text has the scenarios of the file except for the changes."""
    try:
        found = list(candidates_in(text, file.path))
    except Refused as error:
        raise CannotEditError(f"the file would no longer be read: {error}") from None
    now = [{**one.defaults, **one.data} for one in found if isinstance(one, Candidate)]
    wanted = [{**one.defaults, **one.data, **changes.get(id_, {})} for id_, one in file.written.items()]
    if len(now) != len(found) or now != wanted:
        raise CannotEditError("it shares what would change with something else")


def _csv_splices(file: SuiteFile, id_: str, fields: Mapping[str, Json], start: int) -> list[Splice]:
    """Return the splices of a row; only its check can change, into another of one kind and one answer."""
    checks = fields.get("checks")
    if fields.keys() != {"checks"} or not isinstance(checks, list) or len(checks) != 1:
        raise CannotEditError("a CSV file has one check for each scenario, and no more")
    check = checks[0]
    param = ANSWERS[check["kind"]][0] if check["kind"] in ANSWERS else ""
    if check.keys() != {"kind", param}:
        raise CannotEditError("a CSV file has a kind and an answer, and no other parameters")
    names = [name.casefold() for name in csv_table(file.text, ()).names]
    old = file.written[id_].data["checks"][0]
    cells = {"kind": check["kind"]} if check["kind"] != old["kind"] else {}
    cells |= {"answer": f"{check[param]}"} if check[param] != old.get(param) else {}
    if "kind" in cells and "kind" not in names:
        raise CannotEditError("its CSV file has no column 'kind'")
    spans = _cell_spans(file.text, start)
    if any(names.index(name) >= len(spans) for name in cells):
        raise CannotEditError("its row ends before that column")
    return [Splice(*spans[names.index(name)], _csv_cell(value)) for name, value in cells.items()]


def _cell_spans(text: str, place: int) -> list[tuple[int, int]]:
    """Return where the cells of the row that starts at `place` stand."""
    spans = []
    while True:
        match = CELL.match(text, place)
        assert match is not None
        spans.append(match.span())
        place = match.end() + 1
        if text[match.end() : place] != ",":
            return spans


def _csv_cell(text: str) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="").writerow([text])
    return file.getvalue()
