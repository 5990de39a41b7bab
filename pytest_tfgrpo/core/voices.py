"""Voices: texts of several authors in one prompt or form, written so that none can pass for another.

A line at the margin is ours: it opens a voice with its name, or says what was left out. Later lines of a text
are indented by two blanks, and what must stay on one line is a JSON string. Characters that break a line
elsewhere, that nobody sees, or that a server may take for the end of a message are written as escapes.
All of it can be read back: `\\u202e` of a text itself becomes `\\u005cu202e`. Terminal colours are dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from pytest_tfgrpo.core.texts.text import COLOUR
from pytest_tfgrpo.core.wire.strict import is_json
from pytest_tfgrpo.core.wire.wire import Json

INDENT = "  "
NAME_MAX = 80
HALVINGS = 8
SLACK = 200
"""Characters beyond a cut that are searched for secrets: half of one has no known shape."""

_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Line breaks but the usual one, other controls, and what is invisible or turns the direction of a text."""
_OPENS = (
    r"<(?=\|[^|<>\n]{1,40}\|>|｜[^｜<>\n]{1,40}｜>|</?SYS>>"
    r"|/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|tool_call|tool_response)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\])"
)
"""Start of what chat templates of open models mark a speaker with; some servers obey it inside of a text."""
_UNSAFE = re.compile(rf"[{_UNSEEN}]|{_OPENS}")
_UNSAFE_TEXT = re.compile(rf"{_UNSAFE.pattern}|\\(?:u(?P<short>[0-9a-f]{{4}})|U(?P<long>[0-9a-f]{{8}}))")
_JOINERS = "\u200c\u200d"
_LAST_EUROPEAN = "\u058f"
"""Beyond this letter a joiner belongs to the script, Persian or Indian, or to a picture: it is left alone."""
_WRITTEN = re.compile(rf"[{_UNSEEN}<\[\\]")
"""Characters whose escapes we write: where a text has such an escape of its own, that one is escaped."""
_HALF = re.compile("[\ud800-\udfff]")
_OWN_NOTE = re.compile(r"^\\*(?=\(\.\.\. [0-9]+ characters left out \.\.\.\)$)", re.MULTILINE)
_NAME = re.compile(r"[\w./:@-]{1,80}", re.ASCII)


Scrub: TypeAlias = Callable[[str], str]
"""Takes secrets and the like out of a text."""


def legible(text: str, limit: int | None = None, scrub: Scrub = str) -> str:
    """Return a text that has its place to itself; past `limit` characters a line says what is left out."""
    start, left_out, end = _ends(text, limit, scrub)
    return f"{_escaped(start)}\n{note(left_out)}\n{_escaped(end)}" if left_out else _escaped(start)


def said(opening: str, text: str, limit: int | None = None, scrub: Scrub = str) -> str:
    """Return what a voice says; `opening`, such as ``user:``, stands at the margin and is our own."""
    start, left_out, end = _ends(text, limit, scrub)
    told = f"{opening} {_indented(_escaped(start))}"
    return f"{told}\n{note(left_out)}\n{INDENT}{_indented(_escaped(end))}" if left_out else told


def quoted(text: str, limit: int | None = None, scrub: Scrub = str) -> str:
    """Return a text as a JSON string on one line; past `limit` characters as two, with a note between."""
    start, left_out, end = _ends(text, limit, scrub)
    return f"{_json(start)} {note(left_out)} {_json(end)}" if left_out else _json(start)


def named(text: str, scrub: Scrub = str) -> str:
    """Return a name of somebody else's, as it is where it is one of the usual kind, else as a JSON string."""
    return text if _NAME.fullmatch(text) else quoted(text, NAME_MAX, scrub)


def as_json(value: Json, limit: int, scrub: Scrub = str) -> str:
    """Return a JSON value on one line; one of more than `limit` characters as `quoted` returns texts."""
    whole = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if len(whole) > limit:
        return quoted(whole, limit, scrub)
    text = scrub(whole)
    return _safe(_HALF.sub("\ufffd", text)) if text == whole or is_json(text) else quoted(text, limit)


def note(left_out: int) -> str:
    """Return what stands, at the margin or outside of quotes, where characters are left out."""
    return f"(... {left_out} characters left out ...)"


def fitted(render: Callable[[float], str], most: int) -> str:
    """Return the text of `render` with the largest share of 1, 1/2, 1/4 ... that needs `most` characters.

    Where even the least share needs more, that one.
    """
    text = ""
    for halvings in range(HALVINGS):
        text = render(0.5**halvings)
        if len(text) <= most:
            break
    return text


def _ends(text: str, limit: int | None, scrub: Scrub) -> tuple[str, int, str]:
    """Return the two ends of a text, with the number of characters between; a short one is all start."""
    plain = text.replace("\r\n", "\n")
    plain = COLOUR.sub("", plain) if "\x1b" in plain else plain
    plain = plain if plain.isascii() else _HALF.sub("\ufffd", plain)
    if limit is None or len(plain) <= limit:
        return scrub(plain), 0, ""
    head, tail = limit - limit // 3, limit // 3
    end = scrub(plain[len(plain) - tail - SLACK :])
    return scrub(plain[: head + SLACK])[:head], len(plain) - head - tail, end[max(0, len(end) - tail) :]


def _escaped(text: str) -> str:
    text = _UNSAFE_TEXT.sub(_escape, text)
    return _OWN_NOTE.sub(r"\\\g<0>", text) if "characters left out" in text else text


def _escape(match: re.Match[str]) -> str:
    if digits := match["short"] or match["long"]:
        code = int(digits, 16)
        return f"\\u005c{match[0][1:]}" if code < 0x110000 and _WRITTEN.match(chr(code)) else match[0]
    code = ord(match[0])
    if _joins(match):
        return match[0]
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _joins(match: re.Match[str]) -> bool:
    """Return whether a character joins two others of a script or a picture that it belongs to."""
    if match[0] not in _JOINERS:
        return False
    around = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return all(one > _LAST_EUROPEAN and one not in _JOINERS for one in around)


def _indented(text: str) -> str:
    return text.replace("\n", f"\n{INDENT}")


def _json(text: str) -> str:
    return _safe(json.dumps(text, ensure_ascii=False))


def _safe(text: str) -> str:
    """Return JSON with escapes for what JSON would leave as it is."""
    return _UNSAFE.sub(lambda found: found[0] if _joins(found) else _json_escape(found[0]), text)


def _json_escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if character.isascii() else json.dumps(character)[1:-1]
