"""Texts of others as a pattern can hold them: plain lines without headings, fences and what nobody sees."""

from __future__ import annotations

import re
import unicodedata

from pytest_tfgrpo.patterns.shelf.pattern_file import is_seen

_MARKS = re.compile(r"^(?:\s*(?:#{1,6}(?=\s|$)|>|[-*+]\s+(?:\[[ x]\]\s+)?))*")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})")
_EDGE = re.compile(r"^\s*[-=*_]{3,}\s*$")
_CLAUSE = re.compile(r"[,:;](?=\s)|\s[-\u2013\u2014]\s")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
LEAST = 3
"""Words from which a sentence says something: fewer are a heading."""
_FIRST = 200_000
"""Characters of a text that are read."""


def plain(text: str, words: int) -> str:
    """Return the first words of a text as paragraphs, cut behind a sentence; code blocks are left out."""
    paragraphs, block, fenced = list[str](), list[str](), False
    for row in visible(text[:_FIRST]).split("\n"):
        if _FENCE.match(row):
            fenced = not fenced
            continue
        bare = "" if fenced or _EDGE.match(row) else _MARKS.sub("", row).strip()
        if bare:
            block.append(bare)
        elif block:
            paragraphs.append(" ".join(" ".join(block).split()))
            block = []
    if block:
        paragraphs.append(" ".join(" ".join(block).split()))
    kept, left = list[str](), words
    for paragraph in paragraphs:
        part = _cut(paragraph, left)
        if not part:
            break
        kept.append(part)
        left -= len(part.split())
    return "\n\n".join(kept)


def first_sentence(text: str, words: int) -> str:
    """Return the first sentence that says something, cut to so many words, without full stop; or ""."""
    sentences = (_SENTENCE.split(paragraph)[0] for paragraph in plain(text, 10 * words).split("\n\n"))
    found = next((sentence for sentence in sentences if len(sentence.split()) >= LEAST), "")
    if len(found.split()) > words:
        found = " ".join(found.split()[:words])
        clause = _CLAUSE.split(found)[0]
        found = clause if len(clause.split()) >= LEAST else found
    return found.rstrip(" .,;:!?")


def visible(text: str) -> str:
    """Return a text with usual blanks and line ends, and without characters that nobody sees."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\t", " "))
    text = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    return "".join(c for c in text if c == "\n" or (is_seen(c) and not unicodedata.combining(c)))


def _cut(text: str, words: int) -> str:
    """Return as many whole sentences of a paragraph as have so many words; of one sentence its start."""
    found = text.split()
    if len(found) <= words:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{kept} {sentence}".strip()
        if len(longer.split()) > words:
            break
        kept = longer
    return kept or (" ".join(found[:words]) + " ..." if words > 3 else "")
