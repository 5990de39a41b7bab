"""JSON from hostile text: duplicate keys, NaN, infinities and half surrogate pairs are refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import MAX_DEPTH, Builder, Document, Refused

TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]\n]|[^\s{}\[\],:"]+')


class WrittenNumber(float):
    """A number with a point or an exponent, which knows how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """Raises ValueError where `text` is no finite number."""
        number = super().__new__(cls, _finite(text))
        number.text = text
        return number


def parse_json(text: str, first_line: int = 1, *, as_written: bool = False) -> Document:
    """Return the document that `text` is, with each float `as_written`, a WrittenNumber; raises Refused."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise Refused(first_line + error.lineno - 1, f"not JSON: {error.msg}, column {error.colno}") from None
    except RecursionError:
        raise Refused(first_line, f"nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise Refused(first_line, f"not JSON: {error}") from None
    return _build(text, first_line, as_written)


def _build(text: str, line: int, as_written: bool) -> Document:
    """Walk over text that is JSON except for what the grammar of `json.loads` lets pass."""
    builder = Builder()
    for match in TOKEN.finditer(text):
        token = match[0]
        if token == "\n":
            line += 1
        elif token in "{[":
            builder.begin({} if token == "{" else [], line)
        elif token in "}]":
            builder.end()
        else:
            value = json.loads(token)
            if isinstance(value, float) and not math.isfinite(value):
                raise Refused(line, f"{short(token)} is not a finite number", builder.here())
            builder.scalar(WrittenNumber(token) if as_written and isinstance(value, float) else value, line)
    return Document(builder.root, builder.lines)


class _Odd(ValueError):
    """Something that only the slow parser may judge."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Odd
    return found


def _refuse(_constant: str) -> NoReturn:
    raise _Odd


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _Odd
    return number


_FAST = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
_FAST_AS_WRITTEN = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse, parse_float=WrittenNumber
)


def parse_json_line(text: str, line: int, *, as_written: bool = False) -> Json:
    """Return the value that one line holds, as `parse_json` does at a tenth of its cost; raises Refused."""
    surrogates = "\\ud" in text or "\\uD" in text
    if not surrogates and text.count("{") + text.count("[") <= MAX_DEPTH:
        try:
            return (_FAST_AS_WRITTEN if as_written else _FAST).decode(text)
        except ValueError:
            pass
    return parse_json(text, line, as_written=as_written).value
