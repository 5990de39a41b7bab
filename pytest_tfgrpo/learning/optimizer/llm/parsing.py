"""Parsing: turn a teacher's reply into changes of the library, whatever the reply contains."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from pytest_tfgrpo.core.lessons import Polarity
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.experience_lines import MAX_CHARS

Op: TypeAlias = Literal["ADD", "UPDATE", "DELETE", "KEEP"]

MAX_CHARACTERS = 200_000
MAX_STARTS = 100
"""Places in a text that are tried as the start of its JSON."""
MAX_OPERATIONS = 200
"""Operations of one answer that are looked at."""
TEMPLATE = frozenset({"...", "…", "in a few words"})
"""What the fields of the form in the prompt hold: an answer with one of them repeats the form."""
REASON = 200
"""Characters of a reason that are kept."""

_DECODER = json.JSONDecoder(parse_float=finite, parse_constant=finite)
_START = re.compile(r'\{\s*"|\[\s*\{')
_OPS = ("ADD", "UPDATE", "DELETE", "KEEP")


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One operation as the teacher wrote it: its form is right, its ids are not looked up yet."""

    op: Op
    ids: tuple[str, ...] = ()
    """Lessons it is about, by their number in the prompt."""
    polarity: Polarity = "do"
    lesson: str = ""
    reason: str = ""
    sources: tuple[str, ...] = ()
    """Proposals it rests on, by their number in the prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerProblem:
    """Something in an answer that cannot be used."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedAnswer:
    """A parsed reply."""

    changes: tuple[Change, ...] = ()
    problems: tuple[AnswerProblem, ...] = ()
    readable: bool = True
    """False when there is no list of operations in it at all."""

    @property
    def usable(self) -> bool:
        """True for a list, empty or not, unless nothing in it has the right form."""
        return self.readable and bool(self.changes or not self.problems)


def answer_schema(*, sources: bool) -> dict[str, Json]:
    """Return the JSON Schema of an answer; `sources`: each operation names the proposals it rests on."""
    texts = {"type": "array", "items": {"type": "string"}}
    fields: dict[str, Json] = {
        "op": {"type": "string", "enum": list(_OPS)},
        "ids": texts,
        "polarity": {"type": "string", "enum": ["do", "avoid"]},
        "lesson": {"type": "string"},
        **({"sources": texts} if sources else {}),
        "reason": {"type": "string"},
    }
    operations = {"type": "array", "items": _closed(fields)}
    thought = {} if sources else {"comparison": {"type": "string"}}
    return _closed({**thought, "operations": operations})


def _closed(fields: dict[str, Json]) -> dict[str, Json]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def read(text: str, *, max_words: int, sources: bool = False, cut: bool = False) -> ParsedAnswer:
    """Return the parsed `text`.

    `sources`: an addition must name the proposals it rests on; `cut`: the model had no tokens left.
    """
    found = _operations_in(text)
    if found is None:
        why = "it was cut off before its end; be shorter" if cut else "it holds no JSON object of that form"
        return ParsedAnswer(problems=(AnswerProblem(code="malformed", message=why),), readable=False)
    changes, problems = [], []
    for number, value in enumerate(found[:MAX_OPERATIONS], 1):
        outcome = _change(value, max_words, sources)
        if isinstance(outcome, Change):
            changes.append(outcome)
        else:
            code, message = outcome
            problems.append(AnswerProblem(code=code, message=f"operation {number}: {message}"))
    if len(found) > MAX_OPERATIONS:
        problems.append(AnswerProblem(code="too_many", message=f"it has {len(found)} operations"))
    return ParsedAnswer(changes=tuple(changes), problems=tuple(problems))


def _operations_in(text: str) -> Sequence[Any] | None:
    """Return the last list of operations in `text`: what comes before it may be thought or prose."""
    if len(text) > MAX_CHARACTERS:
        return None
    found: list[Any] | None = None
    at = 0
    for _ in range(MAX_STARTS):
        start = _START.search(text, at)
        if start is None:
            break
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.start() + 1
            continue
        listed = _list_of(value)
        found = found if listed is None else listed
    return found


def _list_of(value: Json) -> list[Any] | None:
    listed = value.get("operations") if isinstance(value, dict) else value
    if not isinstance(listed, list) or (listed is value and not all(_names_op(item) for item in listed)):
        return None
    return listed


def _names_op(value: Json) -> bool:
    return isinstance(value, dict) and "op" in value


def _change(value: Json, max_words: int, founded: bool) -> Change | tuple[str, str]:
    """Return the operation that `value` is, or (code, message) saying why it is none."""
    if not isinstance(value, Mapping):
        return "malformed", f"{short(value)} is not an object"
    op = value.get("op")
    op = op.upper() if isinstance(op, str) else op
    if op not in _OPS:
        return "malformed", f'"op" must be one of {", ".join(_OPS)}, not {short(value.get("op"))}'
    ids, sources = _texts(value.get("ids", [])), _texts(value.get("sources", []))
    if ids is None or sources is None:
        return "malformed", '"ids" and "sources" must be lists of texts'
    if op != "ADD" and not ids:
        return "malformed", f"{op} needs the id of a lesson"
    if founded and op == "ADD" and not sources:
        return "malformed", 'ADD needs the numbers of the proposals it rests on as "sources"'
    change = Change(op=cast("Op", op), ids=() if op == "ADD" else ids, sources=sources, reason=_reason(value))
    if op in ("DELETE", "KEEP"):
        return change
    return _with_lesson(change, value, max_words)


def _with_lesson(change: Change, value: Mapping[str, Any], max_words: int) -> Change | tuple[str, str]:
    lesson, polarity = value.get("lesson"), value.get("polarity")
    if not isinstance(lesson, str) or not lesson.split():
        return "malformed", f'{change.op} needs a text as "lesson"'
    if any(isinstance(field, str) and field.strip() in TEMPLATE for field in (lesson, value.get("reason"))):
        return "malformed", f"{short(dict(value))} repeats the form of the answer; fill it in"
    if not content(lesson):
        return "malformed", f"the lesson {short(lesson)} has no word about a task"
    if polarity not in ("do", "avoid"):
        return "malformed", f'"polarity" must be "do" or "avoid", not {short(polarity)}'
    words = lesson.split()
    if len(lesson) > MAX_CHARS:
        return "word_cap", f"the lesson {short(lesson)} has {len(lesson)} characters; {MAX_CHARS} are allowed"
    if len(words) > max_words:
        return "word_cap", f"the lesson {short(lesson)} has {len(words)} words; {max_words} are allowed"
    text = " ".join(words).encode("utf-8", "replace").decode()
    return replace(change, polarity=cast("Polarity", polarity), lesson=text)


def _texts(value: Json) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(dict.fromkeys(item.strip() for item in value))


def _reason(value: Mapping[str, Any]) -> str:
    reason = value.get("reason")
    return line(reason, REASON) if isinstance(reason, str) else ""
