"""The answers of a run as a table for spreadsheets: a row for each rollout, also of sweeps."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.export.export import check_target
from pytest_tfgrpo.runs.journal.journal_contents import load_run

ANSWERS: Final = "answers"
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:[eE][+-]?\d+)?")
_FORMULA = re.compile(
    r"\A(?=[\s\0-\x1f\u200b\ufeff]*[=+\-@＝＋－＠])|(?<=[;\t\r\n])(?=[ \"']*(?:[=+@＝＋＠]|[-－](?!\s)))"
)
"""Where a spreadsheet would read a formula: at the start of a cell, or of one by another separator."""


def export_answers(
    folder: Path, target: Path, rows_of: Callable[[Run, str], Sequence[Mapping[str, Json]]], *, force: bool
) -> Iterator[str]:
    """Write what `rows_of` makes of the run in `folder` as CSV (RFC 4180), and yield what is to be said.

    No text is a formula: an apostrophe stands before what would be one. Raises ExportError as `export` does.
    """
    try:
        check_target(folder, target, force)
        run = load_run(folder)
        if run.status != "complete":
            raise ExportError(f"run {run.run_id} is {run.status}; export it when it has ended")
        rows = rows_of(run, run.identities["actor"]["name"])
        if not rows:
            raise ExportError(f"run {run.run_id} has no rollout to export")
        write_atomic(target, _lines(rows))
    except OSError as error:
        raise ExportError(
            f"cannot write {target}: {error.strerror or error}; name another file with -o"
        ) from error
    yield f"{target}: {plural(len(rows), 'row')} of run {run.run_id}"


def _lines(rows: Sequence[Mapping[str, Json]]) -> Iterator[bytes]:
    yield _line(list(rows[0]))
    for row in rows:
        yield _line(list(row.values()))


def _line(cells: Sequence[Json]) -> bytes:
    made = io.StringIO()
    csv.writer(made).writerow([_inert(cell) if isinstance(cell, str) else cell for cell in cells])
    return made.getvalue().encode("utf-8", "replace")


def _inert(text: str) -> str:
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub("'", text)
