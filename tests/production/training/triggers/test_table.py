"""The triggers at their edges: figures, clocks, rest."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytest_tfgrpo.production.training.settings import TRIGGERS as NAMES
from pytest_tfgrpo.production.training.triggers.figures import FeedbackCount, RewardSum, TriggerFigures
from pytest_tfgrpo.production.training.triggers.table import (
    REST,
    TRIGGERS,
    TriggerLook,
    TriggerState,
    after_asking,
    due_trigger,
    settled_day,
)

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
TODAY = TriggerState(daily="2026-03-10")
QUIET = TriggerFigures(watermark=10_000, new=1, version="v1")
FEW = {"new": 10}
WORSE = {"first": RewardSum(500, 400.0), "last": RewardSum(500, 300.0)}
ANGRY = {"day": FeedbackCount(100, 40), "week": FeedbackCount(700, 100)}


def due(
    *,
    now: datetime = NOON,
    state: TriggerState = TODAY,
    threshold: int = 5000,
    names: tuple[str, ...] = NAMES,
    busy: bool = False,
    rested_since: datetime | None = None,
    **figures: Any,
) -> str:
    look = TriggerLook(now, replace(QUIET, **figures), state, threshold)
    found = due_trigger(look, names, busy=busy, rested_since=rested_since)
    return "" if found is None else found.name


def test_the_settings_name_the_triggers_and_requests_know_their_reasons() -> None:
    assert tuple(one.name for one in TRIGGERS) == NAMES
    assert [one.priority for one in TRIGGERS] == ["urgent", "high", "normal", "normal"]


@pytest.mark.parametrize(("new", "wanted"), [(0, ""), (4999, ""), (5000, "threshold"), (10**7, "threshold")])
def test_enough_new_trajectories_ask(new: int, wanted: str) -> None:
    assert due(new=new) == wanted


@pytest.mark.parametrize(
    ("first", "last", "wanted"),
    [
        ((500, 400.0), (500, 349.0), "degradation"),
        ((500, 400.0), (500, 350.0), ""),  # .10 lower, and no more
        ((500, 400.0), (500, 450.0), ""),
        ((100, 80.0), (100, 50.0), "degradation"),
        ((99, 99.0), (500, 100.0), ""),
        ((500, 500.0), (99, 0.0), ""),
        ((100, 60.0), (100, 49.0), ""),  # .11 lower, which 100 runs do not show
        ((0, 0.0), (0, 0.0), ""),
    ],
)
def test_a_version_that_became_worse_asks(
    first: tuple[int, float], last: tuple[int, float], wanted: str
) -> None:
    assert due(first=RewardSum(*first), last=RewardSum(*last)) == wanted


@pytest.mark.parametrize(
    ("day", "week", "wanted"),
    [
        ((100, 40), (700, 100), "negative_feedback"),
        ((100, 28), (700, 98), "negative_feedback"),  # just twice as much
        ((100, 27), (700, 98), ""),
        ((49, 49), (700, 7), ""),
        ((50, 50), (49, 0), ""),
        ((50, 4), (50, 2), ""),  # twice as much, by chance
        ((50, 0), (500, 0), ""),
        ((50, 5), (500, 0), "negative_feedback"),
        ((0, 0), (0, 0), ""),
    ],
)
def test_more_negative_feedback_than_usual_asks(
    day: tuple[int, int], week: tuple[int, int], wanted: str
) -> None:
    assert due(day=FeedbackCount(*day), week=FeedbackCount(*week)) == wanted


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(*looks: str, start: str = "2026-03-10T12:00:00", new: int = 1) -> list[str]:
    """Return at which of the looks the daily trigger asked."""
    state, asked = settled_day(at(start), TriggerState(), 1), []
    for text in looks:
        now = at(text)
        state = settled_day(now, state, new)
        look = TriggerLook(now, replace(QUIET, new=new), state, 5000)
        found = due_trigger(look, NAMES, busy=False, rested_since=None)
        if found is not None:
            asked.append(text)
            state = after_asking(look, found)
    return asked


def test_once_a_day_at_two_also_where_it_was_missed() -> None:
    assert days("2026-03-10T23:59:59", "2026-03-11T01:59:59") == []
    assert days("2026-03-11T02:00:00", "2026-03-11T02:00:30", "2026-03-12T01:00:00") == [
        "2026-03-11T02:00:00"
    ]
    assert days("2026-03-14T09:00:00", "2026-03-14T10:00:00") == ["2026-03-14T09:00:00"]
    assert days("2026-03-11T02:00:00", "2026-03-12T02:00:00") == [
        "2026-03-11T02:00:00",
        "2026-03-12T02:00:00",
    ]
    assert days("2026-03-11T03:00:00", start="2026-03-11T01:00:00") == ["2026-03-11T03:00:00"]


def test_a_clock_that_jumps_over_two_asks_once() -> None:
    back = ("2026-03-11T02:00:01", "2026-03-11T01:59:00", "2026-03-11T02:00:00", "2026-03-11T02:30:00")
    assert days(*back) == ["2026-03-11T02:00:01"]
    far = ("2099-01-01T00:00:00", "2026-03-11T03:00:00", "2026-03-12T02:00:00")
    assert days(*far) == ["2099-01-01T00:00:00", "2026-03-12T02:00:00"]


def test_a_day_without_new_trajectories_asks_nothing_not_even_later() -> None:
    assert days("2026-03-11T02:00:00", new=0) == []
    state = settled_day(at("2026-03-11T02:00:00"), TODAY, 0)
    assert due(now=at("2026-03-11T09:00:00"), state=state) == ""
    assert due(now=at("2026-03-12T09:00:00"), state=state) == "daily"


def test_the_most_urgent_asks_for_all_that_are_due() -> None:
    both = {**WORSE, **ANGRY, "new": 9000}
    assert due(**both, state=TriggerState(daily="2026-03-01")) == "degradation"
    assert due(**both, names=NAMES[1:]) == "negative_feedback"
    assert due(**both, names=("daily", "threshold")) == "threshold"
    assert due(**both, names=()) == due(**both, busy=True) == ""


@pytest.mark.parametrize(
    ("ago", "asks"),
    [(timedelta(), False), (REST - timedelta(seconds=1), False), (REST, True), (timedelta(hours=-1), True)],
)
def test_after_a_job_there_is_rest_but_not_from_what_is_urgent(ago: timedelta, asks: bool) -> None:
    rested = {"rested_since": NOON - ago}
    assert bool(due(new=5000, **rested)) is bool(due(**ANGRY, **rested)) is asks
    assert due(**WORSE, **rested) == "degradation"


def test_what_asked_about_a_version_is_remembered() -> None:
    look = TriggerLook(NOON, replace(QUIET, **WORSE), TriggerState(daily="2026-03-01"), 5000)
    degradation = due_trigger(look, NAMES, busy=False, rested_since=None)
    assert degradation is not None
    assert after_asking(look, degradation) == TriggerState(daily="2026-03-10", compared={"v1": 10_000})
    assert after_asking(look, TRIGGERS[2]).compared == {}
