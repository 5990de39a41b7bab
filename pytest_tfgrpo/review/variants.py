"""Checks beside those that a scenario has: stricter ones, and ones that accept more.

None is right by itself: who proposes one tries it on every answer that people marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.scoring.numerals.reader import certain_number

WrittenCheck: TypeAlias = dict[str, Json]
"""A check as a scenario file has it."""
LONGEST = 300
"""Characters of an answer that a check names as a whole."""
NEAR = 0.05
"""Share of a number by which a wider tolerance may be off."""
ORDERS = ("any_order", "in_order", "exact")
"""Of tool calls, each stricter than the one before it."""
_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """The checks of a scenario with one of them changed, or one more."""

    checks: tuple[WrittenCheck, ...]
    why: str
    """What it does, for a reader."""
    by_heart: bool = False
    """Whether it names whole answers, so that it says nothing of others."""
    chosen: bool = False
    """Whether it goes by words that a reviewer chose."""


def stricter(checks: Sequence[WrittenCheck], wrong: Sequence[str], words: Iterable[str]) -> Iterator[Variant]:
    """Yield checks that more answers fail; `wrong` are answers that should, `words` what is wrong in them."""
    chosen = [] if is_exact(checks) else [text for text in dict.fromkeys(words) if _is_fit(text)]
    if chosen:
        rejected: list[WrittenCheck] = [{"kind": "contains", "not": True, "value": text} for text in chosen]
        named = ", ".join(map(short, chosen))
        yield Variant(checks=(*checks, *rejected), why=f"fails answers with {named}", chosen=True)
        whole: list[WrittenCheck] = [
            {"kind": "regex", "not": True, "pattern": _word(text)} for text in chosen
        ]
        yield Variant(checks=(*checks, *whole), why=f"fails answers with {named} as words", chosen=True)
        if len(checks) == 1 and checks[0]["kind"] == "contains" and "value" in checks[0]:
            without = "".join(rf"(?!.*{_literal(text)})" for text in chosen)
            one = _as(checks[0], kind="regex", pattern=rf"(?s)\A{without}.*{_literal(checks[0]['value'])}")
            yield Variant(checks=(one,), why=f"fails answers with {named}, in one pattern", chosen=True)
    for n, check in enumerate(checks):
        if not check.get("not"):
            for changed, why in _tighter(check):
                yield Variant(checks=_with(checks, n, changed), why=f"checks/{n}: {why}")
    answers = [text for text in dict.fromkeys(one.strip() for one in wrong) if _is_fit(text)]
    if len(answers) == len({one.strip() for one in wrong}) and not is_exact(checks):
        exactly: list[WrittenCheck] = [{"kind": "exact", "not": True, "value": text} for text in answers]
        yield Variant(checks=(*checks, *exactly), why="fails just these answers", by_heart=True)


def is_exact(checks: Sequence[WrittenCheck]) -> bool:
    """Return whether one answer alone can pass, so that to fail it too would leave none."""
    return any(check["kind"] == "exact" and not check.get("not") for check in checks)


def looser(
    checks: Sequence[WrittenCheck], n: int, right: Sequence[str], words: Iterable[str], *, replace: bool
) -> Iterator[Variant]:
    """Yield checks of which number `n` passes more; `right` are answers that should, by their `words`.

    With `replace`, what people call wrong passes today, and the right answer may take its place.
    """
    check = checks[n]
    if check.get("not"):
        return
    for changed, why in [*_wider(check, right), *(_replaced(check, right) if replace else ())]:
        yield Variant(checks=_with(checks, n, changed), why=f"checks/{n}: {why}")
    pattern = _pattern(check)
    if not pattern:
        return
    chosen = [text for text in dict.fromkeys(words) if _is_fit(text)]
    if chosen:
        changed = _as(check, kind="regex", pattern="|".join((pattern, *map(_word, chosen))))
        named = ", ".join(map(short, chosen))
        yield Variant(
            checks=_with(checks, n, changed), why=f"checks/{n}: {named} is accepted as well", chosen=True
        )
    answers = [text for text in dict.fromkeys(one.strip() for one in right) if _is_fit(text)]
    if answers and len(answers) == len({one.strip() for one in right}):
        changed = _as(check, kind="regex", pattern="|".join((pattern, *(_whole(text) for text in answers))))
        why = f"checks/{n}: just these answers are accepted as well"
        yield Variant(checks=_with(checks, n, changed), why=why, by_heart=True)


def _tighter(check: WrittenCheck) -> Iterator[tuple[WrittenCheck, str]]:
    """Yield checks in place of one, each stricter in its own way."""
    kind, value = check["kind"], check.get("value", "")
    if kind == "contains" and value:
        yield _as(check, kind="regex", pattern=_word(value)), f"{short(value)} only as whole words"
        if (number := certain_number(value)) is not None and _number_text(number) == value.strip():
            yield _as(check, kind="number", value=_number(number)), "the last number of the answer counts"
        yield _as(check, kind="regex", pattern=rf"{_word(value)}\W*\Z"), f"{short(value)} only at the end"
        yield _as(check, kind="exact", value=value, ignore_case=True), "the whole answer counts, in any case"
        yield _as(check, kind="exact", value=value), "the whole answer counts"
    elif kind == "number":
        for tolerance in (1e-9, 0):
            loose = {"abs_tol": 0, "rel_tol": tolerance}
            yield check | {key: loose[key] for key in loose if key in check}, "no tolerance"
        yield _as(check, kind="exact", value=_number_text(float(check["value"]))), "the whole answer counts"
    elif kind == "exact":
        if check.get("ignore_case"):
            yield check | {"ignore_case": False}, "upper and lower case count"
    elif kind == "regex":
        yield check | {"pattern": rf"\A\s*(?:{check['pattern']})\s*\Z"}, "the whole answer must match"
    elif kind == "tool_calls" and "calls" in check:
        for order in ORDERS[ORDERS.index(check.get("order", "in_order")) + 1 :]:
            yield check | {"order": order}, f"order {order}"


def _wider(check: WrittenCheck, right: Sequence[str]) -> Iterator[tuple[WrittenCheck, str]]:
    """Yield checks in place of one, each accepting more in its own way."""
    kind, value = check["kind"], check.get("value", "")
    if kind == "exact":
        yield check | {"ignore_case": True}, "in any case"
        if (number := certain_number(value)) is not None and _number_text(number) == value.strip():
            yield _as(check, kind="number", value=_number(number)), "the last number of the answer counts"
        yield _as(check, kind="regex", pattern=_word(value)), f"{short(value)} anywhere in the answer"
        yield (
            _as(check, kind="regex", pattern=_word(value), flags="i"),
            f"{short(value)} anywhere, in any case",
        )
    elif kind == "contains":
        wanted = [value] if "value" in check else check["values"]
        parts = "".join(rf"(?=.*{_literal(text)})" for text in wanted)
        pattern = _literal(wanted[0]) if len(wanted) == 1 else rf"\A{parts}"
        yield _as(check, kind="regex", pattern=pattern, flags="is"), "in any case"
    elif kind == "number":
        yield from _wider_number(check, right)
    elif kind == "regex" and "i" not in check.get("flags", ""):
        yield check | {"flags": check.get("flags", "") + "i"}, "in any case"
    elif kind == "tool_calls" and "calls" in check:
        for order in reversed(ORDERS[: ORDERS.index(check.get("order", "in_order"))]):
            yield check | {"order": order}, f"order {order}"


def _replaced(check: WrittenCheck, right: Sequence[str]) -> Iterator[tuple[WrittenCheck, str]]:
    """Yield the check with another expected answer, where people agree on one."""
    answers = {text.strip() for text in right}
    numbers = {certain_number(text) for text in right}
    if check["kind"] == "exact" and len(answers) == 1 and _is_fit(answer := answers.pop()):
        yield check | {"value": answer}, f"{short(answer)} is expected in place of {short(check['value'])}"
    if check["kind"] == "number" and len(numbers) == 1 and (number := numbers.pop()) is not None:
        yield check | {"value": _number(number)}, f"{number:g} is expected in place of {check['value']:g}"


def _wider_number(check: WrittenCheck, right: Sequence[str]) -> Iterator[tuple[WrittenCheck, str]]:
    wanted = float(check["value"])
    off = [abs(found - wanted) for text in right if (found := certain_number(text)) is not None]
    if len(off) == len(right) and 0 < max(off) <= NEAR * abs(wanted):
        tolerance = float(f"{max(off) * (1 + 1e-9):.6g}")
        tolerance = tolerance if tolerance >= max(off) else max(off)
        yield check | {"abs_tol": tolerance}, f"numbers within {tolerance:g}"
    pattern = rf"(?<![\w.,-]){_literal(_number_text(wanted))}(?![\w%]|[.,]\d)"
    yield _as(check, kind="regex", pattern=pattern), f"{_number_text(wanted)} anywhere in the answer"


def _as(check: Mapping[str, Json], **params: Json) -> WrittenCheck:
    """Return another check with the weight of this one."""
    return params | ({"weight": check["weight"]} if "weight" in check else {})


def _with(checks: Sequence[WrittenCheck], n: int, changed: WrittenCheck) -> tuple[WrittenCheck, ...]:
    return (*checks[:n], changed, *checks[n + 1 :])


def _pattern(check: Mapping[str, Json]) -> str:
    """Return a pattern that matches just what a check passes; empty if there is none."""
    value = check.get("value", "")
    if check["kind"] == "exact" and check.get("strip", True):
        return ("(?i)" if check.get("ignore_case") else "") + _whole(value.strip())
    if check["kind"] == "contains" and value:
        return _literal(value)
    if check["kind"] == "regex" and not check.get("flags"):
        return f"(?:{check['pattern']})"
    return ""


def _is_fit(text: str) -> bool:
    """Return whether a text may stand in a check: not long, and without a secret."""
    return bool(text.strip()) and len(text) <= LONGEST and redact(text) == text


def _literal(text: str) -> str:
    """Return a pattern for a text, without characters that cannot be seen."""
    return "".join(
        _SPECIAL.sub(r"\\\g<0>", one) if one.isprintable() else json.dumps(one)[1:-1] if ord(one) < 0x10000
        else f"\\U{ord(one):08x}"
        for one in text
    )  # fmt: skip


def _word(text: str) -> str:
    before = r"(?<!\w)" if text[:1].isalnum() else ""
    after = r"(?!\w)" if text[-1:].isalnum() else ""
    return before + _literal(text) + after


def _whole(text: str) -> str:
    return rf"\A\s*{_literal(text)}\s*\Z"


def _number(value: float) -> Json:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _number_text(value: float) -> str:
    return str(_number(value))
