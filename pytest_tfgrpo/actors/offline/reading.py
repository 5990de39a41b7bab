"""Numbers, dates and quantities in hostile text; every pattern is linear in the text."""

from __future__ import annotations

import re
from datetime import date

from pytest_tfgrpo.actors.offline.measures import UNIT_NAMES
from pytest_tfgrpo.actors.offline.values import Quantity

_AMOUNT = r"(?<![\w.-])-?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,10})?"
_NUMBER = re.compile(_AMOUNT + r"(?![\w-]|\.\d)", re.ASCII)
_QUANTITY = re.compile(rf"({_AMOUNT}) ?([A-Za-z]{{1,11}}|°[CFcf])(?!\w)", re.ASCII)

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_MONTH = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?|"
    "Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
)
_DATE = re.compile(
    rf"(?<![\w-])(?:(?P<y1>\d{{4}})-(?P<m1>\d{{2}})-(?P<d1>\d{{2}})"
    rf"|(?P<d2>\d{{1,2}}) (?P<m2>{_MONTH}) (?P<y2>\d{{4}})"
    rf"|(?P<m3>{_MONTH}) (?P<d3>\d{{1,2}}), (?P<y3>\d{{4}}))(?![\w-])",
    re.IGNORECASE | re.ASCII,
)


def as_number(text: str) -> int | float | None:
    """Return the number that all of `text` spells, else None."""
    if not _NUMBER.fullmatch(text):
        return None
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def numbers_in(text: str) -> list[int | float]:
    """Return the numbers that stand alone in `text`, in order; those inside dates are left out."""
    found = (as_number(match) for match in _NUMBER.findall(_DATE.sub(" ", text)))
    return [number for number in found if number is not None]


def dates_in(text: str) -> list[date]:
    """Return the dates in `text`, in order: 2026-03-14, 14 March 2026 or March 14, 2026."""
    found = []
    for match in _DATE.finditer(text):
        form = next(form for form in "123" if match[f"y{form}"])
        year, month, day = match[f"y{form}"], match[f"m{form}"], match[f"d{form}"]
        try:
            number = _MONTHS.get(month[:3].lower()) or int(month)
            found.append(date(int(year), number, int(day)))
        except ValueError:
            continue  # 31 February is no date
    return found


def quantities_in(text: str) -> list[Quantity]:
    """Return the numbers with a known unit in `text`, in order."""
    found = []
    for amount, name in _QUANTITY.findall(text):
        unit = UNIT_NAMES.get(name.lower())
        if unit is not None:
            found.append(Quantity(float(amount.replace(",", "")), unit))
    return found


def without_quantities(text: str) -> str:
    """Return `text` without what could be a number and its unit."""
    return _QUANTITY.sub(" ", text)
