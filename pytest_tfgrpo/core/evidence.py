"""Evidence: attempts at tasks that somebody else made and rewarded, from which an epoch learns.

A file of it (`tfgrpo.evidence/1`) has a header and then a line for each group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Literal

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import SHARES, SPARSE, Json, to_wire

EVIDENCE = "tfgrpo.evidence/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceStep:
    """One call of an attempt."""

    kind: Literal["model", "tool"]
    name: str
    input: Json = field(default=None, metadata=SPARSE)
    output: str = ""
    error: str | None = field(default=None, metadata=SPARSE)
    latency_ms: float = field(default=0.0, metadata=SPARSE)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceAttempt:
    """One attempt at a task, with its reward."""

    total_reward: float = field(metadata=SHARES)
    answer: str
    trajectory_id: str = field(default="", metadata=SPARSE)
    steps: tuple[EvidenceStep, ...] = field(default=(), metadata=SPARSE)
    lessons: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Ids of the lessons that the agent had."""
    ended: str = field(default="", metadata=SPARSE)
    """ISO 8601 in UTC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceGroup:
    """Two or more attempts at one task."""

    domain: str
    """Of the suite, which has the prompt pack."""
    prompt: str
    """The task of the agent."""
    attempts: tuple[EvidenceAttempt, ...]
    id: str = field(default="", metadata=SPARSE)
    task_key: str | None = field(default=None, metadata=SPARSE)
    model: str | None = field(default=None, metadata=SPARSE)
    policy_version: str | None = field(default=None, metadata=SPARSE)

    @property
    def key(self) -> str:
        """Its id, or a hash of what it is."""
        return self.id or stamp(to_wire(self))[:16]


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceHeader:
    """Where evidence comes from."""

    created_at: str = field(default="", metadata=SPARSE)
    filter: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """What attempts had to be to get in."""
    sample_size: int | None = field(default=None, metadata=SPARSE)
    seed: int = field(default=0, metadata=SPARSE)
    watermark: Mapping[str, int] = field(default_factory=dict, metadata=SPARSE)
    """The last event of each stream that was read."""
    counts: Mapping[str, Json] = field(default_factory=dict, metadata=SPARSE)
    """Trajectories read, attempts and groups kept, and attempts left out by reason."""


def evidence_lines(header: EvidenceHeader, groups: Iterable[EvidenceGroup]) -> Iterator[str]:
    """Yield the lines of an evidence file."""
    yield _line({"schema": EVIDENCE, **to_wire(header)})
    for group in groups:
        yield _line(to_wire(group))


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
