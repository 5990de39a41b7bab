"""The gauge of a run: what it does right now, read from another thread while the engine works.

The engine sets plain fields, which costs a rollout about a microsecond; whoever draws them makes a reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Phase, Rollout
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, EndpointState, adaptive_slots
from pytest_tfgrpo.llm.protocol import Completer
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.batch.batches import Batches, BatchProgress

RunStage = Literal["starting", "sweep", "learning"]
Shared: TypeAlias = Mapping[int, Mapping[str, int]]
"""Of a sweep by epoch, the epoch of the one whose answers serve it too, by scenario id."""
NOTHING_SHARED: Shared = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepReading:
    """How far a sweep is at one moment."""

    planned: int = 0
    done: int = 0
    """Rollouts that are there; an answer that serves several sides of a pair is one of each."""
    free: int = 0
    """Of those to come, how many no agent makes: the other side's answers serve them."""
    failed: int = 0
    errors: int = 0
    mean: float | None = None
    """Mean gt_score of the scored groups."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptsReading:
    """The attempts of a run at one moment."""

    ages_s: tuple[float, ...]
    """How long each attempt in flight has taken so far."""
    mean_s: float | None
    """Mean time of those that ended; None while none has."""
    longest_s: float
    """The longest time of one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a run does at one moment."""

    at_s: float
    """Seconds since the run began."""
    stage: RunStage
    step: int
    """Which of the steps of the run goes on, from 1; 0 before the first."""
    phase: Phase | None
    """The sweep that goes on or has just ended; of a pair the final one."""
    sweep: SweepReading
    attempts: AttemptsReading
    after_s: float | None
    """Mean time from the end of a training sweep to the end of its epoch; None while none has ended."""
    since_s: float
    """Seconds since the stage began; since its sweep ended while an epoch learns and is tried."""
    groups: int
    """Groups with mixed results that the epoch learns from."""
    asked: Mapping[str, int]
    """Calls in flight besides rollouts, by purpose."""
    answered: int
    """Calls answered since the stage began."""
    spent_usd: float
    limits: Mapping[str, tuple[float, float]]
    """Of each budget that is set, what is spent and what is allowed, by unit."""
    allowed: tuple[EndpointState, ...] = ()
    """Endpoints of models whose concurrency adapts, once they were called."""
    batches: tuple[BatchProgress, ...] = ()
    """Batches that are waited for."""


class SweepCount:
    """Counts the rollouts of one sweep, or of all sides of a pair."""

    def __init__(
        self,
        arms: Sequence[Phase] = (),
        shared: Shared = NOTHING_SHARED,
        settled: Sized = (),
        done: Sequence[Group] = (),
    ) -> None:
        """Of the `arms` the last is the final one; the groups `done` are there already."""
        self._arms, self._shared, self._settled = tuple(arms), shared, settled
        self._served = sum(len(group.rollouts) * (group.shared + group.as_placebo) for group in done)
        self.done = self._served + sum(len(group.rollouts) for group in done)
        self._failed = self._errors = self._scored = 0
        self._gt_sum = 0.0

    def finish(self, rollout: Rollout) -> None:
        """Count a rollout with its checks."""
        serves = sum(ids.get(rollout.scenario_id) == rollout.epoch for ids in self._shared.values())
        self._served += serves
        self.done += 1 + serves
        self._failed += rollout.status == "failed"
        self._errors += rollout.status == "error"

    def score(self, group: Group) -> None:
        """Count the scores of a group; of a pair only those of the final side."""
        if group.epoch == self._arms[-1].epoch:
            known = [score.gt_score for score in group.scores if score.gt_score is not None]
            self._scored += len(known)
            self._gt_sum += sum(known)

    def read(self) -> SweepReading:
        """Return how far the sweep is; which rollouts serve both sides shows on the way."""
        planned = sum(arm.planned for arm in self._arms)
        twice = sum(arm.rollouts * len(self._shared.get(arm.epoch, ())) for arm in self._arms[:-1])
        return SweepReading(
            planned=planned - sum(arm.rollouts for arm in self._arms) * len(self._settled),
            done=self.done,
            free=max(twice - self._served, 0),
            failed=self._failed,
            errors=self._errors,
            mean=self._gt_sum / self._scored if self._scored else None,
        )


class AttemptTimes:
    """How long the attempts of a run take."""

    def __init__(self) -> None:
        """Know of none."""
        self._in_flight: dict[str, float] = {}
        self._count, self._sum_s, self._longest_s = 0, 0.0, 0.0

    def begin(self, rollout_id: str) -> None:
        """Say that an attempt begins."""
        self._in_flight[rollout_id] = monotonic()

    def end(self, rollout_id: str) -> None:
        """Say that an attempt has ended."""
        took_s = monotonic() - self._in_flight.pop(rollout_id)
        self._count += 1
        self._sum_s += took_s
        if took_s > self._longest_s:
            self._longest_s = took_s

    def read(self, now: float) -> AttemptsReading:
        """Return the times at `now`."""
        return AttemptsReading(
            ages_s=tuple(now - began for began in tuple(self._in_flight.values())),
            mean_s=self._sum_s / self._count if self._count else None,
            longest_s=self._longest_s,
        )


class Gauge:
    """What a run does; the engine writes, any thread reads."""

    def __init__(self) -> None:
        """Start the clock of the run."""
        self._began = monotonic()
        self._stage: RunStage = "starting"
        self._step = self._groups = 0
        self._since = self._began
        self._phase: Phase | None = None
        self._sweep = SweepCount()
        self.attempts = AttemptTimes()
        self._spent_usd = 0.0
        self._after: list[float] = []
        self._calls: Calls | None = None
        self._budget: Budget | None = None
        self._answered = 0
        self._slots: Sequence[AdaptiveSlots] = ()
        self._batches: Sequence[Batches] = ()

    def begin(
        self, budget: Budget, calls: Calls, resumed: JournalContents, models: Iterable[Completer] = ()
    ) -> None:
        """Say that the run begins, which has paid for what it resumes, and may call `models`."""
        models = tuple(models)
        self._slots = adaptive_slots(models)
        found = (getattr(model, "batches", None) for model in models)
        self._batches = [batches for batches in found if batches is not None]
        self._began = self._since = monotonic()
        self._budget, self._calls = budget, calls
        for rollout in chain(resumed.rollouts.values(), resumed.abandoned):
            self.pay(rollout)
        self._spent_usd += resumed.settled_cost.usd
        self._spent_usd += sum(call.cost_usd or 0.0 for call in resumed.calls.values())

    def enter(self, step: int) -> None:
        """Say that a step begins; the one before has ended."""
        if self._stage == "learning" or (self._phase is not None and self._phase.mode == "dev"):
            self._after.append(monotonic() - self._since)
        self._step, self._stage, self._phase, self._since = step, "starting", None, monotonic()

    def sweep(
        self,
        arms: Sequence[Phase],
        *,
        shared: Shared,
        settled: Sized,
        done: Sequence[Group],
    ) -> None:
        """Say that a sweep begins, of which the groups `done` are there already."""
        self._sweep = SweepCount(arms, shared, settled, done)
        if arms[-1].mode != "dev":
            self._since = monotonic()
        self._phase, self._stage = arms[-1], "sweep"

    def resume(self, rollouts: int) -> None:
        """Count rollouts of the sweep that are on file, of which nobody looks at the results."""
        self._sweep.done += rollouts

    def learn(self, groups: int) -> None:
        """Say that an epoch learns from as many groups with mixed results."""
        self._groups, self._since, self._stage = groups, monotonic(), "learning"
        self._answered = self._calls.answered if self._calls is not None else 0

    def finish(self, rollout: Rollout) -> None:
        """Count a rollout with its checks."""
        self._sweep.finish(rollout)

    def score(self, group: Group) -> None:
        """Count the scores of a group of the sweep; of a pair only those of the final side."""
        self._sweep.score(group)

    def pay(self, rollout: Rollout) -> None:
        """Count what an attempt has cost."""
        self._spent_usd += rollout.cost_usd or 0.0

    def read(self) -> Reading:
        """Return what the run does now; may be called on any thread."""
        now = monotonic()
        calls, budget = self._calls, self._budget
        return Reading(
            at_s=now - self._began,
            stage=self._stage,
            step=self._step,
            phase=self._phase,
            sweep=self._sweep.read(),
            attempts=self.attempts.read(now),
            after_s=sum(self._after) / len(self._after) if self._after else None,
            since_s=now - self._since,
            groups=self._groups,
            asked=dict(calls.in_flight) if calls is not None else {},
            answered=calls.answered - self._answered if calls is not None else 0,
            spent_usd=self._spent_usd + (calls.spent_usd if calls is not None else 0.0),
            limits=budget.limits if budget is not None else {},
            allowed=tuple(slots.state() for slots in self._slots if slots.concurrency.seen.calls),
            batches=tuple(batch for batches in self._batches for batch in batches.progress),
        )
