"""Caveats: what you must know before you trust a difference, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_tfgrpo.core.report_blocks import Gain, Report
from pytest_tfgrpo.core.texts.text import interval, line, number, plural, scenarios_of, wrapped
from pytest_tfgrpo.report.blocks import table
from pytest_tfgrpo.report.blocks.block import ReportBlock
from pytest_tfgrpo.report.blocks.placebo import PLACEBO

MARKDOWN_ITEMS = 20
"""Items that a line of details names in a summary."""


def told(report: Report) -> Iterator[tuple[ReportBlock[Any], Any, str]]:
    """Yield the blocks of a report that have a sentence, in order, each with its value and the sentence."""
    for block in table.BLOCKS:
        found = block.of(report)
        if found and (text := block.text(found)):
            yield block, found, text


def trust_lines(report: Report, width: int, *, every: bool) -> list[str]:
    """Return for the terminal what limits what the figures show; without `every` what nobody may miss."""
    lines = list[str]()
    for block, found, text in told(report):
        if every or block.always(found, report):
            lines += wrapped(f"{block.title}  {text}", width, hanging=" " * (len(block.title) + 2))
            for detail in block.details(found, lambda id_: line(str(id_), 60), None):
                lines += wrapped(detail, width, "  ", "    ")
    return lines


def trust_markdown(report: Report, escaped: Callable[[object], str]) -> list[str]:
    """Return the same for a summary; `escaped` makes Markdown of foreign text."""
    lines = list[str]()
    for block, found, text in told(report):
        lines.append(f"- {block.title.capitalize()}: {text}.")
        lines += [f"  - {detail}." for detail in block.details(found, escaped, MARKDOWN_ITEMS)]
    return lines


def over(gain: Gain) -> str:
    """Return what a gain is over: the baseline sweep, or that of a gate's reference."""
    asked = gain.get("control")
    reference = asked.get("reference") if asked is not None else None
    if reference is None:
        return "the baseline sweep"
    named = line(reference["name"], 80)
    kind = "" if named == reference["kind"] else f"{reference['kind']} "
    return f"the reference, {kind}{named} ({reference['stamp'][:12]})"


def control(gain: Gain) -> str:
    """Return when the baseline sweep ran, to follow the size of the sample; empty for older reports."""
    asked = gain.get("control")
    if asked is None:
        return ""
    if "reference" in asked and asked["asked"] == "early":
        return "; ran before the final sweep, so drift since then is part of it"
    if asked["asked"] == "early":
        return "; control ran before training, so drift since then is part of the gain"
    if not asked["shared"]:
        return "; control ran beside the final sweep"
    alike = plural(asked["shared"], "scenario", "has", "have")
    return f"; control ran beside the final sweep, where {alike} the same prompt and share the answers"


def drift(gain: Gain) -> str:
    """Return what the control changed by while the run lasted, in words; empty without an early part."""
    asked = gain.get("control")
    found = None if asked is None else asked["drift"]
    if found is None:
        return ""
    spread = (
        f"95 % interval {interval(found['ci95'], '+.3f')}" if found["ci95"] else "too few for an interval"
    )
    counted = scenarios_of(found["n"], found["families"], found["just_these"])
    return (
        f"{found['difference']:+.3f} without new lessons, from before training to the final sweep, {spread}, "
        f"{counted}; no part of the gain"
    )


def p_of(gain: Gain) -> str:
    """Return the p of a gain; empty where it has none."""
    p = gain["claim"]["p"] if gain["n"] and "claim" in gain else None
    return "" if p is None else "< 0.001" if p < 0.001 else number(p)


def claim(report: Report) -> str:
    """Return what may be claimed of the gain, and the test behind it; empty without a gain."""
    gain = report["gain"]
    found = gain.get("claim") if gain and gain["n"] else None
    if found is None:
        return ""
    labels = report.get("labels")
    if labels is not None and labels["gain"] is not None:
        side = f"this library does {labels['claim']}" if labels["claim"] else "nothing yet about this library"
        placebo = _beside_placebo(report) if labels["claim"] == "better" else ""
        return f"by people's labels, {side} (p below {labels['level']:.3g} is needed){placebo}"
    needed = f"below {found['level']:.3g} is needed"
    if found["looks"] > 1:
        needed += f" after {found['looks']} variants on this eval split"
    known = f": p {told}" if gain and (told := p_of(gain)) else ""
    if "over_nothing" in found:
        return f"nothing yet about this library beyond placebo{known} ({needed}){_beside_placebo(report)}"
    if found["side"] is None:
        fresh = "; a fresh split allows 0.05" if found["looks"] > 1 else ""
        return f"nothing yet about this library{known} ({needed}, and an interval beside 0){fresh}"
    placebo = _beside_placebo(report) if found["side"] == "better" else ""
    return f"this library does {found['side']}{known} ({needed}); tfgrpo replicate tests the method{placebo}"


def _beside_placebo(report: Report) -> str:
    """Return what a placebo adds to a claim of a gain, at the end of its sentence."""
    placebo = PLACEBO.of(report)
    if placebo is None:
        return "; no placebo was run"
    if not placebo["possible"]:
        return "; placebo not possible"
    p = "unknown" if placebo["p"] is None else "< 0.001" if placebo["p"] < 0.001 else number(placebo["p"])
    return f"; over placebo p {p}"
