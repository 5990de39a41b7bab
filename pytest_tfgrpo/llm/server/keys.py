"""Keys: values that are sent but never shown."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.privacy.unescape import unescaped

SHORTEST = 8
"""Characters below which a key is a placeholder (``none``, ``EMPTY``), which texts may contain."""
MARK = "[redacted:key]"
ROUNDS = 3
"""Escapes within escapes that are undone."""


class Secret:
    """A value that only `reveal` returns."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, to be sent and nothing else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not stored")


class Scrubber:
    """Takes keys out of texts, however a server may have spelt them."""

    __slots__ = ("_spellings",)

    def __init__(self, secrets: Iterable[Secret]) -> None:
        values = {part for s in secrets for part in (s.reveal(), *s.reveal().split())}  # "Bearer <key>"
        found = {spelling for value in values if len(value) >= SHORTEST for spelling in _spellings(value)}
        self._spellings = tuple(Secret(s) for s in sorted(found, key=len, reverse=True))

    def scrub(self, text: str) -> str:
        """Return `text` without the keys themselves; all else stays as it is."""
        for spelling in self._spellings:
            if spelling.reveal() in text:
                text = text.replace(spelling.reveal(), MARK)
        pieces, done = [], 0
        for start, end in sorted(self._escaped(text, ROUNDS)):
            if start >= done:
                pieces += [text[done:start], MARK]
                done = end
        return "".join([*pieces, text[done:]])

    def _escaped(self, text: str, rounds: int) -> Iterator[tuple[int, int]]:
        """Yield where keys stand that are spelled with the escapes of JSON, HTML and URLs."""
        inner = unescaped(text) if rounds else None
        if inner is None:
            return
        for spelling in self._spellings:
            start = inner.text.find(spelling.reveal())
            while start >= 0:
                end = start + len(spelling.reveal())
                yield inner.span(start, end)
                start = inner.text.find(spelling.reveal(), end)
        for start, end in self._escaped(inner.text, rounds - 1):
            yield inner.span(start, end)

    def scrub_bytes(self, data: bytes) -> bytes:
        """Return `data` without the keys themselves."""
        for spelling in self._spellings:
            data = data.replace(spelling.reveal().encode(), MARK.encode())
        return data

    def redact(self, text: str, limit: int) -> str:
        """Return the first `limit` characters without the keys, whole or cut, and other secrets."""
        shown = self.scrub(text)[:limit]
        for spelling in self._spellings:
            shown = _without_half(shown, spelling.reveal())
            shown = _without_half(shown[::-1], spelling.reveal()[::-1], MARK[::-1])[::-1]
        return redact(shown)


def _without_half(text: str, value: str, mark: str = MARK) -> str:
    """Return `text` without any beginning of `value` that is at least half of it."""
    half = value[: max(SHORTEST, len(value) // 2)]
    pieces, done = [], 0
    while (start := text.find(half, done)) >= 0:
        end = start + len(half)
        while end < len(text) and value.startswith(text[start : end + 1]):
            end += 1
        pieces += [text[done:start], mark]
        done = end
    return "".join([*pieces, text[done:]])


def _spellings(value: str) -> set[str]:
    """Return `value` as it is, in a URL, in hex, and in base64 at every place within a longer text."""
    data = value.encode()
    found = {value, quote(value, safe=""), quote(value), data.hex()}
    for before in range(3):
        padded = base64.b64encode(b"\0" * before + data)
        start = (before * 8 + 5) // 6  # characters that depend on what stands before, or after, are left out
        whole = padded[start : (before + len(data)) * 8 // 6].decode()
        found |= {whole, whole.replace("+", "-").replace("/", "_")}
    return found
