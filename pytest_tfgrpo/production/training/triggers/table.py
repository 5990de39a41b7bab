"""The triggers: pure functions of the time, the figures, and what was asked before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.numerics.binomial import binomial_tail
from pytest_tfgrpo.numerics.stats import rollouts_bounds
from pytest_tfgrpo.production.training.triggers.figures import TriggerFigures

DAILY_H = 2
"""Hour of the day in UTC."""
REST = timedelta(hours=6)
"""After a job, until another one is asked for; not for what is urgent."""
DROP, LEAST_RUNS = 0.10, 100
"""Of mean reward, below that of the version's first runs; and runs on either side."""
TIMES, LEAST_GIVEN = 2.0, 50
"""Of the share of negative feedback in the week before; and feedback given, that day and that week."""
ALPHA = 0.01
ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerState:
    """What is remembered from one look to the next."""

    daily: str = ""
    """Day whose daily request is settled; empty before the first look."""
    compared: Mapping[str, int] = field(default_factory=dict)
    """Watermark at which each version's degradation was last asked about."""


class TriggerLook(NamedTuple):
    """What the triggers have before them."""

    now: datetime
    """In UTC."""
    figures: TriggerFigures
    state: TriggerState
    threshold: int


class LoopTrigger(NamedTuple):
    """A row of the table."""

    name: str
    """As the setting has it."""
    reason: str
    """As the request has it."""
    priority: str
    is_due: Callable[[TriggerLook], bool]

    @property
    def rests(self) -> bool:
        """Whether it waits after a job."""
        return self.priority != "urgent"


def _degraded(look: TriggerLook) -> bool:
    first, last = look.figures.first, look.figures.last
    if min(first.n, last.n) < LEAST_RUNS or first.mean - last.mean <= DROP + ROUNDING:
        return False
    return rollouts_bounds([(first.n, first.total)], [(last.n, last.total)], ALPHA)[2] < ALPHA


def _unwanted(look: TriggerLook) -> bool:
    day, week = look.figures.day, look.figures.week
    if min(day.given, week.given) < LEAST_GIVEN:
        return False
    if day.negative * week.given < TIMES * week.negative * day.given:
        return False
    usual = (week.negative + 0.5) / (week.given + 1)  # not 0, where nobody complained
    return binomial_tail(day.negative, day.given, usual) < ALPHA


def _enough(look: TriggerLook) -> bool:
    return look.figures.new >= look.threshold


def _daily(look: TriggerLook) -> bool:
    return bool(look.state.daily) and day_of(look.now) > look.state.daily


TRIGGERS = (
    LoopTrigger("degradation", "performance_degradation", "urgent", _degraded),
    LoopTrigger("negative_feedback", "negative_feedback", "high", _unwanted),
    LoopTrigger("threshold", "threshold_reached", "normal", _enough),
    LoopTrigger("daily", "scheduled", "normal", _daily),
)
"""The first that is due asks, for all that are."""


def day_of(now: datetime) -> str:
    """Return the day whose daily request is the newest one."""
    return (now - timedelta(hours=DAILY_H)).date().isoformat()


def settled_day(now: datetime, state: TriggerState, new: int) -> TriggerState:
    """Return the state with a day that the clock can have, and that something is left to do for.

    The first look, one after the clock went back by days, and one without `new` trajectories settle theirs.
    """
    tomorrow = (now - timedelta(hours=DAILY_H) + timedelta(days=1)).date().isoformat()
    if new and state.daily and state.daily <= tomorrow:
        return state
    return TriggerState(daily=day_of(now), compared=state.compared)


def due_trigger(
    look: TriggerLook, names: Collection[str], *, busy: bool, rested_since: datetime | None
) -> LoopTrigger | None:
    """Return what asks for a job now; None: nothing does.

    `busy` is whether a job waits or runs: what is due meanwhile is due when it has ended, as one request.
    `rested_since` is when the last job ended. Without new trajectories nothing asks.
    """
    if busy or not look.figures.new:
        return None
    rested = rested_since is None or not timedelta() <= look.now - rested_since < REST
    return next(
        (one for one in TRIGGERS if one.name in names and (rested or not one.rests) and one.is_due(look)),
        None,
    )


def after_asking(look: TriggerLook, trigger: LoopTrigger) -> TriggerState:
    """Return the state once a trigger has asked, for itself and for the others."""
    compared = dict(look.state.compared)
    if trigger.name == "degradation":
        compared[look.figures.version] = look.figures.watermark
    return TriggerState(daily=day_of(look.now), compared=compared)
