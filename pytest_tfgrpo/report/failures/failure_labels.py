"""Labels of one failed rollout: its reason, failed checks, tools and exception, so that like failures meet.

A message is a template with the values that stood in it: numbers, quoted texts, paths, ids. Which values a
label keeps is decided over all failures, by `failure_clusters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby, islice
from math import isfinite, log10
from typing import NamedTuple

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.core.records import CheckResult, Frame, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import STDERR, gist, line, plural

MESSAGE = 300
"""Characters of a message that are read."""
MOST_VALUES = 8
"""Values of a message that are distinguished; what follows them is not read."""
STEPS = 8
"""Calls in a row that make a sequence of tools; of longer ones these are read."""
MAX_CALLS = 1000
NO_TOOL, NO_ANSWER = "no tool", "no answer to check"
HOLE = "\0"
"""Stands in a template for a value."""
_VALUE = lazy_pattern(
    r"(?P<quoted>(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|\"(?:[^\"\\]|\\.)*\"|“[^”]*”|(?<!\w)'[^']{20,}?\.\.\.)"
    r"|(?P<data>\{[^{}]*\}(?:\.\.\.)?)"
    r"|(?P<url>\bhttps?://[^\s'\"<>]+)"
    r"|(?P<path>(?<![\w/.>])(?:[A-Za-z]:)?[\\/][\w.~%@+=-][^\s'\",;:()\[\]]*)"
    r"|(?P<id>\b(?:0x[0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|(?=[a-zA-Z]*\d)[0-9a-zA-Z]{16,})\b)"
    r"|(?P<number>(?:(?<![\w)])[-+])?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?)"
)
_SHAPES = (
    ("nothing", lazy_pattern(r"\s*")),
    ("a number", lazy_pattern(r"[-+−$€£]?\d[\d,. ]*(?:[eE][-+]?\d+)?\s*%?")),
    ("a date", lazy_pattern(r"\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")),
    ("a time", lazy_pattern(r"\d\d?:\d\d(?::\d\d)?")),
    ("JSON", lazy_pattern(r"\s*[\[{].*", re.DOTALL)),
    ("a path", lazy_pattern(r"[\w.-]*/[\w./-]*|[\w-]+\.[a-z]{1,5}")),
    ("a word", lazy_pattern(r"\S+")),
)
_OTHER = {"data": "data", "url": "a URL", "path": "a path", "id": "an id", "number": "N"}
_PLACE = lazy_pattern(r'File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<function>\S+))?')
_TYPE = lazy_pattern(
    r"(?:^|: |\s)(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning))\b"
)
_LAST = lazy_pattern(r"\s*(?P<type>[A-Za-z_][\w.]*)(?::|$)")
"""What the last line of a traceback starts with: any class may be an exception."""
_NUMBER = lazy_pattern(r"(expected .+) within \S+(, got .+) as the last number")
"""What check `number` says; two of its words vary and mean nothing."""
_TRUTHS = {"judge": "the judge scored it low", "majority": "the answer is not that of the majority"}


class TextValue(NamedTuple):
    """One value of a message."""

    text: str
    """As it stood there, quotes and all."""
    shape: str
    """What it is, in words: ``a number``."""


class FailureText(NamedTuple):
    """A message whose values are taken out."""

    template: str
    """With a HOLE for each value."""
    values: tuple[TextValue, ...] = ()


class FailureLabels(NamedTuple):
    """The labels of one failed rollout, one for each view."""

    reason: FailureText
    check: FailureText
    tools: FailureText
    exception: FailureText


def labels_of(rollout: Rollout, scenario: Scenario) -> FailureLabels:
    """Return the labels of a rollout that failed."""
    wrong = [] if rollout.failure is not None else [check for check in rollout.checks if not check.passed]
    return FailureLabels(
        reason=_reason(rollout, wrong, scenario),
        check=_fixed(_checks(rollout, wrong, scenario)),
        tools=_fixed(tools_of(rollout)),
        exception=_exception(rollout),
    )


def tools_of(rollout: Rollout) -> str:
    """Return the tools that a rollout called, in order, each call in a row once, failed ones marked."""
    calls = (frame for frame in islice(rollout.frames, MAX_CALLS) if frame.kind == "tool")
    runs = [(name, failed) for (name, failed), _ in groupby((_name(f), f.error is not None) for f in calls)]
    if not runs:
        return NO_TOOL
    more = ", ..." if len(runs) > STEPS else ""
    return ", ".join(name + (" (failed)" if failed else "") for name, failed in runs[:STEPS]) + more


def _name(frame: Frame) -> str:
    return _clean(frame.name, 60) or "unnamed"


def _checks(rollout: Rollout, wrong: list[CheckResult], scenario: Scenario) -> str:
    if rollout.failure is not None:
        return NO_ANSWER
    kinds = sorted({_clean(check.kind, 40) for check in wrong})
    return " + ".join(kinds) or _TRUTHS.get(scenario.truth, "none failed")


def reason_of(rollout: Rollout, scenario: Scenario) -> str:
    """Return in one line why a rollout with an answer failed: ``number: expected 17, got 42.0``."""
    wrong = [check for check in rollout.checks if not check.passed]
    if not wrong:
        return _TRUTHS.get(scenario.truth, "scored too low")
    worst = _worst(wrong)
    more = f" (and {plural(len(wrong) - 1, 'more check')})" if len(wrong) > 1 else ""
    return f"{_clean(worst.kind, 40)}: {_shown(worst.reason or 'failed')}{more}"


def _worst(wrong: list[CheckResult]) -> CheckResult:
    return max(wrong, key=lambda check: check.weight * (1 - check.credit))


def _shown(text: str) -> str:
    """Return the message of a failure on one line, without words that mean nothing."""
    return _NUMBER.sub(r"\1\2", gist(text, MESSAGE).replace(HOLE, ""))


def _reason(rollout: Rollout, wrong: list[CheckResult], scenario: Scenario) -> FailureText:
    """Return why a rollout failed: how it ended, else the check that cost it most."""
    if (failure := rollout.failure) is not None:
        ours = ", not scored" if rollout.status == "error" else ""
        return _message(
            f"{_clean(failure.code, 40)}{ours}", failure.message.replace(rollout.rollout_id, "...")
        )
    if not wrong:
        return _fixed(_TRUTHS.get(scenario.truth, "scored too low"))
    worst = _worst(wrong)
    return _message(f"check {_clean(worst.kind, 40)}", worst.reason or "failed")


def _exception(rollout: Rollout) -> FailureText:
    """Return what was raised and where; of a rollout that answered, the last error of a tool."""
    if (failure := rollout.failure) is not None:
        return _raised(failure.code, failure.message)
    tools = (f for f in islice(reversed(rollout.frames), MAX_CALLS) if f.kind == "tool" and f.error)
    last = next(tools, None)
    return _fixed("no exception") if last is None else _message(f"tool {_name(last)}", last.error or "")


@lru_cache(maxsize=1024)
def _raised(code: str, message: str) -> FailureText:
    shown, places = gist(message, MESSAGE), list(_PLACE.finditer(message))
    last = _LAST.match(shown.rpartition(STDERR)[2]) if places else None
    found = last or _TYPE.search(shown)
    if found is None:
        return _fixed(_clean(code, 40))
    if not places:
        return _fixed(found["type"])
    at = places[-1]
    file = _clean(re.split(r"[\\/]", at["file"])[-1], 60)
    function = f" in {_clean(at['function'], 60)}" if at["function"] else ""
    return _fixed(f"{found['type']} at {file}:{at['line']}{function}")


@lru_cache(maxsize=4096)
def _clean(text: str, limit: int) -> str:
    return line(text, limit).replace(HOLE, "")


def _fixed(text: str) -> FailureText:
    return FailureText(text)


@lru_cache(maxsize=4096)
def _message(head: str, text: str) -> FailureText:
    """Return ``head: text`` with the values of the text taken out."""
    shown = _shown(text)
    parts, values, end = list[str](), list[TextValue](), 0
    for found in islice(_VALUE.finditer(shown), MOST_VALUES):
        parts.append(shown[end : found.start()])
        values.append(TextValue(found[0], "a pattern" if parts[-1].endswith("match of ") else _shape(found)))
        end = found.end()
    _relate(parts, values)
    rest = shown[end:] if len(values) < MOST_VALUES else " ..."
    return FailureText(f"{head}: {HOLE.join([*parts, rest])}", tuple(values))


def _shape(found: re.Match[str]) -> str:
    kind = str(found.lastgroup)
    if kind != "quoted":
        return _OTHER[kind]
    text = found[0][1:].removesuffix("...")
    text = text if found[0].endswith("...") else text[:-1]
    return next((name for name, form in _SHAPES if form.fullmatch(text)), "text")


def _relate(parts: list[str], values: list[TextValue]) -> None:
    """Say of a value that follows "got" how it relates to the one that follows "expected"."""
    after = {word: i for word in ("expected", "got") for i in range(len(values)) if _ends(parts[i], word)}
    if len(after) < 2:
        return
    wanted, got = (values[after[word]] for word in ("expected", "got"))
    if relation := _relation(wanted, got):
        values[after["got"]] = TextValue("", relation)
    elif wanted.shape == got.shape:
        other = got.shape.replace("a ", "another ") if got.shape.startswith("a ") else f"other {got.shape}"
        values[after["got"]] = TextValue(got.text, "another number" if got.shape == "N" else other)


def _ends(part: str, word: str) -> bool:
    return part == f"{word} " or part.endswith(f" {word} ")


def _relation(wanted: TextValue, got: TextValue) -> str:
    """Return how what was given differs from what was expected, where that says what to fix; else nothing."""
    numbers = [_number(value.text) for value in (wanted, got)]
    if numbers[0] is not None and numbers[1] is not None:
        return _numeric(numbers[0], numbers[1])
    if not (wanted.text[:1] in "'\"" and got.text[:1] in "'\""):
        return ""
    a, b = (value.text[1:-1].casefold().strip() for value in (wanted, got))
    if not a or not b:
        return ""
    bare = ["".join(filter(str.isalnum, text)) for text in (a, b)]
    if bare[0] and bare[0] == bare[1]:
        return "it in other case, spaces or punctuation"
    if _has(b, a):
        return "it with more around it"
    return "a part of it" if len(b) > 2 and _has(a, b) else ""


def _has(text: str, word: str) -> bool:
    """Return whether `word` stands in `text`, not amid other letters or digits, where it first comes."""
    at = text.find(word)
    around = text[max(0, at - 1) : at] + text[at + len(word) : at + len(word) + 1]
    return at >= 0 and not any(map(str.isalnum, around))


def _number(text: str) -> float | None:
    try:
        return float(text.strip("'\"").replace(",", "").replace("−", "-"))
    except ValueError:
        return None


def _numeric(wanted: float, got: float) -> str:
    if wanted == -got:
        return "it with the other sign"
    if got in (round(wanted, digits) for digits in range(-3, 7)) and got:
        return "it rounded"
    tens = log10(abs(got / wanted)) if got and wanted and isfinite(got / wanted) else 0.0
    return "it off by a power of ten" if abs(tens) > 0.5 and abs(tens - round(tens)) < 1e-9 else ""


def told(message: FailureText, keep: Iterable[bool]) -> str:
    """Return a message in words: values that `keep` names as they are, others as what they are."""
    parts = message.template.split(HOLE)
    words = [
        value.text if kept and value.text else value.shape
        for value, kept in zip(message.values, keep, strict=True)
    ]
    return "".join(part + word for part, word in zip(parts, [*words, ""], strict=True))
