"""What the figures of a ramp demand, as a table."""

import math
from dataclasses import replace
from typing import Any

import pytest
from support.deployments import NOON, SINCE, minute, ramp_of

from pytest_tfgrpo.production.deployment.rules import alarm_of, hold_is_over, waits_for
from pytest_tfgrpo.production.deployment.tallies import ArmPair, RampFigures, RewardCounts

FIFTY, HUNDRED = math.log(50) + 1e-9, math.log(100) + 1e-9
GOOD = RampFigures(
    counts=RewardCounts(fresh=ArmPair(30, 30)), error_rate=ArmPair(0.08, 0.03), recent_rate=ArmPair()
)
BOTH = {"step_evidence": ArmPair(FIFTY, FIFTY)}
WORSE = {"difference": -0.06, "high": -0.001}


@pytest.mark.parametrize(
    ("changes", "action", "reason"),
    [
        ({}, "", ""),
        (WORSE, "roll_back", "reward: -0.060, at most -0.001 against the control"),
        (WORSE | {"high": 0.0}, "", ""),
        (WORSE | {"difference": -0.05}, "", ""),
        ({"error_evidence": FIFTY, "error_odds": FIFTY}, "roll_back", "errors: 0.080 of the"),
        ({"error_evidence": FIFTY}, "", ""),
        ({"error_odds": FIFTY}, "", ""),
        ({"error_evidence": FIFTY - 0.1, "error_odds": FIFTY}, "", ""),
        (BOTH, "hold", "errors in both arms: 0.080 of the sessions"),
        ({"step_evidence": ArmPair(FIFTY, 1.0)}, "", ""),
        ({"step_evidence": ArmPair(1.0, FIFTY)}, "", ""),
        ({"blocked_odds": HUNDRED, "blocked": ArmPair(6, 1)}, "roll_back", "6 users against 1 of"),
        ({"blocked_odds": FIFTY}, "", ""),
        ({"violations": 1}, "roll_back", "safety: a violation was confirmed"),
        ({"timed": ArmPair(200, 200), "p95_s": ArmPair(1.6, 1.0)}, "hold", "percentile 1.6 s, control 1 s"),
        ({"timed": ArmPair(200, 200), "p95_s": ArmPair(1.5, 1.0)}, "", ""),
        ({"timed": ArmPair(199, 900), "p95_s": ArmPair(9.0, 1.0)}, "", ""),
        ({"timed": ArmPair(900, 199), "p95_s": ArmPair(9.0, 1.0)}, "", ""),
        (BOTH | {"error_evidence": FIFTY, "error_odds": FIFTY}, "roll_back", ""),
        (BOTH | WORSE, "roll_back", "reward"),
    ],
)  # fmt: skip
def test_the_gravest_alarm_counts(changes: dict[str, Any], action: str, reason: str) -> None:
    found = alarm_of(replace(GOOD, **changes))
    assert (found.action if found else "") == action
    assert reason in (found.reason if found else "")


@pytest.mark.parametrize(
    ("changes", "over"),
    [
        ({"recent_rate": ArmPair(0.05, 0.05)}, True),
        ({"recent_rate": ArmPair(0.06, 0.0)}, False),
        ({"recent_rate": ArmPair(0.0, 1.0)}, False),
        ({"timed": ArmPair(200, 200), "p95_s": ArmPair(1.6, 1.0)}, False),
    ],
)
def test_a_hold_of_the_monitor_ends_with_its_cause(changes: dict[str, Any], over: bool) -> None:
    assert hold_is_over(replace(GOOD, **changes)) is over


@pytest.mark.parametrize(
    ("minute", "fresh", "waits"),
    [
        (60, (30, 30), ""),
        (59, (30, 30), SINCE[60]),
        (60, (29, 900), "1 more sessions of the canary"),
        (90, (3, 2), "27 more sessions of the canary; 28 more sessions of the control"),
        (0, (0, 30), f"{SINCE[60]}; 30 more sessions of the canary"),
    ],
)
def test_a_step_waits_for_its_time_and_for_sessions_and_says_so(
    minute: int, fresh: tuple[int, int], waits: str
) -> None:
    found = replace(GOOD, counts=RewardCounts(fresh=ArmPair(*fresh)))
    assert waits_for(ramp_of(since=NOON), found, SINCE[minute]) == waits


def test_a_step_takes_its_own_time_from_when_it_began() -> None:
    third = ramp_of(began=(NOON, SINCE[60], SINCE[90]), since=SINCE[90])
    assert waits_for(third, GOOD, minute(209)) == minute(90 + 120)
    assert waits_for(third, GOOD, minute(210)) == ""


@pytest.mark.parametrize(
    ("unrewarded", "said"),
    [
        (ArmPair(0, 2), "; 2 that settled have no reward (0 of the canary), which counts if it comes within"),
        (ArmPair(3, 0), "; 3 that settled have no reward (3 of the canary), which counts if it comes within"),
        (ArmPair(), "1 more sessions of the canary"),
    ],
)
def test_sessions_of_either_arm_that_have_no_reward_are_named(unrewarded: ArmPair, said: str) -> None:
    found = replace(GOOD, counts=RewardCounts(fresh=ArmPair(29, 30), unrewarded=unrewarded))
    waits = waits_for(ramp_of(since=NOON), found, SINCE[60])
    assert said in waits
    assert ("no reward" in waits) is any(unrewarded)
