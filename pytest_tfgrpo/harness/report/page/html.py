"""The report as one self-contained HTML page: readable without scripts, and with them down to every call."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import EffectRow, Report
from pytest_tfgrpo.harness.report.page import draw, figures, payload, template
from pytest_tfgrpo.harness.report.page.grid import Grid, grid
from pytest_tfgrpo.harness.report.page.history import history
from pytest_tfgrpo.harness.report.page.trajectories import Packed, pack

LIMIT = 14_000_000
"""Maximum bytes of a page, unless it needs more without trajectories."""


PLAIN_ROWS = 400
"""Scenarios in the table that is shown without scripts and on paper."""


END = "</body>\n</html>"


def html(report: Report, run: Run | None = None, compare: Mapping[str, Any] | None = None) -> str:
    """Return the page of a report value.

    With its `run` the page opens down to trajectories; `compare` is how it compares with another run, as
    ``versus`` tells it. Equal values give equal pages.
    """
    style, script = template.style(), template.script()
    cells = grid(report, run)
    effects = effects_of(report)
    markup = template.fill(
        report=report,
        compare=compare,
        curve=draw.curve(report["epochs"], (compare or {}).get("epochs", ())),
        domains=draw.domains(cells),
        histograms=draw.histograms(cells),
        grid=cells,
        plain=cells.telling(PLAIN_ROWS),
        history=[] if run is None else history(run, effects),
        effects=effects,
        tools=figures.tools(report),
        faults=figures.faults(report, run),
        trusted=any(report.get(key) for key in figures.CAVEATS),
        most=figures.MOST,
        further=figures.further(report),
        style=style,
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'",
    )
    return "".join([markup.removesuffix(END), *_blocks(report, run, cells, LIMIT - len(markup) - len(script)),
                    f"<script>{script}</script>\n", END])  # fmt: skip


def effects_of(report: Report) -> dict[str, EffectRow]:
    """Return what each lesson was found to do, by id; empty where nothing was estimated."""
    attribution = report.get("attribution")
    return {row["id"]: row for row in attribution["lessons"]} if attribution else {}


def _blocks(report: Report, run: Run | None, cells: Grid, room: int) -> Iterator[str]:
    """Yield the data of the page as elements that no browser runs."""
    room -= len(payload.script_json(payload.index(cells, report, run, Packed())))
    packed = Packed() if run is None else pack(cells, run, room)
    yield _block("application/json", "index", payload.script_json(payload.index(cells, report, run, packed)))
    for n, chunk in enumerate(packed.chunks):
        yield _block("application/gzip+base64", f"chunk-{n}", chunk)


def _block(kind: str, id: str, content: str) -> str:
    return f'<script type="{kind}" id="{id}">{content}</script>\n'


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
