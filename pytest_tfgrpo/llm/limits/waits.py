"""Waits: how long a server asks to wait, in each of the ways in which servers say so."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pytest_tfgrpo.core.wire.wire import Json

NUMBER = r"[0-9]{1,13}(?:\.[0-9]{1,9})?"
PLAIN = re.compile(NUMBER)
SPAN = re.compile(
    rf"(?:{NUMBER}\s*(?:ms|milliseconds?|us|µs|ns|[smhd]|sec(?:ond)?s?|min(?:ute)?s?|hours?|days?)[\s,]*)+"
)
PIECE = re.compile(rf"({NUMBER})\s*([a-zµ]+)")
UNITS = {
    "ms": 1e-3,
    "mi": 60.0,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
SAID = re.compile(
    r"(?:try(?:ing)? again|retry(?:ing)?|wait|available)[^.;\n]{0,40}?\b(?:in|after|for|at least|about)?\s*"
    rf"({SPAN.pattern})",
    re.IGNORECASE,
)
"""A sentence like `Please try again in 1m30.5s`."""
EPOCH_S, EPOCH_MS = 1e9, 1e12
"""From here on a number is no span but a time, in seconds or milliseconds since 1970."""
KEYS = ("retrydelay", "retryafter", "retryafterms", "retryafterseconds", "estimatedtime", "retryin")
DEPTH = 6
WORDS = 2_000
"""Characters of a message that are looked at."""
RESET = re.compile(r"(?:x-|anthropic-)?rate-?limit(?:-(.*))?-reset(?:-(.*))?")
"""Headers that say when a limit is reset: x-ratelimit-reset-tokens, anthropic-ratelimit-tokens-reset."""


def is_about_waiting(header: str) -> bool:
    """Return whether a header, by its lower-case name, may say how long to wait."""
    return "retry-after" in header or "ratelimit" in header.replace("-", "")


def wait_s(headers: Mapping[str, str], body: Json, words: str) -> float:
    """Return the seconds that a refusal asks to wait: 0 where it says nothing that can be read.

    `headers` by lower-case name; `body` is its JSON, `words` its message. Retry-After and the body count
    before the times at which limits are reset.
    """
    asked = asked_s(headers, body, words)
    if asked is None:
        asked = _reset_s(headers)
    return 0.0 if asked is None else asked


def asked_s(headers: Mapping[str, str], body: Json, words: str) -> float | None:
    """Return what Retry-After or else the body asks for; None: neither says anything."""
    asked = _first_s(headers, "retry-after-ms", 1e-3)
    if asked is None:
        asked = _first_s(headers, "retry-after", 1.0)
    if asked is None:
        asked = next(_in_body(body, DEPTH), None)
    if asked is None and (found := SAID.search(words[:WORDS])):
        asked = span_s(found[1])
    return asked


def _first_s(headers: Mapping[str, str], name: str, unit: float) -> float | None:
    """Return what a header asks for, or else one of that name behind a prefix, as Azure's ``x-ms-``."""
    named = [headers.get(name, ""), *(value for key, value in headers.items() if key.endswith("-" + name))]
    return next((asked for value in named if (asked := span_s(value, unit=unit)) is not None), None)


def span_s(value: str, *, unit: float = 1.0, now: datetime | None = None) -> float | None:
    """Return the seconds that `value` says: a number of units, a span (``1m30s``, ``6ms``), a date or a time.

    None: it says nothing.
    """
    text = value.strip()
    at = time.time() if now is None else now.timestamp()
    if PLAIN.fullmatch(text):
        number = float(text)
        if number >= EPOCH_S and unit == 1.0:
            return max(0.0, (number / 1000 if number >= EPOCH_MS else number) - at)
        return number * unit
    if SPAN.fullmatch(text.lower()):
        pieces = PIECE.findall(text.lower())
        return sum(float(number) * _unit(name) for number, name in pieces)
    date = _date(text)
    return None if date is None else max(0.0, date.timestamp() - at)


def _unit(name: str) -> float:
    if name.startswith("milli"):
        return 1e-3
    return UNITS.get(name[:2]) or UNITS[name[:1]]


def _date(text: str) -> datetime | None:
    if len(text) > 60:
        return None
    try:
        date = (
            datetime.fromisoformat(text)
            if re.match(r"\d{4}-\d\d-\d\dT", text)
            else parsedate_to_datetime(text)
        )
        return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _in_body(value: Json, depth: int) -> Iterator[float]:
    """Yield waits that the members of a body name, for instance Google's ``retryDelay``."""
    if depth and isinstance(value, dict):
        for key, item in value.items():
            name = key.lower().replace("_", "").replace("-", "")
            if name in KEYS or name.endswith("ratelimitreset"):
                text = str(item)[:100] if isinstance(item, str | int | float) else ""
                asked = span_s(text, unit=1e-3 if name.endswith("ms") else 1.0)
                if asked is not None:
                    yield asked
                    continue
            yield from _in_body(item, depth - 1)
    elif depth and isinstance(value, list):
        for item in value[:20]:
            yield from _in_body(item, depth - 1)


ITEM = re.compile(r";\s*([rt])\s*=\s*([0-9]{1,10})(?![0-9])")
"""What is left and when it is reset, in an item of ``RateLimit: "default";r=0;t=3``."""


def _listed_s(headers: Mapping[str, str]) -> Iterator[float]:
    """Yield when the limits are reset that RateLimit, as the IETF drafts it, lists as used up."""
    for item in headers.get("ratelimit", "")[:WORDS].split(","):
        said = dict(ITEM.findall(item))
        if int(said.get("r", 1)) == 0 and "t" in said:
            yield float(said["t"])


def _reset_s(headers: Mapping[str, str]) -> float | None:
    """Return when the limit is reset that is used up; where no header says which it is, the first reset."""
    used_up, others = list(_listed_s(headers)), list[float]()
    for name, value in headers.items():
        found = RESET.fullmatch(name)
        asked = None if found is None else span_s(value)
        if asked is None:
            continue
        left = headers.get(name.replace("reset", "remaining"), "").strip()
        (used_up if re.fullmatch(r"-?0+(?:\.0+)?|-[0-9.]+", left) else others).append(asked)
    return max(used_up) if used_up else min(others, default=None)
