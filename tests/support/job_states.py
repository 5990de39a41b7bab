"""A table of states for tests: jobs whose transitions owe events of RL_TRAINING."""

from __future__ import annotations

from pytest_tfgrpo.storage.event_store import EventStore
from pytest_tfgrpo.storage.kept_states import KeptStates
from pytest_tfgrpo.storage.states import StateTable

JOB_STREAM, JOB_SUBJECT = "RL_TRAINING", "agent.rl.training.status.v1"
NOON = "2026-01-01T12:00:00Z"
JOBS: StateTable[str, str] = StateTable(
    {
        ("", "request"): ("queued", JOB_SUBJECT),
        ("queued", "start"): ("running", JOB_SUBJECT),
        ("queued", "cancel"): ("cancelled", JOB_SUBJECT),
        ("running", "lose"): ("queued", ""),
        ("running", "finish"): ("completed", JOB_SUBJECT),
        ("running", "cancel"): ("cancelled", JOB_SUBJECT),
    }
)


def jobs(store: EventStore, owner: str = "one", table: StateTable[str, str] = JOBS) -> KeptStates[str, str]:
    """Return where jobs stand on a store, for one process."""
    return KeptStates(store, table, kind="job", start="", owner=owner)
