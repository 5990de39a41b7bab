"""Streams: the JSON lines of a coding agent as events, and the values in them, taken as hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pytest_tfgrpo.actors.output import TOKENS_MAX
from pytest_tfgrpo.core.errors import AgentFailure
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.wire.strict import finite, load_json
from pytest_tfgrpo.core.wire.wire import Json

DEPTH_MAX = 64
"""Data nested deeper is kept as text."""
_LIMIT = re.compile(r"\b(?:429|529)\b|rate.?limit|usage limit|quota|overloaded", re.IGNORECASE)
_ACCESS = re.compile(r"\b40[13]\b|unauthori[sz]ed|api key|log ?in\b|credit|billing", re.IGNORECASE)
_LENGTH = re.compile(r"context (?:window|length)|prompt is too long", re.IGNORECASE)


def events_of(stdout: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of `stdout`, one a line; a line that does not look like one is passed over.

    Raises AgentFailure (``garbage``) on a line that begins like an object and is none.
    """
    for number, raw in enumerate(stdout.split(b"\n"), 1):
        line = raw.strip()
        if line.startswith(b"{"):
            try:
                yield _object(line)
            except (ValueError, RecursionError) as error:
                shown = line[:60].decode("utf-8", "replace")
                raise AgentFailure(
                    f"line {number} of the stream is broken: {shown!r}: {error}", "garbage"
                ) from None


def _object(line: bytes) -> dict[str, Any]:
    data = load_json(line.decode("utf-8", "replace"), parse_float=finite, parse_constant=finite)
    if b"\\u" in line:  # lone surrogates, which no file can hold
        data = load_json(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    assert isinstance(data, dict)
    return data


def text(value: Any) -> str:
    """Return `value` when it is a text, else the empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """Return `value` when it is a believable number of tokens, else None."""
    return value if type(value) is int and 0 <= value <= TOKENS_MAX else None


def usage(
    prompt: int | None, completion: int | None, *, reasoning: int | None = 0, cached: int | None = 0
) -> Usage | None:
    """Return tokens as a Usage; None when one of them, or their sum, cannot be believed."""
    if prompt is None or completion is None or reasoning is None or cached is None:
        return None
    told = Usage(prompt=prompt, completion=completion, reasoning=reasoning, cached=cached)
    return told if count(told.total) is not None else None


def amount(value: Any) -> float | None:
    """Return `value` when it is a believable sum of dollars or milliseconds, else None."""
    return float(value) if type(value) in (int, float) and 0 <= value <= TOKENS_MAX else None


def data(value: Any) -> Json:
    """Return `value` as a frame's input: as text when it is nested too deeply for those who read it."""
    return value if _is_flat(value, DEPTH_MAX) else json.dumps(value, ensure_ascii=False)


def _is_flat(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (depth > 0 and all(_is_flat(item, depth - 1) for item in value))


def content(value: Any) -> str:
    """Return the text of a tool's result: a text, or a list of blocks of which texts are joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_block(block) for block in value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _block(block: Any) -> str:
    if isinstance(block, dict) and block.get("type") == "text":
        return text(block.get("text"))
    if isinstance(block, dict):
        return f"[{text(block.get('type')) or 'block'}]"
    return block if isinstance(block, str) else "[block]"


def is_too_long(message: str) -> bool:
    """Return whether a provider's `message` means that the conversation is too long for the model."""
    return _LENGTH.search(message) is not None


def fault_code(message: str) -> str:
    """Return the reason code of a provider's fault: ``rate_limit``, ``auth`` or ``provider``."""
    if _LIMIT.search(message):
        return "rate_limit"
    return "auth" if _ACCESS.search(message) else "provider"
