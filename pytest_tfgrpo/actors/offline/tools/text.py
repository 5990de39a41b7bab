"""Tools on text."""

from __future__ import annotations

import re

from pytest_tfgrpo.actors.offline.values import ToolError

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ITEM_END = re.compile(r"[,;\n]")
_DIGIT = re.compile(r"\d")
_SLUG_GAP = re.compile(r"[^a-z0-9]")


def split_words(text: str) -> list[str]:
    """Return the words of `text` in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text`; a full stop, question or exclamation mark before a gap ends one."""
    parts = [part.strip().rstrip(".!?") for part in _SENTENCE_END.split(text)]
    return [part for part in parts if part]


def split_items(text: str) -> list[str]:
    """Return the parts between commas, semicolons and line ends; raises ToolError on a single part."""
    parts = [part.strip() for part in _ITEM_END.split(text)]
    items = [part for part in parts if part]
    if len(items) < 2:
        raise ToolError("no commas or semicolons to split at")
    return items


def count_letters(text: str) -> int:
    """Return how many letters and digits `text` has."""
    return sum(char.isalnum() for char in text)


def make_slug(text: str) -> str:
    """Return `text` in lower case with one hyphen between words, ASCII letters and digits only."""
    slug = "-".join(part for part in _SLUG_GAP.split(text.lower()) if part)
    if not slug:
        raise ToolError("nothing is left of the text in a slug")
    return slug


def make_initials(text: str) -> str:
    """Return the capital first letters of the words of `text`."""
    return "".join(word[0].upper() for word in split_words(text))


def mask_digits(text: str) -> str:
    """Return `text` with ``*`` for every digit; raises ToolError when it has none."""
    masked, hits = _DIGIT.subn("*", text)
    if not hits:
        raise ToolError("no digits to mask")
    return masked
