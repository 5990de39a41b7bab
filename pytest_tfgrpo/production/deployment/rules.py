"""What the figures of a ramp demand: roll the version back, hold the ramp, wait, or go on."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from pytest_tfgrpo.production.deployment.deployed_events import later
from pytest_tfgrpo.production.deployment.serving import Ramp
from pytest_tfgrpo.production.deployment.sessions import REWARD_MIN
from pytest_tfgrpo.production.deployment.tallies import (
    ERROR_LEVEL,
    ERRORS,
    SAFETY_LEVEL,
    RampFigures,
    RewardCounts,
)

DROP = 0.05
"""Mean reward below the control's by which a version is worse (decision 34)."""
LEAST = 30
"""Sessions of each arm that a step takes."""
SLOWER, LEAST_TIMED = 1.5, 200
"""Ratio of the 95th percentiles above which a version is slow, and the sessions of each arm that it takes."""
VIOLATION = "safety: a violation was confirmed"


class RampAlarm(NamedTuple):
    """A rule that is broken."""

    action: Literal["roll_back", "hold"]
    reason: str


def alarm_of(found: RampFigures) -> RampAlarm | None:
    """Return the gravest alarm; None where all rules hold."""
    if found.violations:
        return RampAlarm("roll_back", VIOLATION)
    if found.blocked_odds >= math.log(1.0 / SAFETY_LEVEL):
        arms = f"{found.blocked.canary:g} users against {found.blocked.control:g} of the control"
        return RampAlarm("roll_back", f"safety: blocked more often, {arms}")
    limit = math.log(1.0 / ERROR_LEVEL)
    rates = f"{found.error_rate.canary:.3f} of the sessions, control {found.error_rate.control:.3f}"
    if found.error_evidence >= limit and found.error_odds >= limit:
        return RampAlarm("roll_back", f"errors: {rates}")
    if found.high < 0.0 and found.difference < -DROP:
        bounds = f"{found.difference:+.3f}, at most {found.high:+.3f}"
        return RampAlarm("roll_back", f"reward: {bounds} against the control")
    if min(found.step_evidence) >= limit:
        return RampAlarm("hold", f"errors in both arms: {rates}")
    if _is_slow(found):
        times = f"{found.p95_s.canary:.3g} s, control {found.p95_s.control:.3g} s"
        return RampAlarm("hold", f"latency: 95th percentile {times}")
    return None


def hold_is_over(found: RampFigures) -> bool:
    """Return whether the newest sessions show that what the monitor held for has ended."""
    return max(found.recent_rate) <= ERRORS and not _is_slow(found)


def _is_slow(found: RampFigures) -> bool:
    return min(found.timed) >= LEAST_TIMED and found.p95_s.canary > SLOWER * found.p95_s.control


def waits_for(ramp: Ramp, found: RampFigures, now: str) -> str:
    """Return what the next step of a ramp without an alarm waits for; empty where it is due."""
    due = later(ramp.since, ramp.waits_min[ramp.step])
    missing = [
        f"{LEAST - count:g} more sessions of the {arm}"
        for arm, count in found.counts.fresh._asdict().items()
        if count < LEAST
    ]
    if missing and any(found.counts.unrewarded):
        missing.append(_unrewarded(found.counts))
    return "; ".join(([f"{due}"] if now < due else []) + missing)


def _unrewarded(found: RewardCounts) -> str:
    """Return what keeps sessions that have settled from counting."""
    said = (
        f"{sum(found.unrewarded):g} that settled have no reward ({found.unrewarded.canary:g} of the canary)"
    )
    hours = f"{REWARD_MIN / 60.0:g} hours"
    if late := sum(found.too_late):
        return f"{said}: of {late:g} it came more than {hours} later, which does not count"
    return f"{said}, which counts if it comes within {hours}"
