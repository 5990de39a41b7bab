"""Domain `calendar`: dates at a back office."""

from __future__ import annotations

import datetime as dt
from typing import Any

from fixture_source.shape import Data, Family, case, exact, number

_SPELLED = {"twelve": 12}


def _day(text: str) -> dt.date:
    form = "%Y-%m-%d" if text[:4].isdigit() else "%d %B %Y"
    return dt.datetime.strptime(text, form).date()


def _later(data: Data) -> dt.date:
    count = data["count"]
    days = count if isinstance(count, int) else _SPELLED[count.lower()]
    return dt.date.fromordinal(_day(data["day"]).toordinal() + days)


def _last_of_month(day: dt.date) -> dt.date:
    following = dt.date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return dt.date.fromordinal(following.toordinal() - 1)


def _iso_day(answer: Any, _: Data) -> list[dict[str, Any]]:
    return [{"kind": "exact", "value": answer.isoformat()}]


FAMILIES = (
    Family(
        domain="calendar",
        name="due",
        chain=("find_dates", "shift_days"),
        truth=_later,
        checks=_iso_day,
        train=(
            case(
                "The invoice of {day} is due in {count} days. Which due date is that?",
                day="2026-03-02",
                count=30,
            ),
            case("Loan handed out on {day}, due back after {count} days. When?", day="14 May 2026", count=21),
            case(
                "Due date, please: paper served on {day}, reply within {count} days.",
                day="2026-01-20",
                count=14,
            ),
            case(
                "The city sent a notice dated {day} and allows {count} days to object. Put the due date "
                "in the diary.",
                day="7 October 2026",
                count=45,
                tags=["realistic"],
            ),
        ),
        eval=(
            case("Issued on {day} and payable within {count} days: due when?", day="2026-06-11", count=60),
            case(
                "A permit dated {day} leaves {count} days for an answer. Find the date it falls due.",
                day="3 February 2026",
                count=28,
            ),
        ),
    ),
    Family(
        domain="calendar",
        name="closing",
        chain=("find_dates", "month_end"),
        truth=lambda d: _last_of_month(_day(d["day"])),
        checks=_iso_day,
        train=(
            case("A ledger with a slip of {day} is closed when? Give the closing date.", day="2026-02-10"),
            case("Closing date for a contract that ends in the month of {day}?", day="5 April 2026"),
            case(
                "Subscriptions cancelled on {day} run to the last day of the month. On which closing date do "
                "they stop?",
                day="2026-09-03",
            ),
            case(
                "Tenant Ilves gave notice on {day}; the lease runs out with that month. State its "
                "closing date.",
                day="12 June 2026",
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                "An account was frozen on {day} and is closed with the month. Closing date?", day="2026-11-17"
            ),
            case(
                "Which closing date belongs to a membership that was ended on {day}?", day="9 February 2028"
            ),
        ),
    ),
    Family(
        domain="calendar",
        name="elapsed",
        chain=("find_dates", "days_between"),
        truth=lambda d: _day(d["end"]).toordinal() - _day(d["start"]).toordinal(),
        checks=number,
        train=(
            case("Days elapsed from {start} to {end}?", start="2026-01-05", end="2026-02-14"),
            case(
                "The trial began on {start} and ended on {end}. How many days elapsed?",
                start="3 March 2026",
                end="30 April 2026",
            ),
            case(
                "How long, in elapsed days, was the gap between {start} and {end}?",
                start="2025-12-20",
                end="2026-01-10",
            ),
            case(
                "Crane hire: picked up {start}, returned {end}. Bill the days elapsed.",
                start="8 July 2026",
                end="2 August 2026",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("Between {start} and {end}, how many days elapsed?", start="2026-05-01", end="2026-09-01"),
        ),
    ),
    Family(
        domain="calendar",
        name="rota",
        chain=("find_dates", "shift_days", "weekday_name"),
        truth=lambda d: _later(d).strftime("%A"),
        checks=exact,
        train=(
            case(
                "The rota starts on {day}; the next turn is {count} days later. Which weekday is that turn?",
                day="2026-03-02",
                count=10,
            ),
            case(
                "Patrol rota: first turn {day}, again after {count} days. Name the weekday of the "
                "second turn.",
                day="2026-04-15",
                count=9,
            ),
            case(
                "Cleaning rota, turn one on {day}. {count} days on it is our turn: what day of the week?",
                day="21 May 2026",
                count="Twelve",
            ),
            case(
                "The night rota puts Mira on duty on {day} and again {count} days later. She asks which "
                "weekday that second turn is.",
                day="6 August 2026",
                count=16,
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                "Rota turn on {day}, the following turn {count} days after it - on which weekday?",
                day="2026-10-09",
                count=13,
            ),
            case(
                "A weekday is wanted for the rota: {count} days counted from {day}.",
                day="18 January 2026",
                count=25,
            ),
        ),
    ),
)
