"""The states of a training job, and the event that each transition owes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pytest_tfgrpo.core.events import TRAINING_STATUS
from pytest_tfgrpo.storage.states import StateTable

JobState: TypeAlias = Literal["", "queued", "running", "completed", "failed", "cancelled"]
"""Empty before the request was seen."""
JobTrigger: TypeAlias = Literal["request", "start", "resume", "finish", "fail", "cancel"]
"""``resume``: another process goes on with it."""
KIND = "training"
JOBS: StateTable[JobState, JobTrigger] = StateTable(
    {
        ("", "request"): ("queued", TRAINING_STATUS),
        ("queued", "start"): ("running", TRAINING_STATUS),
        ("queued", "cancel"): ("cancelled", TRAINING_STATUS),
        ("queued", "fail"): ("failed", TRAINING_STATUS),
        ("running", "resume"): ("running", TRAINING_STATUS),
        ("running", "finish"): ("completed", TRAINING_STATUS),
        ("running", "fail"): ("failed", TRAINING_STATUS),
        ("running", "cancel"): ("cancelled", TRAINING_STATUS),
    }
)
