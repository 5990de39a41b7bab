"""The blocks `noise` and `headroom`: what seeds alone change, and what a lesson can gain."""

from __future__ import annotations

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.metrics.noise import Noise, noise
from pytest_tfgrpo.report.blocks.block import BlockSources, ReportBlock
from pytest_tfgrpo.runs.headroom import Headroom, headroom, headroom_text


def _text(found: Noise) -> str:
    if found["difference"] is None:
        why = "each scenario ran once" if found["rollouts"] == 1 else "no scenario has two scored rollouts"
        return f"unknown: {why}; set eval_rollouts to 2 or more to measure the spread over seeds"
    scenarios = max(row["scenarios"] for row in found["sweeps"])
    text = (
        f"seed noise alone accounts for differences of up to {found['difference']:.3f} between runs of the "
        f"same library ({plural(scenarios, 'scenario')} x {plural(found['rollouts'], 'rollout')}; "
        f"std {found['seed_std']:.3f} with one rollout each)"
    )
    return text + ("; the gain is within this noise" if found["gain_within"] else "")


def _is_within(found: Noise, report: Report) -> bool:
    """Return whether the gain is within the noise, and no interval around 0 says that it may be."""
    gain = report["gain"]
    around_0 = gain is not None and gain["ci95"] is not None and gain["ci95"][0] <= 0 <= gain["ci95"][1]
    return bool(found["difference"] is not None and found["gain_within"]) and not around_0


def _headroom(at: BlockSources) -> Headroom | None:
    """Return the headroom; None before the first training groups, and where these were made elsewhere."""
    first = next((result for result in at.run.phases if result.phase.trains), None)
    return (
        None
        if first is None or not first.phase.asks
        else headroom(at.run.scenarios, at.run.settings, first.groups)
    )


HEADROOM = ReportBlock("headroom", _headroom, headroom_text)
NOISE = ReportBlock(
    "noise", lambda at: noise(at.sweeps, at.body["gain"]), _text, always=_is_within, null=True
)
