"""Texts of live events as the store keeps them: without secrets and personal data, without what UTF-8 cannot
hold, bounded."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from numbers import Real

from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import Redactor

KEY_CHARS = 200
"""Longest key and name."""
TEXT_CHARS = 20_000
"""Longest prompt and reply; their lengths are reported apart."""
_SLACK = 400
"""Characters beyond a cut that are searched for secrets: half of one has no known shape."""
SEARCHED_CHARS = KEY_CHARS + _SLACK
"""What of a name is looked at."""
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_./#-]{0,14}|[0-9a-fA-F-]{0,64}")
"""Keys that are no secret, and nothing personal, by their length or their letters, which saves the search."""
_REDACTOR = Redactor()
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: Json) -> str:
    """Return `value` as JSON; raises ValueError or TypeError for what is no JSON."""
    return _ENCODER.encode(value)


def stored_text(text: str, limit: int = TEXT_CHARS) -> str:
    """Return the first `limit` characters of `text`, redacted."""
    return _storable(_REDACTOR.redacted(text[: limit + _SLACK])[0])[:limit]


def stored_name(text: str) -> str:
    """Return a short text that comes often, redacted and cut to 200 characters."""
    return _name(text[:SEARCHED_CHARS])


@lru_cache(4096)
def _name(text: str) -> str:
    return stored_text(text, KEY_CHARS)


def stored_key(key: str) -> str:
    """Return the key of a run; what is long, a secret or personal keeps its identity by a digest alone."""
    if _PLAIN_KEY.fullmatch(key) or (
        len(key) <= KEY_CHARS and not _REDACTOR.places(key) and _storable(key) == key
    ):
        return key
    return f"{stored_text(key, KEY_CHARS - 20)} #{identify(key)}"


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def is_number(value: object) -> bool:
    """Return whether `value` is a finite number."""
    return (value.__class__ is float or isinstance(value, Real)) and math.isfinite(value)
