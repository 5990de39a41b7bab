"""Tools on measured quantities."""

from __future__ import annotations

from pytest_tfgrpo.actors.offline.measures import UNITS
from pytest_tfgrpo.actors.offline.reading import quantities_in
from pytest_tfgrpo.actors.offline.values import Quantity, ToolError


def read_quantity(text: str) -> Quantity:
    """Return the first quantity in `text`; raises ToolError when there is none."""
    quantities = quantities_in(text)
    if not quantities:
        raise ToolError("no quantity with a unit in the text")
    return quantities[0]


def add_quantities(text: str) -> Quantity:
    """Return the sum of all quantities in `text`, in the unit of the first."""
    first = read_quantity(text)
    amounts = [convert_unit(q, first.unit).amount for q in quantities_in(text)]
    return Quantity(sum(amounts), first.unit)


def convert_unit(quantity: Quantity, unit: str) -> Quantity:
    """Return `quantity` in another unit of the same measure; raises ToolError across measures."""
    source, target = UNITS[quantity.unit], UNITS[unit]
    if source.measure != target.measure:
        raise ToolError(f"cannot convert {quantity.unit} to {unit}")
    base = quantity.amount * source.factor + source.offset
    return Quantity((base - target.offset) / target.factor, unit)


def clock_time(quantity: Quantity) -> str:
    """Return a duration as ``h:mm``, rounded to the minute; raises ToolError on other measures."""
    if UNITS[quantity.unit].measure != "time":
        raise ToolError(f"{quantity.unit} is not a unit of time")
    hours, minutes = divmod(round(convert_unit(quantity, "min").amount), 60)
    return f"{hours}:{minutes:02d}"
