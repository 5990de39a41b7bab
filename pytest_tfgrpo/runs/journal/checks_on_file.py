"""Checks read back from a file, whose parameters may be of another kind for all its checksums."""

from __future__ import annotations

from functools import cache

from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.wire.schema import load_schema, violations
from pytest_tfgrpo.core.wire.schema_accepts import Accepts, accepts

AS_WRITTEN = (
    "contains",
    "exact",
    "json",
    "json_schema",
    "limits",
    "number",
    "regex",
    "similar",
    "tool_calls",
)
"""Kinds whose parameters stay as they were written when a scenario is loaded."""


def misfit(check: Check) -> str | None:
    """Return what is wrong with the parameters of a check that a file had; None for nothing."""
    if check.kind not in AS_WRITTEN or _accepts(check.kind)(check.params):
        return None
    found = violations(load_schema("scenario")["$defs"][check.kind], check.params)
    return f"a check of kind {check.kind!r}: {found[0].pointer}: {found[0].message}" if found else None


@cache
def _accepts(kind: str) -> Accepts:
    return accepts(load_schema("scenario")["$defs"][kind])
