"""Names of tests and words of their failures, made fit for files that people read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome

MAX_ID = 1_000
MAX_LINE = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_ANSI = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_WORST = (CaseOutcome.HUNG, CaseOutcome.FAILED, CaseOutcome.PASSED, CaseOutcome.SKIPPED)


def case_id(*parts: str) -> str:
    r"""Return the id of a test: file, then names, joined by ``::``; control characters as ``\x0a``.

    One of more than 1,000 characters ends in a digest of the whole, so that it stays one test's.
    """
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", "::".join(parts))
    if len(text) <= MAX_ID:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: MAX_ID - 20]}...{digest}"


def first_line(text: str) -> str:
    """Return the first line with words, at most 500 characters, without colours and control characters.

    The next one goes with it where the first ends in a colon: ``Expected values to be equal: 5 !== 6``.
    """
    lines = (_CONTROL.sub(" ", line).strip() for line in _ANSI.sub("", text).splitlines())
    words = filter(None, lines)
    first = next(words, "")
    return (f"{first} {next(words, '')}" if first.endswith(":") else first).strip()[:MAX_LINE]


def worst(outcomes: Iterable[CaseOutcome]) -> CaseOutcome:
    """Return the outcome of tests with one name: hung or failed if any is, skipped only if all are."""
    found = set(outcomes)
    return next(outcome for outcome in _WORST if outcome in found)
