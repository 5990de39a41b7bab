"""Tools on numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from pytest_tfgrpo.actors.offline.reading import numbers_in
from pytest_tfgrpo.actors.offline.values import Quantity, ToolError

Number = int | float


def find_numbers(text: str) -> list[Number]:
    """Return the numbers in `text`, in order, dates left out; raises ToolError when there are none."""
    numbers = numbers_in(text)
    if not numbers:
        raise ToolError("no numbers in the text")
    return numbers


def add_numbers(numbers: Sequence[Number]) -> Number:
    """Return the sum; whole when all parts are."""
    return sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers)


def average_numbers(numbers: Sequence[Number]) -> float:
    """Return the arithmetic mean."""
    return math.fsum(numbers) / len(numbers)


def median_number(numbers: Sequence[Number]) -> Number:
    """Return the median; of an even count, the mean of the two in the middle."""
    return statistics.median(numbers)


def largest_number(numbers: Sequence[Number]) -> Number:
    """Return the largest number."""
    return max(numbers)


def number_spread(numbers: Sequence[Number]) -> Number:
    """Return the largest less the smallest number."""
    return max(numbers) - min(numbers)


def add_percent(number: Number, percent: float) -> float:
    """Return `number` raised by `percent` per cent."""
    return number * (1 + percent / 100)


def round_number(number: Number | Quantity, places: int = 0) -> Number | Quantity:
    """Return a number or quantity rounded half up to `places` decimals, whole without any."""
    if isinstance(number, Quantity):
        return Quantity(float(_rounded(number.amount, places)), number.unit)
    return _rounded(number, places)


def _rounded(number: Number, places: int) -> Number:
    if not 0 <= places <= 10:
        raise ToolError(f"cannot round to {places} decimals")
    # 10 digits take the float's noise away first: 2.675 is meant, not 2.67499999
    exact = Decimal(f"{number:.10f}").quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return float(exact) if places else int(exact)
