"""Families that only the eval split has: near the trained ones in wording or tools, never learned from.

Written before the agent was changed to read words and negation, without a look at what it makes of them.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import Any

from fixture_source import held_out_desk as desk
from fixture_source import orders, settings
from fixture_source.shape import Data, Family, case, exact, number


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def _figures(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _mean(figures: list[float]) -> float:
    return float(sum(map(Fraction, figures)) / len(figures))


def _workday(data: Data) -> str:
    day, left = dt.date.fromisoformat(data["day"]), data["count"]
    while left:
        day += dt.timedelta(1)
        left -= day.isoweekday() <= 5
    return day.isoformat()


def _later(data: Data) -> str:
    return (dt.date.fromisoformat(data["day"]) + dt.timedelta(data["count"])).isoformat()


def _amounts(text: str) -> Fraction:
    sizes = {"kg": 1000, "g": 1, "l": 1000, "ml": 1}
    return sum((Fraction(n) * sizes[unit] for n, unit in re.findall(r"([\d.]+) ([a-z]+)", text)), Fraction())


def _clock(data: Data) -> str:
    count, unit = data["size"].split()
    minutes = Fraction(count) * {"h": 60, "min": 1}[unit]
    return f"{int(minutes) // 60}:{int(minutes) % 60:02d}"


def _column(data: Data) -> list[Any]:
    place = orders.COLUMNS.index(data["column"])
    return [row[place] for row in orders.TABLES[data["file"]]]


def _shelf(data: Data) -> list[Any]:
    return [row[desk.COLUMNS.index(data["column"])] for row in desk.TABLES[data["file"]]]


def _quota(data: Data) -> list[float]:
    parts = [part for part in settings.RECORDS[data["file"]].values() if isinstance(part, dict)]
    return [figure for part in parts for figure in part.get(data["key"], ())]


MAIN = (
    Family(
        domain="notes",
        name="wordage",
        chain=("split_words", "count_items"),
        truth=lambda d: len(_words(d["note"])),
        checks=number,
        train=(),
        eval=(
            case(
                'How many words long is the note "{note}"?', note="a word here, a word there, and a word more"
            ),
            case(
                'We pay writers by the word, repeats and all. Count the words of "{note}"',
                note="Rain again. Rain all day and rain all night.",
                tags=["realistic"],
            ),
        ),
    ),
    Family(
        domain="notes",
        name="permalink",
        chain=("make_slug",),
        truth=lambda d: "-".join(_words(d["note"])),
        checks=exact,
        train=(),
        eval=(
            case('Turn the title of the note, "{note}", into a web address.', note="New Bridge Opens Early"),
            case(
                'The note "{note}" goes online. Which permalink will it get?', note="Three Ways to Bake Rye"
            ),
        ),
    ),
    Family(
        domain="calendar",
        name="reply",
        chain=("find_dates", "shift_workdays"),
        truth=_workday,
        checks=exact,
        train=(),
        eval=(
            case(
                "A complaint of {day} must be answered within {count} working days. By which date?",
                day="2026-02-26",
                count=6,
            ),
            case(
                "Counting business days only, what date is {count} working days after {day}?",
                day="2026-07-09",
                count=11,
            ),
        ),
    ),
    Family(
        domain="calendar",
        name="birthday",
        chain=("find_dates", "weekday_name"),
        truth=lambda d: dt.date.fromisoformat(d["day"]).strftime("%A"),
        checks=exact,
        train=(),
        eval=(
            case("On which weekday does the birthday of {day} fall?", day="2026-05-30"),
            case(
                "The caretaker turns sixty on {day}. Is that a Sunday? Tell me the day of the week.",
                day="2027-03-03",
                tags=["realistic"],
            ),
        ),
    ),
    Family(
        domain="freight",
        name="pallet",
        chain=("add_quantities", "convert_unit"),
        truth=lambda d: float(_amounts(d["size"]) / {"kg": 1000, "l": 1000, "g": 1}[d["to"]]),
        checks=number,
        train=(),
        eval=(
            case('One pallet carries "{size}". Total weight in kg?', size="850 g, 400 g and 2.1 kg", to="kg"),
            case(
                'The tank lorry took on "{size}" at three stops. How many litres is that all together?',
                size="700 ml, 90 l, 1300 ml",
                to="l",
                tags=["realistic"],
            ),
        ),
    ),
    Family(
        domain="freight",
        name="crossing",
        chain=("read_quantity", "clock_time"),
        truth=_clock,
        checks=lambda answer, _: [{"kind": "regex", "pattern": rf"^{answer}$"}],
        train=(),
        eval=(
            case('The ferry crossing takes "{size}". Write that in hours and minutes.', size="205 min"),
            case('Timetable entry, h:mm, for a crossing of "{size}"?', size="7.25 h"),
        ),
    ),
    Family(
        domain="orders",
        name="basket",
        chain=("read_table", "pick_column", "average_numbers"),
        truth=lambda d: _mean(_column(d)),
        checks=number,
        train=(),
        eval=(
            case("What is the average {column} in {file}?", file="orders-east.csv", column="units"),
            case(
                "How big is the mean basket, going by the {column} column of {file}?",
                file="orders-west.csv",
                column="amount",
            ),
        ),
    ),
    Family(
        domain="orders",
        name="assortment",
        chain=("read_table", "pick_column", "unique_items"),
        truth=lambda d: ", ".join(dict.fromkeys(_column(d))),
        checks=exact,
        train=(),
        eval=(
            case(
                "Name the different {column} in {file}, no repeats.", file="orders-west.csv", column="goods"
            ),
            case(
                "We print a poster with each {column} of {file} once. Which ones?",
                file="orders-east.csv",
                column="city",
                tags=["realistic"],
            ),
        ),
    ),
    Family(
        domain="readings",
        name="mean",
        chain=("find_numbers", "average_numbers"),
        truth=lambda d: _mean(_figures(d["log"])),
        checks=number,
        train=(),
        eval=(
            case('Take the average over the sensor log "{log}".', log="12, 15, 11, 20"),
            case('Which mean level do the readings "{log}" have?', log="4.5, 6, 9, 2.5"),
        ),
    ),
    Family(
        domain="readings",
        name="peak",
        chain=("find_numbers", "largest_number"),
        truth=lambda d: max(_figures(d["log"])),
        checks=number,
        train=(),
        eval=(
            case('What was the peak in the log "{log}"?', log="33, 71, 54, 68"),
            case(
                'Boiler test of this morning: "{log}". The inspector writes down only the highest reading.',
                log="5.5, 8.25, 7, 8",
                tags=["realistic"],
            ),
        ),
    ),
    Family(
        domain="settings",
        name="lead",
        chain=("read_json", "list_keys", "first_item"),
        truth=lambda d: next(iter(settings.RECORDS[d["file"]])),
        checks=exact,
        train=(),
        eval=(
            case("Which section of {file} comes first?", file="search.json"),
            case("What is the name of the field that opens {file}?", file="billing.json"),
        ),
    ),
    Family(
        domain="settings",
        name="norm",
        chain=("read_json", "get_field", "average_numbers"),
        truth=lambda d: _mean(_quota(d)),
        checks=number,
        train=(),
        eval=(
            case("What is the average of the {key} in {file}?", file="search.json", key="queries"),
            case(
                "On the mean, how many days do the {key} of {file} leave a debtor?",
                file="billing.json",
                key="delays",
                tags=["realistic"],
            ),
        ),
    ),
)

HELD_OUT = (
    Family(
        domain="kitchen",
        name="basin",
        chain=("add_quantities",),
        truth=lambda d: float(
            _amounts(d["parts"]) / {"kg": 1000, "g": 1, "ml": 1}[d["parts"].split()[1].strip(",")]
        ),
        checks=number,
        train=(),
        eval=(
            case('How much do "{parts}" weigh together in the basin?', parts="300 g, 1.1 kg, 45 g"),
            case('The basin holds "{parts}". What is the total?', parts="80 ml, 0.25 l, 40 ml"),
        ),
    ),
    Family(
        domain="library",
        name="loan",
        chain=("find_dates", "shift_days"),
        truth=_later,
        checks=exact,
        train=(),
        eval=(
            case("A book lent on {day} for {count} days comes back when?", day="2026-03-27", count=24),
            case("Extend the loan of {day} by {count} days. New date?", day="2026-10-30", count=19),
        ),
    ),
    Family(
        domain="stock",
        name="holdings",
        chain=("read_table", "pick_column", "add_numbers"),
        truth=lambda d: sum(_shelf(d)),
        checks=number,
        train=(),
        eval=(
            case("Add up the {column} column of {file}.", file="shelf-c.csv", column="pieces"),
            case("What do all {column} figures in {file} sum to?", file="shelf-c.csv", column="price"),
        ),
    ),
    Family(
        domain="club",
        name="turnout",
        chain=("split_items", "count_items"),
        truth=lambda d: len(d["names"].split(",")),
        checks=number,
        train=(),
        eval=(
            case('How many members are on the list "{names}"?', names="Ada, Lio, Bo, Fay, Gus, Mo"),
            case('Turnout tonight: "{names}". Count them.', names="Nell, Otto, Pim, Quin"),
        ),
    ),
    Family(
        domain="scores",
        name="tally",
        chain=("find_numbers", "add_numbers"),
        truth=lambda d: sum(map(int, d["goals"].split(","))),
        checks=number,
        train=(),
        eval=(
            case('Goals of the season so far: "{goals}". How many in total?', goals="2, 0, 5, 1, 1, 4"),
            case('Add the goals "{goals}" up for the tally.', goals="3, 3, 0, 6, 2"),
        ),
    ),
)
