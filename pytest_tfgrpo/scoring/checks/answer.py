"""Checks on the text of the answer: exact, contains, number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    verdict,
)
from pytest_tfgrpo.scoring.checks.signs import as_spelled, composed, hint, with_blanks
from pytest_tfgrpo.scoring.numerals.place import UnsureNumeral
from pytest_tfgrpo.scoring.numerals.reader import last_number

LONGEST = 12
"""How many times longer than a text is its equal: four for composing characters, three for folding case."""


def _exact(check: Check, context: CheckContext) -> CheckResult:
    wanted, got = check.params["value"], context.answer
    if check.params.get("strip", True):
        wanted, got = wanted.strip(), got.strip()
    if wanted == got:
        return verdict(check, None)
    if not (got.isascii() and wanted.isascii()) and len(got) <= LONGEST * max(1, len(wanted)):
        wanted = composed(wanted)
        got = as_spelled(got, wanted)
    same = wanted.casefold() == got.casefold() if check.params.get("ignore_case") else wanted == got
    if same:
        return verdict(check, None)
    like = hint(wanted, got) if len(wanted) == len(got) else ""
    return verdict(check, f"expected {short(wanted)}, got {short(got)}{like}")


def _values(check: Check) -> tuple[str, ...]:
    return (check.params["value"],) if "value" in check.params else tuple(check.params["values"])


def _contains(check: Check, context: CheckContext) -> CheckResult:
    text = composed(context.answer)
    absent = [value for value in map(composed, _values(check)) if value not in text]
    if absent and not text.isascii():
        plain = with_blanks(text, "")
        absent = absent if plain is text else [value for value in absent if value not in plain]
    if not absent:
        return verdict(check, None)
    missing = ", ".join(map(short, absent[:5]))
    return verdict(check, f"expected to find {missing} in {short(text)}{hint(absent[0], text)}")


def _number(check: Check, context: CheckContext) -> CheckResult:
    wanted = check.params["value"]
    try:
        got = last_number(context.answer)
    except UnsureNumeral as unsure:
        raise Undecided(f"expected {wanted!r}; the last number, {unsure}") from None
    if got is None or not math.isfinite(got):
        return verdict(check, f"expected {wanted!r}, found no finite number in {short(context.answer)}")
    tolerance = max(check.params.get("abs_tol", 0), check.params.get("rel_tol", 1e-9) * abs(wanted))
    if abs(got - wanted) <= tolerance:
        return verdict(check, None)
    return verdict(check, f"expected {wanted!r} within {tolerance:g}, got {got!r} as the last number")


def _finite(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    for key in params:
        try:
            float(params[key])
        except OverflowError:
            raise BadParam(key, f"{short(params[key])} is too large for a number") from None
    return params


def number_texts(value: float) -> tuple[str, ...]:
    """Return the usual ways to write `value`, which the leakage screen looks for."""
    whole = [int(value)] if isinstance(value, int) or (math.isfinite(value) and value == int(value)) else []
    return tuple(dict.fromkeys(text for n in (value, *whole) for text in (str(n), f"{n:,}")))


EXACT = CheckKind(
    name="exact",
    params=builtin_params("exact"),
    evaluate=_exact,
    blocking=False,
    answers=lambda check: (check.params["value"],),
)
CONTAINS = CheckKind(
    name="contains",
    params=builtin_params("contains"),
    evaluate=_contains,
    blocking=False,
    answers=_values,
)
NUMBER_KIND = CheckKind(
    name="number",
    params=builtin_params("number"),
    evaluate=_number,
    prepare=_finite,
    blocking=False,
    answers=lambda check: number_texts(check.params["value"]),
)
