"""The report as one self-contained HTML page: readable without scripts, and with them down to every call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.file_writing import write_pieces, write_text
from pytest_tfgrpo.core.files import DETAILS, REPORT_HTML
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import EffectRow, Report
from pytest_tfgrpo.report.page import draw, page_tables, template
from pytest_tfgrpo.report.page.beside import pack_beside, shown_first, words_beside
from pytest_tfgrpo.report.page.history import anchored, history
from pytest_tfgrpo.report.page.layout import Layout, layout
from pytest_tfgrpo.report.page.payload import payload
from pytest_tfgrpo.report.page.payload.details import Details
from pytest_tfgrpo.report.page.payload.sides import sides_index
from pytest_tfgrpo.report.page.previews import Preview, previews
from pytest_tfgrpo.report.page.trajectories import Packed, compressed, pack

LIMIT = 14_000_000
"""Maximum bytes of a page, unless it needs more without trajectories."""


PLAIN_ROWS = 400
"""Scenarios of each split in the tables that are shown without scripts and on paper."""


END = "</body>\n</html>"


def html(
    report: Report,
    run: Run | None = None,
    compare: Mapping[str, Any] | None = None,
    others: Sequence[Run] = (),
) -> str:
    """Return the page of a report value, alone: of a large run it holds but some scenarios.

    With its `run` the page opens down to trajectories; `compare` is how it compares with `others`, as
    ``versus`` shows it. Equal values give equal pages.
    """
    return _page(report, layout(report, run, compare, others), compare)


def write_page(folder: Path, report: Report, run: Run) -> None:
    """Write the page of a run, and of a large one the file beside it, into a folder; raises JournalError."""
    laid, key = layout(report, run), ""
    if laid.cells.held < len(laid.cells.rows):
        details = Details(laid, run)
        write_pieces(folder / DETAILS, details.pieces())
        key = details.key
    write_text(folder / REPORT_HTML, _page(report, laid, key=key))


def _page(report: Report, laid: Layout, compare: Mapping[str, Any] | None = None, key: str = "") -> str:
    """Return a page; `key` is that of the file beside it."""
    run, cells = laid.run, laid.cells
    large = cells.held < len(cells.rows)
    style, script = template.style(), template.script()
    said = previews(cells, run) if run is not None else []
    effects = effects_of(report)
    markup = template.fill(
        report=report,
        run_id=report["run_id"],
        compare=compare,
        tasks={row.id: preview.task for row, preview in zip(cells.inside, said, strict=bool(said))},
        curve=draw.curve(report["epochs"], (compare or {}).get("epochs", ())),
        domains=draw.domains(cells),
        histograms=draw.histograms(cells),
        grid=cells,
        plain={split: cells.telling(split, PLAIN_ROWS) for split in cells.splits()},
        plain_rows=PLAIN_ROWS,
        said=said,
        history=[] if run is None else anchored(history(run, effects), report["library"]["lessons"]),
        evidence=laid.evidence,
        effects=effects,
        tools=page_tables.tools(report),
        tags=page_tables.tags(cells, run),
        faults=laid.faults,
        trusted=page_tables.has_caveats(report),
        most=page_tables.MOST,
        further=page_tables.further(report),
        style=style,
        policy=template.policy(style, script, "connect-src 'self'; " if key else "", answers=run is not None),
    )
    beyond = payload.beyond(cells, laid.run_id, key) if large else None
    return with_data(markup, script, laid, said, beyond)


def with_data(
    markup: str, script: str, laid: Layout, said: Sequence[Preview], beyond: Mapping[str, Any] | None
) -> str:
    """Return a page from its markup, with its script and the data of its rows; `said` has their words.

    `beyond` is what it says of the scenarios that it does not hold.
    """
    words = ""
    if said and laid.run is not None:
        told = payload.words(*words_beside(said, laid.cells, laid.run, laid.others))
        words = _block("application/gzip+base64", "words", told)
    library = "" if laid.run is None else markdown_block()
    index, *chunks = _blocks(laid, LIMIT - sum(map(len, (markup, script, words, library))), beyond)
    # The script before the chunks: it shows the table while the browser still reads them.
    program = f"<script>{script}</script>\n"
    return "".join([markup.removesuffix(END), words, index, program, library, *chunks, END])


@cache
def markdown_block() -> str:
    """Return the library with which the script of a page shows Markdown: an element that no browser runs."""
    return _block("application/gzip+base64", "markdown", compressed(json.dumps(template.markdown_library())))


def effects_of(report: Report) -> dict[str, EffectRow]:
    """Return what each lesson was found to do, by id; empty where nothing was estimated."""
    attribution = report.get("attribution")
    return {row["id"]: row for row in attribution["lessons"]} if attribution else {}


def _blocks(laid: Layout, room: int, beyond: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the data of the page as elements that no browser runs: the index, then the chunks."""
    cells, run, known = laid.cells, laid.run, laid.others
    room -= len(payload.script_json(payload.index(laid, Packed(), beyond)))
    packed, theirs = Packed(), []
    if run is not None:
        room -= len(payload.script_json(sides_index(laid, run, [Packed()] * len(known), 0)))
        kept = shown_first(known, run)
        theirs = pack_beside(known, room, kept)
        chunks = [chunk for one in theirs for chunk in one.chunks]
        packed = pack(cells, run, room - sum(map(len, chunks)), kept)
    index = payload.index(laid, packed, beyond)
    if run is not None and (known or laid.alone):
        index["compare"] = sides_index(laid, run, theirs, len(packed.chunks))
    yield _block("application/json", "index", payload.script_json(index))
    for n, chunk in enumerate([*packed.chunks, *(chunk for one in theirs for chunk in one.chunks)]):
        yield _block("application/gzip+base64", f"chunk-{n}", chunk)


def _block(kind: str, id_: str, content: str) -> str:
    return f'<script type="{kind}" id="{id_}">{content}</script>\n'
