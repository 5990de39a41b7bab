"""Texts without the escapes of JSON, HTML and URLs, each character with its place in the original."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TypeAlias

_ENTITIES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "sol": "/", "plus": "+", "equals": "=",
    "colon": ":", "lowbar": "_", "period": ".", "hyphen": "-", "dash": "-", "commat": "@",
}  # fmt: skip
_ESCAPE = re.compile(
    r"(?<!\\)\\++(?:(?P<sign>[/\"'])|u00(?P<u>[2-7][0-9a-fA-F])|x(?P<x>[2-7][0-9a-fA-F])|(?P<blank>[nrt]))"
    r"|&\#(?:0{0,8}(?P<dec>[0-9]{2,3})|[xX]0{0,8}(?P<hex>[2-7][0-9a-fA-F]))(?:;|(?![0-9a-fA-F;]))"
    rf"|&(?P<entity>{'|'.join(_ENTITIES)});"
    r"|%(?P<percent>[2-7][0-9a-fA-F])"
)

Span: TypeAlias = tuple[int, int]


class Unescaped:
    """A text without escapes, whose spans can be found in the text as it stands."""

    __slots__ = ("_at", "_spans", "text")

    def __init__(self, text: str) -> None:
        self._at: list[int] = []
        self._spans: list[Span] = []
        pieces, done, length = [], 0, 0
        for match in _ESCAPE.finditer(text):
            start, end = match.span()
            pieces += [text[done:start], _character(match)]
            length += start - done + 1
            self._at.append(length - 1)
            self._spans.append((start, end))
            done = end
        self.text = "".join([*pieces, text[done:]])

    def span(self, start: int, end: int) -> Span:
        """Return where the characters from `start` to before `end` stand in the text with its escapes."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> Span:
        n = bisect_right(self._at, at) - 1
        if n < 0:
            return at, at + 1
        after = at - self._at[n]
        return self._spans[n] if after == 0 else (self._spans[n][1] + after - 1, self._spans[n][1] + after)


def unescaped(text: str) -> Unescaped | None:
    """Return `text` with the escapes of JSON, HTML and URLs undone; None where it has none."""
    if "\\" in text or "&" in text or "%" in text:
        return Unescaped(text) if _ESCAPE.search(text) else None
    return None


def _character(match: re.Match[str]) -> str:
    if match["sign"]:
        return match["sign"]
    if match["blank"]:
        return " "
    if match["entity"]:
        return _ENTITIES[match["entity"]]
    if match["dec"]:
        return chr(int(match["dec"]))
    return chr(int(match["u"] or match["x"] or match["hex"] or match["percent"], 16))
