"""Tools on calendar dates."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import date, timedelta

from pytest_tfgrpo.actors.offline.reading import dates_in
from pytest_tfgrpo.actors.offline.values import ToolError

MAX_DAYS = 100_000
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def find_dates(text: str) -> list[date]:
    """Return the dates in `text`, in order; raises ToolError when there are none."""
    dates = dates_in(text)
    if not dates:
        raise ToolError("no dates in the text")
    return dates


def days_between(dates: Sequence[date]) -> int:
    """Return the days from the first date to the second; raises ToolError on fewer than two dates."""
    if len(dates) < 2:
        raise ToolError("one date is not enough")
    return abs((dates[1] - dates[0]).days)


def shift_days(day: date, days: int) -> date:
    """Return the date that many calendar days later."""
    if abs(days) > MAX_DAYS:
        raise ToolError(f"{days} days are over the limit of {MAX_DAYS}")
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise ToolError("the date is out of range") from None


def shift_workdays(day: date, days: int) -> date:
    """Return the date that many working days (Monday to Friday) later."""
    if not 0 <= days <= MAX_DAYS:
        raise ToolError(f"cannot move by {days} working days")
    weeks, rest = divmod(days, 5)
    if day.weekday() > 4 and rest == 0 and weeks:
        weeks, rest = weeks - 1, 5  # from a weekend, five working days end on Friday
    day = shift_days(day, 7 * weeks)
    while rest:
        day = shift_days(day, 1)
        rest -= day.weekday() < 5
    return day


def month_end(day: date) -> date:
    """Return the last day of the date's month."""
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def weekday_name(day: date) -> str:
    """Return the English name of the date's weekday."""
    return DAY_NAMES[day.weekday()]
