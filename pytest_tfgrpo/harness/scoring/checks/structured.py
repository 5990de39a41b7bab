"""Checks on an answer that is JSON: json (subset) and json_schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.fences import fences
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

BLANK = " \t\r\n\f\v\ufeff\u200b"
TOO_DEEP = "it is nested too deeply"
MAX_DEPTH = 100
"""An answer nested more deeply is refused, so that no recursion over it can break a check."""


class TooDeep(ValueError):
    """JSON that is nested too deeply to be looked at."""


def parse_answer(text: str) -> Json:
    """Return the JSON value that is the whole `text`, or stands in a block of code; see `json_blocks`.

    Raises ValueError when there is none, as TooDeep where it is nested too deeply.
    """
    body = text.strip(BLANK)
    try:
        value = _load(body)
    except TooDeep:
        raise
    except ValueError:
        blocks = json_blocks(body)
        if not blocks:
            raise
        try:
            value = _load(blocks[-1].strip(BLANK))
        except TooDeep:
            raise
        except ValueError as error:
            where = f"the last of {len(blocks)} blocks" if len(blocks) > 1 else "the block"
            raise ValueError(f"{where} of code is not JSON: {error}") from None
    if extent(value)[1] > MAX_DEPTH:
        raise TooDeep(TOO_DEEP)
    return value


def json_blocks(text: str) -> list[str]:
    """Return the blocks of code that may hold the answer, of which the last counts.

    Those that are called JSON; where none is, those that are called nothing, else all.
    """
    found = fences(text)
    named = [fence.text for fence in found if "json" in fence.language]
    plain = [fence.text for fence in found if not fence.language]
    if found:
        return named or plain or [fence.text for fence in found]
    inline = text.strip("`")
    return [inline] if len(inline) < len(text) and "`" not in inline and text[0] == text[-1] == "`" else []


def _load(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=finite)
    except RecursionError:
        raise TooDeep(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        before, after = text[: error.pos].rstrip(), text[error.pos :].lstrip()
        if (before.endswith(",") and after[:1] in ("}", "]")) or (error.msg.startswith("Illegal trailing")):
            raise ValueError(f"there is a comma before the end of a list or object: {error}") from None
        raise


def _which(text: str) -> str:
    """Return which block was read, where an answer has several."""
    blocks = json_blocks(text.strip(BLANK))
    return f" (in the last of {len(blocks)} blocks of code)" if len(blocks) > 1 else ""


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
    found = mismatch(check.params["value"], got)
    return verdict(check, None if found is None else found + _which(context.answer))


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
    if not found:
        return verdict(check, None)
    return verdict(check, f"{found[0].pointer or 'answer'}: {found[0].message}{_which(context.answer)}")


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
