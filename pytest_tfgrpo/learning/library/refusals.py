"""Operations that were refused, without what looks like a secret: they are shown and kept."""

from __future__ import annotations

from dataclasses import replace

from pytest_tfgrpo.core.lessons import Operation, Refusal
from pytest_tfgrpo.privacy.redact import redact


def refusal_of(operation: Operation, code: str, reason: str) -> Refusal:
    """Return the refusal of an operation, with its secrets taken out."""
    return Refusal(operation=redacted(operation), code=code, reason=redact(reason))


def redacted(operation: Operation) -> Operation:
    """Return an operation without what looks like a secret in any of its texts."""
    new = operation.experience
    if new is not None:
        stats = tuple(replace(stat, tool=redact(stat.tool)) for stat in new.tool_stats)
        new = replace(new, summary32=redact(new.summary32), tool_stats=stats)
    targets = tuple(map(redact, operation.targets))
    return replace(operation, experience=new, targets=targets, reason=redact(operation.reason))
