"""The states of a job, and when a person is needed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.storage.states import StateTable

LearningTrigger: TypeAlias = Literal[
    "capture", "propose", "refuse", "miss", "take", "stop", "lose", "give_up", "prove", "disprove", "stall",
    "defer", "requeue",
]  # fmt: skip
"""What happens to a job: `miss` is a snapshot that failed three times, `propose` an agent's own idea, `lose`
a lost lease, `give_up` the third in a row, `stop` a worker that lets go of it, `defer` a scenario that a
person has to complete."""
PERSON = "person"
"""Owed by a transition after which nothing happens without a person: an alert."""
NEW = ""
"""Before a job is in the queue."""
LEASES = 3
"""Leases that may be lost in a row, the last of which ends a job."""

_QUEUED, _RUNNING = LearningStatus.QUEUED, LearningStatus.RUNNING
JOBS: StateTable[str, LearningTrigger] = StateTable(
    {
        (NEW, "capture"): (_QUEUED, ""),
        (NEW, "propose"): (_QUEUED, PERSON),
        (NEW, "refuse"): (LearningStatus.REFUSED, ""),
        (NEW, "miss"): (LearningStatus.SNAPSHOT_FAILED, PERSON),
        (_QUEUED, "take"): (_RUNNING, ""),
        (_RUNNING, "stop"): (_QUEUED, ""),
        (_RUNNING, "lose"): (_QUEUED, ""),
        (_RUNNING, "give_up"): (LearningStatus.VALIDATION_FAILED, PERSON),
        (_RUNNING, "prove"): (LearningStatus.VALIDATED, ""),
        (_RUNNING, "disprove"): (LearningStatus.VALIDATION_FAILED, ""),
        (_RUNNING, "stall"): (LearningStatus.STALLED_SNAPSHOT, PERSON),
        (_RUNNING, "defer"): (LearningStatus.NEEDS_MANUAL, PERSON),
        (LearningStatus.SNAPSHOT_FAILED, "requeue"): (_QUEUED, ""),
        (LearningStatus.STALLED_SNAPSHOT, "requeue"): (_QUEUED, ""),
        (LearningStatus.NEEDS_MANUAL, "requeue"): (_QUEUED, ""),
        (LearningStatus.VALIDATION_FAILED, "requeue"): (_QUEUED, ""),
    }
)
_FROM = {
    trigger: ", ".join(sorted(state or "nothing" for state, each in JOBS.rows if each == trigger))
    for _, trigger in JOBS.rows
}
ENDED = frozenset(LearningStatus) - {_QUEUED, _RUNNING}
"""States in which no worker has anything to do."""


def first_trigger(status: LearningStatus, *, proposed: bool) -> LearningTrigger:
    """Return what brings a new job to `status`; raises ValueError where nothing does."""
    for (state, trigger), (after, _) in JOBS.rows.items():
        if state == NEW and after == status and (trigger == "propose") == (proposed and after == _QUEUED):
            return trigger
    known = sorted({after for (state, _), (after, _) in JOBS.rows.items() if state == NEW})
    raise ValueError(f"a new job cannot be {status.value!r}; it begins as one of {', '.join(known)}")


def leads_to(status: str, trigger: LearningTrigger) -> LearningStatus:
    """Return where a trigger leads from a status; raises ValueError where that is not in the table."""
    after = JOBS.after(status, trigger)
    if after is None:
        raise ValueError(f"it is {str(status)!r}, and {trigger!r} leads on only from {_FROM[trigger]}")
    return LearningStatus(after)


def needs_person(status: str, trigger: LearningTrigger) -> bool:
    """Return whether nothing happens without a person after a transition of the table."""
    return JOBS.rows[status, trigger][1] == PERSON
