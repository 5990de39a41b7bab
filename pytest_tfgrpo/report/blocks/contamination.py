"""The block `contamination`: what two splits share, and answers that stand in prompts or lessons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from pytest_tfgrpo.core.report_blocks import Counts, Report
from pytest_tfgrpo.core.texts.text import line, wrapped
from pytest_tfgrpo.report.blocks.block import ReportBlock


class Contaminated(TypedDict):
    """What was found, with ``contamination=warn``."""

    found: int
    kinds: Counts
    findings: list[dict[str, Any]]


def _warnings(found: Contaminated) -> Iterator[str]:
    if found["found"]:
        kinds = ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in found["kinds"].items())
        yield (
            f"contamination: {found['found']} found ({kinds}); the first: {found['findings'][0]['text']}; "
            "results on such splits are less reliable than they look"
        )


def contamination_lines(report: Report, width: int) -> Iterator[str]:
    """Yield the findings for the terminal."""
    found = CONTAMINATION.of(report)
    for finding in found["findings"] if found else ():
        yield from wrapped(f"contamination: {line(finding['text'], 600)}", width, hanging="  ")


CONTAMINATION = ReportBlock(
    "contamination", lambda at: at.run.preflight.get("contamination"), warnings=_warnings, null=True
)
