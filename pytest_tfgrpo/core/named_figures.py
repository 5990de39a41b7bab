"""What may be a named score: its name, its scale and its value, from any source."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TypeGuard

from pytest_tfgrpo.core.named_scores import SHARE, Better, MetricScale
from pytest_tfgrpo.core.texts.named_values import short

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A dot separates the name of a source from that of one of its figures."""
UNIT_MAX = 32
"""Characters of a unit."""


def as_scale(unit: object, better: object, most: object) -> MetricScale:
    """Return a scale; raises ValueError saying what is wrong with one of its parts."""
    if not isinstance(unit, str) or len(unit) > UNIT_MAX or not (unit.isprintable() and unit.strip() == unit):
        raise ValueError(f"a unit must be up to {UNIT_MAX} printable characters, not {short(unit)}")
    if not _is_direction(better):
        raise ValueError(f"better must be 'higher' or 'lower', not {short(better)}")
    if not _is_number(most) or not 0 < most <= sys.float_info.max:
        raise ValueError(f"most, the largest possible value, must be a number above 0, not {short(most)}")
    return MetricScale(unit=unit, better=better, most=float(most))


def as_figure(value: object, scale: MetricScale) -> float:
    """Return a value on a scale; raises ValueError for one that is no number or not on it."""
    if _is_number(value) and 0 <= value <= scale.most:
        return float(value)
    unit = f" {scale.unit}" if scale.unit else ""
    hint = "" if scale != SHARE else "; set `most` and `unit` for larger values"
    raise ValueError(f"a score must be a number between 0 and {scale.most:g}{unit}, not {short(value)}{hint}")


def _is_direction(value: object) -> TypeGuard[Better]:
    return isinstance(value, str) and value in ("higher", "lower")


def reported(value: object) -> tuple[float, MetricScale] | None:
    """Return what an agent reported as figure: a number in [0, 1], or a mapping with its value and scale.

    None for anything else: an agent may report what it likes.
    """
    if isinstance(value, bool):
        return float(value), SHARE
    if isinstance(value, int | float):
        return (float(value), SHARE) if 0 <= value <= 1 else None
    if not isinstance(value, Mapping) or "value" not in value or not value.keys() <= _KEYS:
        return None
    try:
        scale = as_scale(value.get("unit", ""), value.get("better", "higher"), value.get("most", 1.0))
        return as_figure(value["value"], scale), scale
    except ValueError:
        return None


_KEYS = {"value", "unit", "better", "most"}


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
