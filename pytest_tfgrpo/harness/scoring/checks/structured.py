"""Checks on an answer that is JSON: json (subset) and json_schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.schema import Violation, compile_foreign, extent, short
from pytest_tfgrpo.core.stamp import canonical
from pytest_tfgrpo.core.strict import finite
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.scoring.checks.answer import number_texts
from pytest_tfgrpo.harness.scoring.checks.patterns import search
from pytest_tfgrpo.harness.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    verdict,
)

FENCE = "```"
TOO_DEEP = "it is nested too deeply"
MAX_DEPTH = 100
"""An answer nested more deeply is refused, so that no recursion over it can break a check."""


class TooDeep(ValueError):
    """JSON that is nested too deeply to be looked at."""


def parse_answer(text: str) -> Json:
    """Return the JSON value that is the whole `text`, or stands in its last fenced code block.

    Raises ValueError when there is none, as TooDeep where it is nested too deeply.
    """
    parts = text.split(FENCE)
    try:
        value = json.loads(text, parse_constant=finite)
    except RecursionError:
        raise TooDeep(TOO_DEEP) from None
    except ValueError:
        if len(parts) < 3:
            raise
        last = parts[(len(parts) - 1) // 2 * 2 - 1]
        return parse_answer(last.partition("\n")[2] or last)
    if extent(value)[1] > MAX_DEPTH:
        raise TooDeep(TOO_DEEP)
    return value


def mismatch(wanted: Json, got: Json, where: str = "") -> str | None:
    """Return where `got` lacks what `wanted` has; None when it has all of it.

    Objects may have further keys; arrays match item by item. 1 equals 1.0 and differs from true; two numbers
    with fractions are equal within 1e-9 of the larger.
    """
    at = f" at {where}" if where else ""
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        for key in wanted:
            if key not in got:
                return f"expected a key {key!r}{at}"
        pairs = [(f"{where}/{key}", wanted[key], got[key]) for key in wanted]
    elif isinstance(wanted, list | tuple) and isinstance(got, list | tuple):
        if len(wanted) != len(got):
            return f"expected {len(wanted)} items{at}, got {len(got)}"
        pairs = [(f"{where}/{i}", *pair) for i, pair in enumerate(zip(wanted, got, strict=True))]
    else:
        return None if _equal(wanted, got) else f"expected {short(wanted)}{at}, got {short(got)}"
    return next((found for place, w, g in pairs if (found := mismatch(w, g, place)) is not None), None)


def _equal(wanted: Json, got: Json) -> bool:
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, float) and isinstance(got, float):
        return math.isclose(wanted, got, rel_tol=1e-9)
    return bool(wanted == got)


def _json(check: Check, context: CheckContext) -> CheckResult:
    try:
        got = parse_answer(context.answer)
    except TooDeep as error:
        raise Undecided(f"expected JSON, got {short(context.answer)}: {error}") from None
    except ValueError as error:
        return verdict(check, f"expected JSON, got {short(context.answer)}: {error}")
    return verdict(check, mismatch(check.params["value"], got))


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from number_texts(value)
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(part)


@lru_cache(maxsize=256)
def _compiled(schema_text: bytes) -> Callable[[Json], list[Violation]]:
    return compile_foreign(json.loads(schema_text), search)


def _check_schema(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    try:
        _compiled(canonical(params["schema"]))
    except ValueError as error:
        raise BadParam("schema", f"is not a schema that can be used here: {error}") from None
    return params


def _json_schema(check: Check, context: CheckContext) -> CheckResult:
    try:
        got = parse_answer(context.answer)
    except TooDeep as error:
        raise Undecided(f"expected JSON, got {short(context.answer)}: {error}") from None
    except ValueError as error:
        return verdict(check, f"expected JSON, got {short(context.answer)}: {error}")
    try:
        found = _compiled(canonical(check.params["schema"]))(got)
    except TimeoutError:
        raise Undecided(f"a pattern of the schema took too long on {short(context.answer)}") from None
    return verdict(check, f"{found[0].pointer or 'answer'}: {found[0].message}" if found else None)


JSON = CheckKind(
    name="json",
    params=builtin_params("json"),
    evaluate=_json,
    blocking=False,
    answers=lambda check: tuple(dict.fromkeys(_leaves(check.params["value"]))),
)
JSON_SCHEMA = CheckKind(
    name="json_schema", params=builtin_params("json_schema"), evaluate=_json_schema, prepare=_check_schema
)
