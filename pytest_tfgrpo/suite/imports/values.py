"""What a value of another tool's file stands for: a task, an expected answer, or neither."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, time
from decimal import Decimal

from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import WrittenNumber, parse_json_line
from pytest_tfgrpo.suite.imports.chats import said
from pytest_tfgrpo.suite.imports.imported import Imported, expectation

_MISSING = re.compile(
    r"nan|NaN|<NA>|NaT|#N/A|#[A-Z][A-Z_]*(?:/[A-Z0]+)?[!?]|#GETTING_DATA|Err:[0-9]{3}|#{3,}"
)
"""How pandas writes a cell that has no value, and spreadsheets one that they could not compute."""
PERHAPS_MISSING = ("None", "null", "NULL", "N/A", "n/a", "NA", "undefined", "Loading...")
_CHAT = re.compile(r"\s*\[\s*\{\s*['\"](?:role|content)['\"]\s*:")
_LIST = re.compile(r"\s*(?:\[\s*['\"].*\]|\{\s*['\"].*\})\s*\Z", re.DOTALL)
_PRINTED = re.compile(
    r"\s*(?:np\.\w+|array|tensor|Series|Decimal|Timestamp|datetime\.\w+)\(.*\)\s*\Z", re.DOTALL
)
"""What Python prints for values of common types."""
_FORMULA = re.compile(r"\s*=[^=\s>]")
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe0e\ufe0f\uffa0"
"""Letters and marks that nobody sees, beside those of the categories of format and control."""
_STRING = r"""(?:'[^'\\\n]*'|"[^"\\\n]*")"""
_STRINGS = re.compile(rf"\s*\[\s*{_STRING}(?:\s*,\s*{_STRING})*\s*(?:,\s*)?\]\s*\Z")
"""A list of texts without escapes, as JSON and as Python prints it."""
_TEMPLATE = re.compile(r"<\|(?:im_start|start_header_id|user|system)\|>|\[INST\]|\A\s*Human: ")
_CURLY = re.compile(r"\s*“[^“”]*”\s*\Z")


def shape(value: object) -> str:
    """Return in words what kind of value this is."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text" if value.strip() else "an empty text"
    if isinstance(value, Mapping):
        return f"an object with the keys {few([*map(str, value)], 5)}" if value else "an empty object"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return f"a {type(value).__name__}"


def as_text(value: Json) -> str:
    """Return a scalar as it is written in its file; raises ValueError for anything else, and for null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, str | int | date | time | Decimal) or (isinstance(value, float) and value == value):
        return str(value)
    raise ValueError(f"no text but {shape(value)}")


def chat_of(value: Json) -> list[Json] | None:
    """Return the messages that a value holds, also as JSON in a text; None where it is no chat.

    Raises ValueError for a text that looks like a chat and is no JSON.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return None
        try:
            value = parse_json_line(value.strip(), 1)
        except Refused as error:
            if _CHAT.match(value):
                raise ValueError(f"chats that are no JSON ({error}); save them as JSON") from None
            return None
    if isinstance(value, Mapping):
        inside = value.get("messages")
        value = inside if isinstance(inside, list) else [value] if {"role", "content"} <= value.keys() else []
    if not isinstance(value, list) or not value:
        return None
    return value if all(isinstance(one, Mapping) and "role" in one for one in value) else None


def asked(found: Imported, value: Json, where: str, what: str = "prompts") -> dict[str, Json]:
    """Return the task that a value is, as ``prompt`` or ``turns``.

    Raises ValueError, which says of what kind it is, where it is neither a text nor a chat.
    """
    messages = chat_of(value)
    if messages is not None:
        return said(found, messages, where)
    try:
        text = as_text(value).strip()
    except ValueError:
        raise ValueError(f"{what} that are {shape(value)}") from None
    if is_unseen(text) or _MISSING.fullmatch(text):
        raise ValueError(f"{what} that are empty" if is_unseen(text) else f"{what} that are missing ({text})")
    if _TEMPLATE.search(text):
        found.note("the marks of a chat template in a prompt are part of the task", where)
    if _FORMULA.match(text):
        found.note("a task that looks like a formula of a spreadsheet is a text as it is written", where)
    return {"prompt": text}


def is_unseen(text: str) -> bool:
    """Return whether a text has no character that anybody sees."""
    return all(
        sign.isspace() or sign in _FILLERS or unicodedata.category(sign) in ("Cc", "Cf") for sign in text
    )


def expected(found: Imported, value: Json, kind: str, where: str) -> dict[str, Json]:
    """Return the fields of a scenario that expects `value`, or any of the values in a list.

    Raises ValueError, which says what is wrong, where it expects nothing that a check of `kind` can know.
    """
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, list | Mapping) and (reply := _reply(value)) is not None:
        value = reply
    if isinstance(value, list):
        answers = [_answer(found, one, where, "several expected answers, of which some") for one in value]
        distinct = list(dict.fromkeys(answers))
        if not distinct:
            raise ValueError("expected answers that are an empty list")
        return any_of(distinct, kind)
    answer = _answer(found, value, where, "expected answers that")
    if kind == "contains" and answer != answer.strip():
        found.note("the blanks around an expected answer must be in the answer, too", where)
    return expectation(answer, kind)


def listed_in(found: Imported, value: Json, kind: str, where: str) -> Json:
    """Return the texts that a cell of a table lists as JSON or as Python prints them, else the cell itself.

    A table has no other way to give several right answers; only `kind` exact and contains know several.
    """
    if kind not in ("exact", "contains") or not isinstance(value, str) or not _LIST.match(value):
        return value
    listed: Json = None
    if _STRINGS.match(value):
        listed = [one[1:-1] for one in re.findall(_STRING, value)]
    else:
        with suppress(Refused):
            listed = parse_json_line(value.strip(), 1)
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return value
    found.note("an expected answer that is a list of texts means any of them, as in JSON lines", where)
    return listed


def any_of(answers: Sequence[str], kind: str) -> dict[str, Json]:
    """Return the fields of a scenario that expects any of these; raises ValueError where no check can."""
    if len(answers) == 1:
        return expectation(answers[0], kind)
    if kind not in ("contains", "exact"):
        raise ValueError(f"several right answers, of which a check of kind {kind} knows one")
    options = "|".join(map(re.escape, answers))
    pattern = options if kind == "contains" else rf"\A\s*(?:{options})\s*\Z"
    return {"checks": [{"kind": "regex", "pattern": pattern}]}


def _answer(found: Imported, value: Json, where: str, what: str) -> str:
    """Return one expected answer as a text; notes what may not be meant so. Raises ValueError."""
    try:
        text = as_text(value)
    except ValueError:
        raise ValueError(f"{what} are {shape(value)}") from None
    plain = text.strip()
    if is_unseen(plain):
        raise ValueError(f"{what} are empty")
    if _MISSING.fullmatch(plain):
        raise ValueError(f"{what} are missing ({plain})")
    if plain in PERHAPS_MISSING:
        found.note(f"the expected answer `{plain}` is a text; leave the row out if it means no answer", where)
    elif isinstance(value, str) and _FORMULA.match(text):
        found.note("an expected answer that looks like a formula of a spreadsheet is a text", where)
    elif isinstance(value, str) and (_LIST.match(text) or _PRINTED.match(text)):
        found.note(
            "an expected answer that looks like a list or object is one text; JSON lines can have several",
            where,
        )
    elif isinstance(value, str) and _CURLY.match(text):
        found.note("an expected answer in curly quotes expects these, too", where)
    elif isinstance(value, float) and not isinstance(value, WrittenNumber) and value.is_integer():
        found.note("whole numbers that are stored with fractions are expected with `.0`", where)
    return text


def _reply(value: Json) -> str | None:
    """Return the text of the only message of a chat, if the assistant says it."""
    messages = chat_of(value) or []
    content = messages[0].get("content") if len(messages) == 1 else None
    return content if isinstance(content, str) and messages[0]["role"] == "assistant" else None


def name_of(found: Imported, cells: Mapping[str, Json], where: str, key: str) -> str | None:
    """Return the name that a key gives; None where there is none, which is noted if it is of another kind."""
    value = cells.get(key)
    try:
        return None if value is None else as_text(value).strip() or None
    except ValueError:
        found.leave_out(f"`{key}` that is {shape(value)}", where)
        return None
