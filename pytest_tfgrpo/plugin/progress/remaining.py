"""How long a run still takes: from the latencies so far, what is in flight, and what is planned."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.engine.gauge import Reading
from pytest_tfgrpo.runs.schedule import steps_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a run is going to do."""

    steps: tuple[tuple[Phase, ...], ...]
    """Phases that run together, in order."""
    rollouts: tuple[int, ...]
    """Of each step."""
    concurrency: int
    """Rollouts in flight at most."""

    @classmethod
    def of(cls, phases: Sequence[Phase], concurrency: int) -> Plan:
        """Return the plan of the phases of a run."""
        steps = tuple(steps_of(phases))
        sizes = tuple(sum(phase.planned for phase in step) for step in steps)
        return cls(steps=steps, rollouts=sizes, concurrency=concurrency)

    def share(self, now: Reading) -> float:
        """Return which part of the rollouts is done, from 0 to 1; those of the dev split do not count."""
        before = sum(self.rollouts[: max(now.step - 1, 0)])
        at = self.rollouts[now.step - 1] if now.step else 0
        swept = now.stage == "sweep" and now.phase is not None and now.phase.mode != "dev"
        done, planned = now.sweep.done, now.sweep.planned
        part = at * done / planned if swept and planned else at * (now.stage != "starting")
        return (before + part) / max(sum(self.rollouts), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remaining:
    """An estimate of the time that a run still takes."""

    seconds: float
    complete: bool
    """False where the run has not yet shown how long a part of it takes, which is not counted."""


def remaining(now: Reading, plan: Plan) -> Remaining | None:
    """Return how long the run still takes; None while no attempt has ended."""
    latency = now.attempts.mean_s
    if latency is None or not now.step:
        return None
    seconds = _of_sweep(now, plan, latency) if now.stage == "sweep" else 0.0
    ahead = plan.rollouts[now.step - (now.stage == "starting") :]
    learns = [step[-1].trains for step in plan.steps[now.step - 1 :]]
    swept = now.stage == "learning" or (now.phase is not None and now.phase.mode == "dev")
    if now.after_s is not None:
        seconds += now.after_s * sum(learns[1:])
        if learns[0]:
            seconds = max(seconds, now.after_s - now.since_s) if swept else seconds + now.after_s
    seconds += sum(latency * math.ceil(size / plan.concurrency) for size in ahead)
    return Remaining(seconds=seconds, complete=now.after_s is not None or not any(learns))


def _of_sweep(now: Reading, plan: Plan, latency_s: float) -> float:
    """Return how long the sweep still takes: places are never free while an attempt waits for one."""
    rest = [_rest_s(age, now) for age in now.attempts.ages_s]
    waiting = max(now.sweep.planned - now.sweep.done - now.sweep.free - len(rest), 0)
    work = (sum(rest) + waiting * latency_s) / plan.concurrency
    last = latency_s if waiting else max(rest, default=0.0)
    return max(work, last)


def _rest_s(age_s: float, now: Reading) -> float:
    """Return how long an attempt of an age still takes: up to the mean, else up to the longest so far."""
    usual = now.attempts.mean_s or 0.0
    return usual - age_s if age_s < usual else max(now.attempts.longest_s - age_s, 0.0)
