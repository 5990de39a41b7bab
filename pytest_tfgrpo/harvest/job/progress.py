"""Progress: what the workers of a harvest do right now, and how long the rest may take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.fixes import HarvestRow, HarvestStatus
from pytest_tfgrpo.harvest.proof.validation import ORDER, ROUNDS


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningCandidate:
    """The candidate that a worker validates."""

    number: int
    """Which of the changes it is, from 1."""
    id: str
    began_s: float
    """When its work began, by the monotonic clock."""
    stage: str = "files"
    """``files``, ``environment``, ``runs`` or ``prompt``."""
    run: int = 0
    """Which run of its tests goes on, from 1."""
    runs: int = 0
    """How many there are, unless it is clear before."""
    tests_s: float = 0.0
    """When the first run began."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestEstimate:
    """About how long a harvest will take, and from what that is known."""

    least_s: float
    most_s: float
    candidates: int
    """For how many: those not done yet."""
    basis: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HarvestReading:
    """What a harvest does at one moment."""

    at_s: float
    """By the monotonic clock."""
    total: int
    """Changes of the harvest."""
    running: tuple[RunningCandidate, ...]
    estimate: HarvestEstimate | None = None
    """Said once, as soon as it is known."""


class WorkerProgress:
    """What one worker does: its thread sets it, another one reads it."""

    def __init__(self) -> None:
        self.running: RunningCandidate | None = None
        self.round_s: float | None = None
        """Seconds of the first run on each tree, of the latest candidate that had them."""

    def begin(self, number: int, id_: str) -> None:
        """Begin with a candidate."""
        self.running = RunningCandidate(number=number, id=id_, began_s=time.monotonic())

    def enter(self, stage: str, runs: int = 0) -> None:
        """Begin a stage, which has so many runs of tests."""
        if self.running is not None:
            self.running = replace(self.running, stage=stage, run=0, runs=runs)

    def start_run(self) -> None:
        """Begin the next run of its tests."""
        if (now := self.running) is None:
            return
        at_s, run = time.monotonic(), now.run + 1
        began_s = at_s if run == 1 else now.tests_s
        if run == len(ORDER) + 1:
            self.round_s = at_s - began_s
        self.running = replace(now, run=run, tests_s=began_s)

    def end(self) -> None:
        """Wait for another candidate."""
        self.running = None


def estimate_from_rows(rows: Iterable[HarvestRow], candidates: int, jobs: int) -> HarvestEstimate | None:
    """Return how long `candidates` take if they are as those of earlier harvests; None without any."""
    known = [row.elapsed_s for row in rows if row.status is not HarvestStatus.SKIPPED and row.elapsed_s > 0]
    if not known or not candidates:
        return None
    mean = sum(known) / len(known)
    return HarvestEstimate(
        least_s=mean * candidates / jobs,
        most_s=mean * candidates / jobs,
        candidates=candidates,
        basis=f"{len(known)} of earlier harvests took {mean:.0f} s each",
    )


def estimate_from_round(workers: Sequence[WorkerProgress], candidates: int) -> HarvestEstimate | None:
    """Return how long `candidates` take if they are as the first whose first round of runs is over.

    At least they need that round, and its run after the fix again; at most all of its runs in each round.
    The environment is not counted: most share one.
    """
    round_s = next((worker.round_s for worker in workers if worker.round_s is not None), None)
    if round_s is None:
        return None
    each = round_s * candidates / len(workers)
    return HarvestEstimate(
        least_s=each * (1 + 1 / len(ORDER)),
        most_s=each * (ROUNDS + 1 / len(ORDER)),
        candidates=candidates,
        basis=f"the first {len(ORDER)} runs of one took {round_s:.0f} s",
    )
