"""The block `endpoints` of a report: where concurrency that adapts settled."""

from __future__ import annotations

from typing import TypedDict, cast

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.texts.text import line, plural, wrapped
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock


class EndpointRow(TypedDict):
    """An endpoint whose concurrency adapted."""

    endpoint: str
    concurrency: int
    lowest: int
    highest: int
    found: bool
    calls: int
    refused: int


def _value(at: BlockSources) -> list[EndpointRow] | None:
    return cast("list[EndpointRow]", to_wire(at.run.endpoints)) or None


def endpoint_texts(report: Report) -> list[str]:
    """Return what was found out about each endpoint, in words."""
    return [_text(row) for row in ENDPOINTS.of(report) or ()]


def endpoint_lines(report: Report, width: int) -> list[str]:
    """Return the same as lines of the terminal."""
    return [
        part
        for text in endpoint_texts(report)
        for part in wrapped(f"endpoint  {text}", width, hanging=" " * 10)
    ]


def _text(row: EndpointRow) -> str:
    name = line(row["endpoint"], 64)
    if row["found"]:
        spread = f" ({row['lowest']} to {row['highest']})" if row["lowest"] < row["highest"] else ""
        settled = f"settled at {plural(row['concurrency'], 'call')} at once{spread}"
    else:
        settled = f"no limit found up to {plural(row['concurrency'], 'call')} at once"
    refused = f"{row['refused']} of {plural(row['calls'], 'call')} refused as too many"
    return f"{name}: {settled}; {refused if row['refused'] else 'none refused as too many'}"


ENDPOINTS = ReportBlock("endpoints", _value, caveat=False)
