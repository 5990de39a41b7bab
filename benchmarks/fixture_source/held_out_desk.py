"""Held-out suite, domains `kitchen`, `library` and `stock`: measures, loans and an inventory."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import Any

from fixture_source.shape import Data, Family, case, exact, number

_SIZE = {
    "g": Fraction(1),
    "kg": Fraction(1000),
    "oz": Fraction("28.349523125"),
    "lb": Fraction("453.59237"),
    "ml": Fraction(1),
    "l": Fraction(1000),
    "pt": Fraction("568.26125"),
}

TABLES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "shelf-a.csv": (
        ("A1", "rope", "Aalto", 14, 9.5),
        ("A2", "lamp", "Brix", 3, 41.0),
        ("A3", "rope", "Cole", 22, 8.25),
        ("A4", "tent", "Aalto", 5, 180.0),
        ("A5", "lamp", "Aalto", 9, 27.5),
    ),
    "shelf-b.csv": (
        ("B1", "stove", "Cole", 6, 64.0),
        ("B2", "tent", "Brix", 2, 210.0),
        ("B3", "mat", "Cole", 31, 12.75),
        ("B4", "mat", "Dunn", 17, 15.5),
        ("B5", "stove", "Dunn", 4, 52.0),
        ("B6", "mat", "Cole", 8, 19.0),
    ),
    "shelf-c.csv": (
        ("C1", "boots", "Dunn", 12, 88.0),
        ("C2", "boots", "Eker", 7, 119.5),
        ("C3", "socks", "Eker", 60, 6.5),
        ("C4", "cap", "Aalto", 25, 14.0),
        ("C5", "cap", "Eker", 11, 11.0),
        ("C6", "boots", "Aalto", 9, 135.0),
        ("C7", "gaiters", "Eker", 18, 32.0),
    ),
}
COLUMNS = ("code", "item", "maker", "pieces", "price")


def _grams(text: str) -> Fraction:
    return sum((Fraction(n) * _SIZE[u] for n, u in re.findall(r"([\d.]+) ([a-z]+)", text)), Fraction())


def _measure(answer: Any, _: Data) -> list[dict[str, Any]]:
    return [{"kind": "number", "value": round(float(answer), 9), "rel_tol": 1e-6}]


def _oven(data: Data) -> int:
    celsius = (Fraction(data["heat"]) - 32) * 5 / 9
    return (celsius + Fraction(1, 2)).__floor__()


def _workday(data: Data) -> dt.date:
    day, left = dt.date.fromisoformat(data["day"]), data["count"]
    while left:
        day += dt.timedelta(1)
        left -= day.isoweekday() <= 5
    return day


def _column(data: Data) -> list[Any]:
    return [row[COLUMNS.index(data["column"])] for row in TABLES[data["file"]]]


KITCHEN = (
    Family(
        domain="kitchen",
        name="batch",
        chain=("add_quantities", "convert_unit"),
        truth=lambda d: _grams(d["parts"]) / _SIZE[d["to"]],
        checks=_measure,
        train=(
            case(
                'A batch takes "{parts}". What is the whole batch in kg?',
                parts="400 g, 250 g, 1.2 kg",
                to="kg",
            ),
            case(
                'Batch of soup from "{parts}": how many litres in total?',
                parts="750 ml, 1.5 l, 300 ml",
                to="l",
            ),
            case('Add up the batch "{parts}" and convert it to g.', parts="1 lb, 6 oz, 3 oz", to="g"),
            case('In oz, please: the batch of "{parts}".', parts="200 g, 350 g", to="oz"),
            case(
                'Grandmother measured in pints: "{parts}" made one batch of jam. Tell me in ml.',
                parts="2 pt, 0.5 pt, 1 pt",
                to="ml",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('Convert to kg what the batch needs: "{parts}".', parts="2 lb, 8 oz, 1 lb", to="kg"),
            case('How many ml does a batch of "{parts}" fill?', parts="1.25 l, 0.5 l, 200 ml", to="ml"),
        ),
    ),
    Family(
        domain="kitchen",
        name="oven",
        chain=("read_quantity", "convert_unit", "round_number"),
        truth=_oven,
        checks=_measure,
        train=(
            case('Oven mark for "{heat} °F", in whole Celsius?', heat=375),
            case('The oven dial has Celsius only; round "{heat} °F" for it.', heat=415),
            case('Convert the oven heat "{heat} °F" to Celsius and round it.', heat=335),
            case('"{heat} °F" in the recipe: what do I set on a Celsius oven?', heat=360),
            case(
                'The American book says preheat to "{heat} °F". Our oven wants a whole number in Celsius.',
                heat=425,
                tags=["realistic"],
            ),
        ),
        eval=(
            case('Set the oven, marked in Celsius, for "{heat} °F": rounded figure?', heat=345),
            case('Which whole Celsius mark does my oven need for "{heat} °F"?', heat=395),
        ),
    ),
)

LIBRARY = (
    Family(
        domain="library",
        name="pickup",
        chain=("find_dates", "shift_workdays"),
        truth=_workday,
        checks=exact,
        train=(
            case(
                "Reserved on {day}, ready for pickup after {count} working days: when?",
                day="2026-03-05",
                count=3,
            ),
            case(
                "Pickup date for a book ordered {day}, given {count} working days?", day="2026-04-29", count=5
            ),
            case(
                "Weekends do not count: pickup is {count} working days from {day}.", day="2026-06-12", count=2
            ),
            case("Ordered {day}. Pickup {count} business days on. Which date?", day="2026-01-16", count=6),
            case(
                "The branch van needs {count} working days. I asked for the atlas on {day}; when is pickup?",
                day="2026-11-19",
                count=4,
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                "When can pickup happen if {count} working days pass after {day}?", day="2026-08-18", count=7
            ),
            case(
                "A request of {day} plus {count} working days gives which pickup date?",
                day="2026-02-13",
                count=8,
            ),
        ),
    ),
    Family(
        domain="library",
        name="story-hour",
        chain=("find_dates", "weekday_name"),
        truth=lambda d: dt.date.fromisoformat(d["day"]).strftime("%A"),
        checks=exact,
        train=(
            case("Story hour is on {day}. Which weekday is it?", day="2026-05-06"),
            case("Which day of the week has the story hour of {day}?", day="2026-07-18"),
            case("Name the weekday for the story hour dated {day}.", day="2026-10-01"),
            case("Put the weekday on the poster: story hour, {day}.", day="2026-12-07"),
            case(
                "A mother asks if the story hour on {day} is a school day. What day is it?",
                day="2027-01-12",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("The story hour moved to {day}: what weekday is that?", day="2026-09-25"),
            case("Story hour poster for {day} - day of the week?", day="2027-03-14"),
        ),
    ),
)

STOCK = (
    Family(
        domain="stock",
        name="price-band",
        chain=("read_table", "pick_column", "number_spread"),
        truth=lambda d: max(_column(d)) - min(_column(d)),
        checks=number,
        train=(
            case(
                "Price band of {file}: how far apart are highest and lowest {column}?",
                file="shelf-a.csv",
                column="price",
            ),
            case("What band do the {column} figures of {file} span?", file="shelf-b.csv", column="pieces"),
            case("Band of {column} in {file}?", file="shelf-b.csv", column="price"),
            case(
                "The band in {file} is the difference over the {column} column. Value?",
                file="shelf-a.csv",
                column="pieces",
            ),
            case(
                "Insurance asks for the band our goods fall in: highest less lowest {column}, see {file}.",
                file="shelf-b.csv",
                column="price",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("How wide is the {column} band in {file}?", file="shelf-c.csv", column="price"),
            case("For {column}, which band does {file} have?", file="shelf-c.csv", column="pieces"),
        ),
    ),
    Family(
        domain="stock",
        name="suppliers",
        chain=("read_table", "pick_column", "unique_items"),
        truth=lambda d: ", ".join(dict.fromkeys(_column(d))),
        checks=exact,
        train=(
            case("Suppliers in {file}: each {column} without repeats.", file="shelf-a.csv", column="maker"),
            case(
                "Which different suppliers, by {column}, are in {file}?", file="shelf-b.csv", column="maker"
            ),
            case(
                "List suppliers of {file} once each, from the {column} column.",
                file="shelf-a.csv",
                column="maker",
            ),
            case(
                "Different {column} entries in {file}, one line for the suppliers page?",
                file="shelf-b.csv",
                column="item",
            ),
            case(
                "I write to all suppliers tonight, nobody twice. Take the {column} names from {file}.",
                file="shelf-b.csv",
                column="maker",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("Who are the suppliers ({column}) of {file}?", file="shelf-c.csv", column="maker"),
            case("Suppliers page for {file}: {column}, no repeats.", file="shelf-c.csv", column="item"),
        ),
    ),
    Family(
        domain="stock",
        name="lines",
        chain=("read_table", "filter_rows", "count_items"),
        truth=lambda d: sum(d["who"] in row for row in TABLES[d["file"]]),
        checks=number,
        train=(
            case("How many lines does {who} have on {file}?", file="shelf-a.csv", who="Aalto"),
            case("Count the lines with a {who} in {file}.", file="shelf-b.csv", who="mat"),
            case("Number of lines by {who} in {file}?", file="shelf-b.csv", who="Cole"),
            case("{file} has how many rows, lines as we say, for {who}?", file="shelf-a.csv", who="rope"),
            case(
                "We may drop {who} next season. How many lines would that touch in {file}?",
                file="shelf-b.csv",
                who="Cole",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("Count of {who} lines in {file}?", file="shelf-c.csv", who="Eker"),
            case("In {file}, {who} makes how many lines?", file="shelf-c.csv", who="boots"),
        ),
    ),
)

FAMILIES = KITCHEN + LIBRARY + STOCK
