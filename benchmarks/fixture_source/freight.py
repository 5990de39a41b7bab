"""Domain `freight`: weights, lengths and driving times at a haulier."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from fixture_source.shape import Data, Family, case

# Exact by definition: the international pound and yard, and their parts.
_POUND = Fraction("0.45359237")
_YARD = Fraction("0.9144")
_SIZE = {
    "kg": Fraction(1),
    "g": Fraction(1, 1000),
    "lb": _POUND,
    "oz": _POUND / 16,
    "stone": _POUND * 14,
    "km": Fraction(1000),
    "m": Fraction(1),
    "cm": Fraction(1, 100),
    "yd": _YARD,
    "ft": _YARD / 3,
    "inches": _YARD / 36,
    "mi": _YARD * 1760,
    "l": Fraction(1),
    "ml": Fraction(1, 1000),
    "h": Fraction(60),
    "min": Fraction(1),
}


def _base(text: str) -> Fraction:
    return sum((Fraction(n) * _SIZE[unit] for n, unit in re.findall(r"([\d.]+) ([a-z]+)", text)), Fraction())


def _in_unit(data: Data) -> Fraction:
    return _base(data["size"]) / _SIZE[data["to"]]


def _billed(data: Data) -> float:
    scale = 10 ** data["decimals"]
    return (_in_unit(data) * scale + Fraction(1, 2)).__floor__() / scale


def _clock(data: Data) -> str:
    minutes = _base(data["size"])
    assert minutes.denominator == 1, data
    return f"{int(minutes) // 60}:{int(minutes) % 60:02d}"


def _measure(answer: Any, data: Data) -> list[dict[str, Any]]:
    unit = data["to"] if "to" in data else data["size"].split()[1].strip(",")
    return [
        {"kind": "number", "value": round(float(answer), 9), "rel_tol": 1e-6, "weight": 3},
        {"kind": "regex", "pattern": rf"\d ?{unit}$"},
    ]


def _clock_checks(answer: Any, _: Data) -> list[dict[str, Any]]:
    return [{"kind": "regex", "pattern": rf"^{answer}$"}]


FAMILIES = (
    Family(
        domain="freight",
        name="label",
        chain=("read_quantity", "convert_unit"),
        truth=_in_unit,
        checks=_measure,
        train=(
            case('The crate weighs "{size}". What does the label say in kg?', size="38 lb", to="kg"),
            case('Label in pounds for a barrel of "{size}".', size="25 kg", to="lb"),
            case('Rewrite the label: "{size}", converted to metres.', size="12 ft", to="m"),
            case(
                'Customs in Basel rejects miles. The waybill label shows "{size}"; put the distance in km.',
                size="230 mi",
                to="km",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('A pallet is marked "{size}": give the label in ounces.', size="750 g", to="oz"),
            case('The label must be metric. The pole is "{size}" long; in m, please.', size="15 yd", to="m"),
        ),
    ),
    Family(
        domain="freight",
        name="consignment",
        chain=("add_quantities",),
        truth=lambda d: _base(d["size"]) / _SIZE[d["size"].split()[1].strip(",")],
        checks=_measure,
        train=(
            case('What does the consignment "{size}" weigh?', size="2 kg, 750 g and 1.5 kg"),
            case('One consignment, three parcels: "{size}". Total weight?', size="5 lb, 8 oz, 2 lb"),
            case(
                'The consignment is booked as one piece. Pieces: "{size}". Whole length?',
                size="1.2 m, 80 cm, 45 cm",
            ),
            case(
                'Depot 9 bundles "{size}" of cleaning fluid into a single consignment. Declare the volume.',
                size="600 ml, 1.5 l, 250 ml",
                tags=["realistic"],
            ),
        ),
        eval=(
            case('Declare the weight of a consignment made of "{size}".', size="900 g, 2.4 kg, 300 g"),
            case(
                'Four pieces travel as one consignment: "{size}". Length all told?',
                size="3 ft, 2 ft, 18 inches, 6 inches",
            ),
        ),
    ),
    Family(
        domain="freight",
        name="billing-weight",
        chain=("read_quantity", "convert_unit", "round_number"),
        truth=_billed,
        checks=_measure,
        train=(
            case(
                'Billing weight of a parcel of "{size}", rounded to a whole kg?',
                size="61 lb",
                to="kg",
                decimals=0,
            ),
            case(
                'We bill by the rounded kg. Parcel: "{size}". Billing weight?',
                size="95 oz",
                to="kg",
                decimals=0,
            ),
            case(
                'Work out the billing weight, in kg rounded to one decimal, for "{size}".',
                size="18.3 lb",
                to="kg",
                decimals=1,
            ),
            case(
                'Hauliers round before they bill. The sack is stamped "{size}"; which billing weight in kg, '
                "to one decimal, goes on the invoice?",
                size="7 stone",
                to="kg",
                decimals=1,
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                'Invoice 77 needs a billing weight: "{size}" as whole kilograms.',
                size="133 lb",
                to="kg",
                decimals=0,
            ),
            case(
                'For "{size}", what billing weight in lb, rounded to one decimal?',
                size="9 kg",
                to="lb",
                decimals=1,
            ),
        ),
    ),
    Family(
        domain="freight",
        name="driving-time",
        chain=("add_quantities", "clock_time"),
        truth=_clock,
        checks=_clock_checks,
        train=(
            case(
                'Driver log "{size}": driving time on the tachograph sheet, in hours and minutes?',
                size="3 h, 45 min, 2 h",
            ),
            case('Tachograph legs "{size}". Driving time?', size="95 min, 80 min, 40 min"),
            case('Write the driving time, h:mm, for legs of "{size}".', size="1.5 h, 50 min, 2.25 h"),
            case(
                'Rest rules look at the whole driving time. Legs today: "{size}". Which clock figure goes on '
                "the tachograph sheet?",
                size="2 h, 35 min, 110 min, 1 h",
                tags=["realistic"],
            ),
        ),
        eval=(case('Legs of "{size}" - driving time for the tachograph?', size="70 min, 3 h, 25 min"),),
    ),
)
