"""Units of measure: their names, and how each relates to the base unit of its measure."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Unit(NamedTuple):
    """base = amount * factor + offset."""

    measure: Literal["mass", "length", "volume", "time", "temperature"]
    factor: float
    offset: float = 0.0


UNITS: dict[str, Unit] = {
    "g": Unit("mass", 0.001),
    "kg": Unit("mass", 1.0),
    "t": Unit("mass", 1000.0),
    "oz": Unit("mass", 0.028349523125),
    "lb": Unit("mass", 0.45359237),
    "stone": Unit("mass", 6.35029318),
    "mm": Unit("length", 0.001),
    "cm": Unit("length", 0.01),
    "m": Unit("length", 1.0),
    "km": Unit("length", 1000.0),
    "inch": Unit("length", 0.0254),
    "ft": Unit("length", 0.3048),
    "yd": Unit("length", 0.9144),
    "mi": Unit("length", 1609.344),
    "ml": Unit("volume", 0.001),
    "l": Unit("volume", 1.0),
    "pt": Unit("volume", 0.56826125),
    "gal": Unit("volume", 4.54609),
    "s": Unit("time", 1.0),
    "min": Unit("time", 60.0),
    "h": Unit("time", 3600.0),
    "days": Unit("time", 86400.0),
    "°C": Unit("temperature", 1.0, 273.15),
    "°F": Unit("temperature", 5 / 9, 273.15 - 32 * 5 / 9),
}
"""Pints and gallons are imperial; base units are kg, m, l, s and K."""

_NAMES = {
    "g": "g gram grams gramme grammes",
    "kg": "kg kilo kilos kilogram kilograms",
    "t": "t tonne tonnes",
    "oz": "oz ounce ounces",
    "lb": "lb lbs pound pounds",
    "stone": "stone stones",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "inch": "inch inches",
    "ft": "ft foot feet",
    "yd": "yd yard yards",
    "mi": "mi mile miles",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "l": "l litre litres liter liters",
    "pt": "pt pint pints",
    "gal": "gal gallon gallons",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "days": "day days",
    "°C": "°c celsius centigrade",
    "°F": "°f fahrenheit",
}

UNIT_NAMES: dict[str, str] = {name: unit for unit, names in _NAMES.items() for name in names.split()}
"""Every name of a unit, in lower case, to its canonical name."""
