"""Regular expressions with a time limit, and their check; the only file that imports ``regex``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    TooSlow,
    Undecided,
    builtin_params,
    verdict,
)
from pytest_tfgrpo.scoring.checks.signs import as_spelled, composed

LIMIT_S = 1.0
"""Longest time that one search may take."""
AT_ONCE_S = 0.002
"""Longest time that one may take on an event loop."""


@lru_cache(maxsize=1024)
def _compile(pattern: str, flags: str) -> Any:
    import regex

    try:
        return regex.compile(pattern, sum(getattr(regex, flag.upper()) for flag in set(flags)))
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{short(pattern)} is not a regular expression: {error}") from None


def search(pattern: str, text: str, flags: str = "") -> bool:
    """Return whether `pattern` is found in `text`.

    Raises TimeoutError after one second, and ValueError when the pattern is malformed.
    """
    return _compile(pattern, flags).search(text, timeout=LIMIT_S, concurrent=True) is not None


def reason_against(pattern: str, text: str, flags: str = "") -> str | None:
    """Return why `text` does not hold `pattern`, for a reader; None when it does. Raises Undecided."""
    try:
        found = search(pattern, text, flags)
    except TimeoutError:
        raise Undecided(f"{short(pattern)} took more than {LIMIT_S:g} s on {short(text)}") from None
    return None if found else _mismatch(pattern, text)


def _mismatch(pattern: str, text: str) -> str:
    return f"expected a match of {short(pattern)}, got {short(text)}"


def check_pattern(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    """Return `params` as they are; raises BadParam when ``pattern`` is not a regular expression."""
    try:
        _compile(params["pattern"], params.get("flags", ""))
    except ValueError as error:
        raise BadParam("pattern", str(error)) from None
    return params


def _regex(check: Check, context: CheckContext) -> CheckResult:
    params = check.params
    text = as_spelled(context.answer, params["pattern"])
    return verdict(check, reason_against(composed(params["pattern"]), text, params.get("flags", "")))


def _regex_at_once(check: Check, context: CheckContext) -> CheckResult:
    """Return what `_regex` does, as nearly every search ends sooner than a thread could begin it."""
    pattern, flags = composed(check.params["pattern"]), check.params.get("flags", "")
    text = as_spelled(context.answer, pattern)
    try:
        found = _compile(pattern, flags).search(text, timeout=AT_ONCE_S) is not None
    except TimeoutError:
        raise TooSlow from None
    return verdict(check, None if found else _mismatch(pattern, text))


REGEX = CheckKind(
    name="regex",
    params=builtin_params("regex"),
    evaluate=_regex,
    at_once=_regex_at_once,
    prepare=check_pattern,
)
