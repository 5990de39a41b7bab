"""Where a run may go from where it stands, and why an event is refused; both are closed sets."""

from __future__ import annotations

from enum import StrEnum

from pytest_tfgrpo.production.live.records import LiveStatus
from pytest_tfgrpo.storage.states import StateTable

RUNS: StateTable[LiveStatus, LiveStatus] = StateTable(
    {
        (LiveStatus.RUNNING, end): (end, "")
        for end in (LiveStatus.SUCCEEDED, LiveStatus.FAILED, LiveStatus.CANCELLED)
    }
)
"""Of runs and of attempts, which every end leads to its own state; the store's triggers are made from it."""

EVENTS_LOST = "events_lost"
"""Reason of a run some of whose events the queue had no room for: it is never used."""
HELD = "held"
"""Reason of a run that was open when the guard held (decision 23)."""
RETRIED = "retried"
"""Reason of an attempt that another one follows."""
UNKNOWN_ARM = "unknown_arm"
"""Why an update leaves out a run of an arm that its process does not have: the run waits for one that has it,
until it is stale."""
TIMEOUT = "timeout"
"""Reason of a run without events for too long."""


class RefusedEvent(StrEnum):
    """Why an event is not in the store; each is counted."""

    AFTER_END = "after_end"
    COST_NOT_A_NUMBER = "cost_usd_not_a_number"
    """What is no number from 0 up; the run ends without it, as with the next."""
    DUPLICATE = "duplicate"
    HELD = HELD
    LATENCY_NOT_A_NUMBER = "latency_ms_not_a_number"
    LOST = EVENTS_LOST
    MALFORMED = "malformed"
    NO_ATTEMPT = "no_attempt"
    """Of an attempt that nothing has opened."""
    REWARD_NOT_A_NUMBER = "reward_not_a_number"
    """NaN, or no number at all."""
    REWARD_OUT_OF_RANGE = "reward_out_of_range"
    REWARD_TWICE = "reward_twice"
    REWARD_USED = "reward_used"
    """For a run that an update has used."""
    STALE_ATTEMPT = "stale_attempt"
    UNKNOWN_RUN = "unknown_run"
