"""The block `placebo`: what a gain is over any text in the place of lessons."""

from __future__ import annotations

from pytest_tfgrpo.core.report_blocks import PlaceboBlock, PlaceboChange
from pytest_tfgrpo.core.texts.text import interval, number, plural, scenarios_of
from pytest_tfgrpo.metrics.placebo import IMPOSSIBLE, placebo_block
from pytest_tfgrpo.report.blocks.block import ReportBlock

NAMES = {"characters": "characters of an answer", "cut": "answers cut at max_tokens", "tokens": "tokens"}


def _text(found: PlaceboBlock) -> str:
    over, own = found["over"], found["gain"]
    if not found["possible"]:
        return IMPOSSIBLE if found["impossible"] else "no prompt of the final sweep carried a lesson"
    if found["total"] is None or over["difference"] is None or own["difference"] is None:
        return "no scenario has a score in all three sweeps"
    span = f"95 % interval {interval(over['ci95'], '+.3f')}" if over["ci95"] else "too few for an interval"
    p = "" if found["p"] is None else f", p {'< 0.001' if found['p'] < 0.001 else number(found['p'])}"
    text = (
        f"gain {found['total']:+.3f} over {found['beside']}, "
        f"{over['difference']:+.3f} over placebo ({span}{p}, "
        f"{scenarios_of(over['n'], over['families'], over['just_these'])}), "
        f"which gains {own['difference']:+.3f} itself"
    )
    if found["gain_side"] == "better" and found["side"] != "better":
        text += "; any text does this"
    if found["impossible"]:
        text += f"; {plural(found['impossible'], 'scenario')} had no other lessons for a placebo"
    return text


def changes(found: PlaceboBlock) -> str:
    """Return what a placebo changed in answers, in words."""
    return ", ".join(filter(None, map(_change, found["changed"]))) or "answers as long as before"


def _change(one: PlaceboChange) -> str:
    scale, unit = (100, " %") if one["what"] == "cut" else (1, "")
    ends = ["?" if end is None else f"{scale * end:.0f}{unit}" for end in (one["before"], one["placebo"])]
    return f"{NAMES[one['what']]} {' to '.join(ends)}" if ends[0] != ends[1] else ""


PLACEBO = ReportBlock("placebo", lambda at: placebo_block(at.run, at.sweeps), _text, always=lambda *_: True)
