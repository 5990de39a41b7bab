"""Checks on an answer that is JSON: json (subset) and json_schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.fences import fences
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import Violation, compile_foreign
from pytest_tfgrpo.core.wire.stamp import canonical
from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.core.wire.wire import Json, leaves
from pytest_tfgrpo.scoring.checks.answer import number_texts
from pytest_tfgrpo.scoring.checks.js_regex import as_python
from pytest_tfgrpo.scoring.checks.patterns import search
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    failed,
    verdict,
)
from pytest_tfgrpo.scoring.checks.signs import composed, is_composed

BLANK = " \t\r\n\f\v\ufeff\u200b"
FIRST = frozenset('{["-0123456789tfn')
"""Characters with which JSON begins."""
MEMBER = re.compile(r'"[ \t\n\r]*:')
TOO_DEEP = "it is nested too deeply"
MAX_DEPTH = 100
"""An answer nested more deeply is refused, so that no recursion over it can break a check."""


class UnsureJson(ValueError):
    """JSON of which nobody can be sure what it says: nested too deeply, or with a key twice."""


def parse_answer(text: str) -> tuple[Json, str]:
    """Return the JSON value that is the whole `text`, or stands in a block of code, and in which.

    Which block counts, `json_blocks` says. Its texts are composed. Raises ValueError when there is none, as
    UnsureJson where it is not sure.
    """
    body = text.strip(BLANK)
    if body[:1] in FIRST:
        try:
            return _load(body), ""
        except UnsureJson:
            raise
        except ValueError:
            blocks = json_blocks(body)
            if not blocks:
                raise
    else:
        blocks = json_blocks(body)
        if not blocks:
            return _load(body), ""
    where = f"the last of {len(blocks)} blocks" if len(blocks) > 1 else "the block"
    try:
        return _load(blocks[-1].strip(BLANK)), f" (in {where} of code)" if len(blocks) > 1 else ""
    except UnsureJson:
        raise
    except ValueError as error:
        raise ValueError(f"{where} of code is not JSON: {error}") from None


def json_blocks(text: str) -> list[str]:
    """Return the blocks of code that may hold the answer, of which the last counts.

    Those that are called JSON; where none is, those that are called nothing, else all.
    """
    found = fences(text)
    if len(found) == 1:
        return [found[0].text]
    if found:
        named = [fence.text for fence in found if "json" in fence.language]
        plain = [fence.text for fence in found if not fence.language]
        return named or plain or [fence.text for fence in found]
    inline = text.strip("`") if text[:1] == text[-1:] == "`" else "`"
    return [] if "`" in inline else [inline]


def _load(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=finite)
    except RecursionError:
        raise UnsureJson(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        before, after = text[: error.pos].rstrip()[-1:], text[error.pos :].lstrip()[:1]
        if (before == "," and after in ("}", "]")) or error.msg.startswith("Illegal trailing"):
            raise ValueError(f"there is a comma before the end of a list or object: {error}") from None
        raise
    keys, depth = _keys_and_depth(value)
    if depth > MAX_DEPTH:
        raise UnsureJson(TOO_DEEP)
    if keys < text.count(":") and keys < len(MEMBER.findall(text)):  # one may be lost, or stand in a text
        json.loads(text, object_pairs_hook=_members)
    if not is_composed(text) or "\\u" in text:
        value = composed_json(value)
    return value


def _has_more_than_ascii(text: str) -> bool:
    return not text.isascii() or "\\u" in text


def _keys_and_depth(value: Json) -> tuple[int, int]:
    """Return how many keys `value` has in all its objects, and how deeply it is nested."""
    keys, depth, level = 0, 0, [value]
    while True:
        below: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                keys += len(item)
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return keys, depth
        depth, level = depth + 1, below


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return the object with these members; raises UnsureJson when a key stands twice in it."""
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise UnsureJson(f"the key {short(key)} occurs twice in one object")
        found[key] = value
    return found


def composed_json(value: Json) -> Json:
    """Return a value with its texts and keys composed; raises UnsureJson where two keys become one."""
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, Mapping):
        return _members([(composed(key), composed_json(part)) for key, part in value.items()])
    return [composed_json(part) for part in value] if isinstance(value, list | tuple) else value


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


def _parsed(context: CheckContext) -> tuple[Json, str] | str:
    """Return the value of an answer and where it stands, or why it is none; raises Undecided."""
    try:
        return parse_answer(context.answer)
    except UnsureJson as error:
        raise Undecided(f"expected JSON, got {short(context.answer)}: {error}") from None
    except ValueError as error:
        return f"expected JSON, got {short(context.answer)}: {error}"


def _json(check: Check, context: CheckContext) -> CheckResult:
    parsed = _parsed(context)
    if isinstance(parsed, str):
        return failed(check, parsed)
    got, where = parsed
    found = mismatch(check.params["value"], got)
    if found is not None and _has_more_than_ascii(context.answer):
        found = mismatch(composed_json(check.params["value"]), got)
    return verdict(check, None if found is None else found + where)


def _answers(value: Json) -> Iterator[str]:
    for leaf in leaves(value):
        if isinstance(leaf, str):
            yield leaf
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            yield from number_texts(leaf)


@lru_cache(maxsize=256)
def _compiled(schema_text: bytes) -> Callable[[Json], list[Violation]]:
    return compile_foreign(composed_json(json.loads(schema_text)), _search)


def _search(pattern: str, text: str) -> bool:
    """Return whether a schema's pattern is found, as `search` does; JSON Schema means JavaScript's."""
    return search(_meant(pattern), text)


@lru_cache(maxsize=1024)
def _meant(pattern: str) -> str:
    try:
        return as_python(pattern)
    except ValueError:  # what no JavaScript knows for certain, such as (?i), is read as in `regex`
        return pattern


def _check_schema(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    try:
        _compiled(canonical(params["schema"]))
    except ValueError as error:
        raise BadParam("schema", f"is not a schema that can be used here: {error}") from None
    return params


def _json_schema(check: Check, context: CheckContext) -> CheckResult:
    parsed = _parsed(context)
    if isinstance(parsed, str):
        return failed(check, parsed)
    got, where = parsed
    try:
        found = _compiled(canonical(check.params["schema"]))(got)
    except TimeoutError:
        raise Undecided(f"a pattern of the schema took too long on {short(context.answer)}") from None
    if not found:
        return verdict(check, None)
    return verdict(check, f"{found[0].pointer or 'answer'}: {found[0].message}{where}")


JSON = CheckKind(
    name="json",
    params=builtin_params("json"),
    evaluate=_json,
    blocking=False,
    answers=lambda check: tuple(dict.fromkeys(_answers(check.params["value"]))),
)
JSON_SCHEMA = CheckKind(
    name="json_schema", params=builtin_params("json_schema"), evaluate=_json_schema, prepare=_check_schema
)
