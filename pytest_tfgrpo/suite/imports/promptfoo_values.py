"""Values and templates as promptfoo has them: JavaScript reads its YAML, Nunjucks fills in variables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import parse_json, parse_json_line
from pytest_tfgrpo.suite.documents.yaml_text import CONSTANTS, parse_yaml
from pytest_tfgrpo.suite.imports.imported import Imported

MERGE = "<<"
SAFE = 2**53
"""Whole numbers below it are exact in JavaScript."""
ROUNDS = 5
"""How often promptfoo fills variables into the values of variables."""
LONGEST = 10_000_000
"""Characters of a text after variables were filled in."""
LONGEST_NUMBER = 300
"""Digits of a number; one with more is a text."""
VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*\}\}")
_MARKS = ("{{", "{%", "{#")
_WHOLE = re.compile(r"[-+]?(?:[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)")
_REAL = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?")
_ODD = re.compile(r"[-+]?(?:\.(?:inf|Inf|INF|nan|NaN|NAN)|0?[box]?[0-9][0-9a-fA-F]*(?:_[0-9a-fA-F]+)+)")


def parse_file(found: Imported, text: str, name: str, where: str) -> Json:
    """Return what a YAML, JSON or JSON lines text is, by the end of its name; raises Refused."""
    if name.endswith(".jsonl"):
        lines = enumerate(text.split("\n"), 1)
        return [_plain_numbers(parse_json_line(line, n)) for n, line in lines if line.strip()]
    if name.endswith(".json"):
        with suppress(Refused):  # YAML may look like JSON
            return _plain_numbers(parse_json(text).value)
    return merged(parse_yaml(text, plain=partial(_plain, found, where)).value)


def _plain(found: Imported, where: str, text: str) -> Json:
    """Return what an unquoted scalar is to JavaScript: 010 is ten, 1e3 a thousand, `no` a text."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    digits = text.lstrip("+-")
    if _WHOLE.fullmatch(text) and len(digits) < LONGEST_NUMBER:
        number = int(digits, 0) if digits[1:2] in ("x", "o", "b") else int(digits)
        return -number if text.startswith("-") else number
    if _REAL.fullmatch(text) and math.isfinite(float(text)):
        return _plain_numbers(float(text))
    if _DATE.fullmatch(text) or _ODD.fullmatch(text):
        kind = "dates" if _DATE.fullmatch(text) else "numbers such as .inf and 1_000"
        found.note(f"{kind} without quotes are texts as they are written; promptfoo may write others", where)
    return text


def _plain_numbers(value: Json) -> Json:
    """Return a value with 1.0 as 1, since JavaScript has one kind of number."""
    if isinstance(value, dict):
        return {key: _plain_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(one) for one in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < SAFE
    return int(value) if whole else value


def merged(value: Json) -> Json:
    """Return a value of YAML with its merge keys carried out; raises ValueError for what cannot be merged."""
    if isinstance(value, list):
        return [merged(one) for one in value]
    if not isinstance(value, dict):
        return value
    own = {key: merged(one) for key, one in value.items() if key != MERGE}
    if MERGE not in value:
        return own
    sources = merged(value[MERGE])
    found: dict[str, Json] = {}
    for source in reversed(sources if isinstance(sources, list) else [sources]):
        if not isinstance(source, dict):
            raise ValueError("a merge key `<<` that names no object")
        found |= source
    return found | own


def js_text(value: Json) -> str:
    """Return a value as JavaScript makes a text of it; an object or list is JSON without blanks."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        mantissa, _, exponent = repr(value).partition("e")
        if exponent and not -7 < int(exponent) < 21:
            return f"{mantissa}e{int(exponent):+d}"
        return format(Decimal(repr(value)), "f")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def render(template: str, values: Mapping[str, Json]) -> str:
    """Return `template` with its variables filled in; raises ValueError for anything else in braces."""

    def fill(match: re.Match[str]) -> str:
        value: Json = values
        for part in match[1].split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise ValueError(f"templates with a variable that has no value: {match[1]}")
            value = value[part]
        return "" if value is None else js_text(value)

    if any(mark in VARIABLE.sub("", template) for mark in _MARKS):
        raise ValueError("templates with more than {{ variable }}")
    text = VARIABLE.sub(fill, template)
    if len(text) > LONGEST:
        raise ValueError(f"templates that become more than {LONGEST:,} characters")
    return text


def with_joined_lists(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return variables as an assertion has them: a list is its texts with commas between."""
    return {key: _joined(value) if isinstance(value, list) else value for key, value in values.items()}


def _joined(values: list[Json]) -> Json:
    if any(isinstance(one, dict | list) for one in values):
        return values
    return ",".join("" if one is None else js_text(one) for one in values)


def resolved(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return variables with others filled into their values; raises ValueError for what is more than that."""
    found = {
        key: value.removesuffix("\n") if isinstance(value, str) else value for key, value in values.items()
    }
    for _ in range(ROUNDS):
        open_ = {key for key, value in found.items() if isinstance(value, str) and _is_template(value)}
        if not open_:
            return found
        found |= {key: render(found[key], found) for key in open_}
    raise ValueError("variables whose values refer to each other")


def _is_template(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


def filled(value: Json, render_text: Callable[[str], str]) -> Json:
    """Return a value with its texts rendered."""
    if isinstance(value, str):
        return render_text(value)
    if isinstance(value, list):
        return [filled(one, render_text) for one in value]
    if isinstance(value, dict):
        return {key: filled(one, render_text) for key, one in value.items()}
    return value
