"""Assertions of promptfoo as checks and criteria."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.wire.schema import DRAFT
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.js_regex import as_python
from pytest_tfgrpo.scoring.checks.patterns import check_pattern
from pytest_tfgrpo.suite.imports.imported import LONGEST_CRITERION, expectation
from pytest_tfgrpo.suite.imports.promptfoo_files import FILE, FilesBeside
from pytest_tfgrpo.suite.imports.promptfoo_values import js_text, parse_file
from pytest_tfgrpo.suite.imports.values import shape

Render = Callable[[str], str]
CRITERIA = ("llm-rubric", "g-eval", "model-graded-closedqa")
FACTS = ("factuality", "model-graded-factuality")
"""Graded assertions whose value is an expected answer, not a criterion."""
NEGATION = "not-"
LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
"""Assertions on several texts, which one text may name."""
ONE_TEXT = ("contains", "icontains", "starts-with", "regex")
WITHOUT_VALUE = (
    "is-json", "contains-json", "cost", "latency", "is-valid-openai-tools-call", "is-refusal", "guardrails",
    "is-valid-openai-function-call", "is-valid-function-call", "is-xml", "contains-xml", "is-html",
    "contains-html", "is-sql", "contains-sql", "perplexity", "perplexity-score", "moderation",
)  # fmt: skip
KINDS = frozenset((
    *LISTS, *ONE_TEXT, *CRITERIA, *FACTS, *WITHOUT_VALUE, "equals", "similar", "levenshtein", "javascript",
    "python", "ruby", "webhook", "fn", "eval", "grade", "answer-relevance", "bleu", "classifier", "gleu",
    "context-faithfulness", "context-recall", "context-relevance", "finish-reason", "meteor", "pi", "rouge-n",
    "search-rubric", "select-best", "tool-call-f1", "word-count", "agent-rubric", "ends-with",
))  # fmt: skip
"""Types that a cell of a table may name before a colon; other words belong to the answer."""


class Unlike(Exception):
    """An assertion that has no counterpart here; its text says which."""


def carried(
    files: FilesBeside, assertions: Sequence[Mapping[str, Json]], where: str, render: Render
) -> dict[str, Json]:
    """Return the checks and the rubric that assertions become; notes those without counterpart.

    Raises ValueError where a value cannot be rendered.
    """
    checks: list[Json] = []
    rubric: list[Json] = []
    for i, one in enumerate(assertions):
        at, kind = f"{where}.assert[{i}]", one.get("type")
        try:
            if not isinstance(kind, str) or not kind:
                raise Unlike(f"assertions whose type is {shape(kind)}")
            limit = ("threshold",) if kind.removeprefix(NEGATION) in ("cost", "latency") else ()
            scale = _scale(one.get("weight", 1))
            if kind in (*CRITERIA, *FACTS):
                rubric += [{"text": text, **scale} for text in _criteria(files, kind, one, at, render)]
            else:
                check = _check(files, kind.removeprefix(NEGATION), one, at, render)
                checks.append({**check, **scale, **({"not": True} if kind.startswith(NEGATION) else {})})
        except Unlike as error:
            files.found.leave_out(str(error), at)
        else:
            files.found.leave_out_keys(one, ("type", "value", "weight", *limit), " of an assertion", at)
    fields: dict[str, Json] = {"checks": checks} if checks else {}
    if rubric:
        fields |= {"rubric": rubric} if checks else {"rubric": rubric, "truth": "judge"}
    return fields


def _scale(weight: Json) -> dict[str, Json]:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise Unlike(f"assertions whose weight is {shape(weight)}")
    if weight == 0:
        raise Unlike("assertions of weight 0, which only count as metrics")
    if weight < 0:
        raise Unlike("assertions of a weight below 0")
    return {"weight": weight} if weight != 1 else {}


def _criteria(files: FilesBeside, kind: str, one: Mapping[str, Json], at: str, render: Render) -> list[str]:
    """Return the criteria of a graded assertion; raises Unlike, and ValueError as `_value` does."""
    value = _value(files, one.get("value"), at, render, kind)
    listed = value if isinstance(value, list) and value else [value]
    for text in listed:
        if not isinstance(text, str) or not text.strip():
            raise Unlike(f"assertion `{kind}` whose value is {shape(text)}")
    texts = [expectation(text, "rubric")["rubric"] if kind in FACTS else text for text in listed]
    if any(len(text) > LONGEST_CRITERION for text in texts):
        files.found.leave_out(f"the rest of criteria of more than {LONGEST_CRITERION:,} characters", at)
    return [text[:LONGEST_CRITERION] for text in texts]


def _value(files: FilesBeside, value: Json, at: str, render: Render, kind: str) -> Json:
    """Return a value as promptfoo has it before it compares: files read, texts and those of a list rendered.

    Raises Unlike for a file that cannot be read, and ValueError for what cannot be rendered.
    """
    if isinstance(value, list):
        return [_value(files, one, at, render, kind) if isinstance(one, str) else one for one in value]
    if not isinstance(value, str):
        return value
    if not value.startswith(FILE):
        return render(value)
    read = files.value(value, at)
    if read is None:
        raise Unlike(f"assertion `{kind}`")
    return read


def _check(
    files: FilesBeside, kind: str, one: Mapping[str, Json], at: str, render: Render
) -> dict[str, Json]:
    """Return the check that an assertion is; raises Unlike where there is none like it."""
    if kind in ("cost", "latency"):
        return _limit(kind, one.get("threshold"))
    if kind not in (*LISTS, *ONE_TEXT, "is-json", "equals"):
        raise Unlike(f"assertion `{kind}`")
    value = _value(files, one.get("value"), at, render, kind)
    if kind == "is-json":
        files.found.note("`is-json` passes JSON in a Markdown fence, which promptfoo fails", at)
        return {"kind": "json_schema", "schema": _schema(files, value, at)}
    if kind == "equals":
        return _equals(value)
    if kind in LISTS:
        return TEXTS[kind](_several(kind, value))
    if (isinstance(value, str) and value) or (_is_number(value) and kind.endswith("contains")):
        return _regex(js_text(value)) if kind == "regex" else TEXTS[kind]([js_text(value)])
    raise Unlike(f"assertion `{kind}` whose value is {shape(value)}")


def _regex(pattern: str) -> dict[str, Json]:
    try:
        return {"kind": "regex", **check_pattern({"pattern": as_python(pattern)}, Path())}
    except ValueError as error:
        raise Unlike(f"assertion `regex` {error}") from None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _limit(kind: str, threshold: Json) -> dict[str, Json]:
    if not _is_number(threshold):
        raise Unlike(f"assertion `{kind}` whose threshold is {shape(threshold)}")
    return {"kind": "limits", "cost_usd" if kind == "cost" else "latency_ms": threshold}


def _equals(value: Json) -> dict[str, Json]:
    """Return the check of a text, or of JSON that is this value and no more."""
    if isinstance(value, dict | list):
        return {"kind": "json_schema", "schema": {"const": value}}
    if value is None:
        raise Unlike("assertion `equals` whose value is null")
    return {"kind": "exact", "value": js_text(value), "strip": False}


def _several(kind: str, value: Json) -> list[str]:
    listed = _listed(value) if isinstance(value, str) and value.strip() else value
    if not isinstance(listed, list) or not listed:
        raise Unlike(f"assertion `{kind}` whose value is {shape(value)}")
    for one in listed:
        if isinstance(one, dict | list) or one == "":
            raise Unlike(f"assertion `{kind}` of which one value is {shape(one)}")
    return [js_text(one) for one in listed]


def _schema(files: FilesBeside, value: Json, at: str) -> Json:
    """Return the schema that is-json goes by: an object, its text as JSON or YAML, or none for any JSON."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = parse_file(files.found, value, ".json", at)
        except ValueError as error:
            raise Unlike(f"assertion `is-json` whose schema cannot be read: {error}") from None
    if isinstance(value, bool):
        return {} if value else {"not": {}}
    if not isinstance(value, dict):
        raise Unlike(f"assertion `is-json` whose schema is {shape(value)}")
    if value.get("$schema", DRAFT) != DRAFT:
        files.found.note(f"schemas of another draft are read as {DRAFT}", at)
        value = {key: one for key, one in value.items() if key != "$schema"}
    return value


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
    "contains": lambda texts: {"kind": "contains", "value": texts[0]},
    "contains-all": lambda texts: {"kind": "contains", "values": list(texts)},
    "contains-any": _any,
    "icontains": lambda texts: _any(texts[:1], "i"),
    "icontains-any": lambda texts: _any(texts, "i"),
    "icontains-all": _all,
    "starts-with": lambda texts: {"kind": "regex", "pattern": rf"\A{re.escape(texts[0])}"},
}
