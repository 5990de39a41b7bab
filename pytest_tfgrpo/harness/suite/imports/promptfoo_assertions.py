"""Assertions of promptfoo as checks and criteria."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.imports.imported import LONGEST_CRITERION, Imported

Render = Callable[[str], str]
RUBRICS = ("llm-rubric", "g-eval", "factuality", "model-graded-closedqa", "model-graded-factuality")
NEGATION = "not-"
LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
"""Assertions on several texts, which one text may name."""


def carried(
    found: Imported, assertions: Sequence[Mapping[str, Json]], where: str, render: Render
) -> dict[str, Json]:
    """Return the checks and the rubric that assertions become; notes those without counterpart.

    Raises ValueError where a value cannot be rendered.
    """
    checks: list[Json] = []
    rubric: list[Json] = []
    for i, one in enumerate(assertions):
        at, kind = f"{where}.assert[{i}]", str(one.get("type", ""))
        weight = one.get("weight", 1)
        scale = {"weight": weight} if isinstance(weight, int | float) and weight > 0 and weight != 1 else {}
        limit = ("threshold",) if kind.removeprefix(NEGATION) in ("cost", "latency") else ()
        known = ("type", "value", "weight", *limit)
        if weight == 0:
            found.leave_out("assertions of weight 0, which only count as metrics", at)
        elif kind in RUBRICS:
            value = one.get("value")
            texts = value if isinstance(value, list) else [value]
            found.leave_out_keys(one, known, " of an assertion", at)
            criteria = [render(str(text)) for text in texts if text]
            if any(len(text) > LONGEST_CRITERION for text in criteria):
                found.leave_out(f"the rest of criteria of more than {LONGEST_CRITERION:,} characters", at)
            rubric += [{"text": text[:LONGEST_CRITERION], **scale} for text in criteria]
        elif (check := _check(kind.removeprefix(NEGATION), one, render)) is None:
            found.leave_out(f"assertion `{kind}`", at)
        else:
            found.leave_out_keys(one, known, " of an assertion", at)
            checks.append({**check, **scale, **({"not": True} if kind.startswith(NEGATION) else {})})
    fields: dict[str, Json] = {"checks": checks} if checks else {}
    if rubric:
        fields |= {"rubric": rubric} if checks else {"rubric": rubric, "truth": "judge"}
    return fields


def _check(kind: str, one: Mapping[str, Json], render: Render) -> dict[str, Json] | None:
    """Return the check that an assertion is; None where there is none like it."""
    value, threshold = one.get("value"), one.get("threshold")
    if kind in ("cost", "latency"):
        if not isinstance(threshold, int | float):
            return None
        return {"kind": "limits", "cost_usd" if kind == "cost" else "latency_ms": threshold}
    if kind == "is-json":
        return {"kind": "json_schema", "schema": value if isinstance(value, dict) else {}}
    if kind == "equals" and isinstance(value, dict | list):
        return {"kind": "json", "value": value}
    listed = [text for text in (value if isinstance(value, list) else [value]) if text is not None]
    if any(isinstance(text, dict | list) for text in listed):
        return None
    texts = [render(str(text)) for text in listed]
    if not texts or (isinstance(value, str) and value.startswith("file://")):
        return None
    if kind in LISTS and isinstance(value, str):
        texts = _listed(texts[0])
    maker = TEXTS.get(kind)
    return maker(texts) if maker is not None else None


def _listed(text: str) -> list[str]:
    """Return the texts that one names, separated by commas; one in double quotes may have commas."""
    try:
        row = next(csv.reader([" ".join(text.splitlines())], skipinitialspace=True), [])
    except csv.Error:  # a text of megabytes
        return [text]
    return [part for one in row if (part := one.strip())] or [text]


def _any(texts: Sequence[str], flags: str = "") -> dict[str, Json]:
    return {
        "kind": "regex",
        "pattern": "|".join(map(re.escape, texts)),
        **({"flags": flags} if flags else {}),
    }


def _all(texts: Sequence[str]) -> dict[str, Json]:
    ahead = "".join(f"(?=[\\s\\S]*{re.escape(text)})" for text in texts)
    return {"kind": "regex", "pattern": rf"\A{ahead}", "flags": "i"}


TEXTS: Mapping[str, Callable[[Sequence[str]], dict[str, Json]]] = {
    "equals": lambda texts: {"kind": "exact", "value": texts[0], "strip": False},
    "contains": lambda texts: {"kind": "contains", "value": texts[0]},
    "contains-all": lambda texts: {"kind": "contains", "values": list(texts)},
    "contains-any": _any,
    "icontains": lambda texts: _any(texts[:1], "i"),
    "icontains-any": lambda texts: _any(texts, "i"),
    "icontains-all": _all,
    "starts-with": lambda texts: {"kind": "regex", "pattern": rf"\A{re.escape(texts[0])}"},
    "regex": lambda texts: {"kind": "regex", "pattern": texts[0]},
}
