"""The streams of the feedback loop: subjects, how long and how many (decision 33, amended)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.python.dataclass import dataclass

DAY_S = 86400.0
DEAD = "RL_DEAD"
"""The stream of the dead letters."""
DEAD_SUBJECT = "agent.rl.dead.v1"
AUDIT = "RL_AUDIT"
"""The stream of the audit."""
AUDIT_SUBJECT = "agent.rl.audit.v1"
"""Who read, decided, left out or forgot what, and when; never what it was."""
SPANS_SUBJECT = "agent.rl.spans.v1"
"""Spans of one trace, redacted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamSpec:
    """One stream; what is too old or too many goes, oldest first."""

    name: str
    subjects: tuple[str, ...]
    """Whole subjects."""
    max_age_s: float
    max_count: int | None = None
    """None: as many as there are."""
    pattern: str = ""
    """What a server listens to, where that is more than the subjects."""
    chained: bool = False
    """Whether each event is stored with the hash of the one before it."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the subjects as a server has them."""
        return (self.pattern,) if self.pattern else self.subjects


STREAMS = (
    StreamSpec(name="RL_SPANS", subjects=(SPANS_SUBJECT,), max_age_s=DAY_S, max_count=1_000_000),
    StreamSpec(
        name="RL_TRAJECTORIES",
        subjects=("agent.rl.trajectory.v1",),
        max_age_s=30 * DAY_S,
        max_count=1_000_000,
    ),
    StreamSpec(
        name="RL_FEEDBACK", subjects=("agent.rl.feedback.v1",), max_age_s=30 * DAY_S, max_count=1_000_000
    ),
    StreamSpec(
        name="RL_REWARDS", subjects=("agent.rl.reward.v1",), max_age_s=30 * DAY_S, max_count=1_000_000
    ),
    StreamSpec(
        name="RL_TRAINING",
        subjects=("agent.rl.training.request.v1", "agent.rl.training.status.v1"),
        pattern="agent.rl.training.>",
        max_age_s=7 * DAY_S,
        max_count=10_000,
    ),
    StreamSpec(name="RL_DEPLOYMENTS", subjects=("agent.rl.model.deployed.v1",), max_age_s=90 * DAY_S),
    StreamSpec(name=DEAD, subjects=(DEAD_SUBJECT,), max_age_s=30 * DAY_S, max_count=100_000),
    StreamSpec(name=AUDIT, subjects=(AUDIT_SUBJECT,), max_age_s=365 * DAY_S, chained=True),
)
"""What is kept by default (decision 33, amended)."""


def by_subject(streams: Sequence[StreamSpec]) -> Mapping[str, StreamSpec]:
    """Return the stream of each subject."""
    return {subject: stream for stream in streams for subject in stream.subjects}


def named(streams: Sequence[StreamSpec], name: str) -> StreamSpec:
    """Return a stream by its name; raises BusError, which lists the names."""
    for stream in streams:
        if stream.name == name:
            return stream
    raise BusError(f"there is no stream {name!r}; there are {', '.join(stream.name for stream in streams)}")
