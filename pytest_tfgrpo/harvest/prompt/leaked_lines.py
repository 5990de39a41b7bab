"""Leaks: lines of a fix that stand in the text of its task."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.history.candidates import is_code
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees

SHORTEST = 12
"""Characters, without blanks, from which a line of code says what the fix is."""
LONGEST = 2000
"""Characters of a line that are compared."""
_BLANK = re.compile(r"\s+")
_QUOTE = re.compile(r"^[\s>]*(?:[-+*]\s)?[\s+>-]*")
_COMMENT = ("#", "//", "/*", "*", "--", "%", '"""', "'''")
_SIGNS = re.compile(
    r"[=()\[\]{}<>+*%|&;_]|\w\.\w|\b(?:return|import|raise|throw|else|if|for|while|not|del)\b"
)
_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedCode:
    """What a fix adds to its sources, without blanks."""

    lines: frozenset[str]
    text: str
    before: str
    """The same files before it."""


def fixed_code(trees: FixTrees) -> FixedCode:
    """Return the code that a fix adds."""
    found: list[str] = []
    before: list[str] = []
    for path, entry in trees.reference.items():
        if entry.link is None and is_code(path) and b"\0" not in entry.data[:8000]:
            known = trees.base.get(path)
            old = [] if known is None else list(_lines(known.data))
            found += set(_lines(entry.data)).difference(old)
            before += old
    return FixedCode(lines=frozenset(found), text="\n".join(found), before="\n".join(before))


def without_leaks(text: str, fixed: FixedCode) -> tuple[str, tuple[str, ...]]:
    """Return a text without the lines that say a line of the fix, or a good part of one, and those lines."""
    rows = text.split("\n")
    bare = [_BLANK.sub("", _QUOTE.sub("", row))[:LONGEST] for row in rows]
    told = [_tells(row, fixed) for row in bare]
    leaks = {n for n, row in enumerate(rows) if told[n] or _has_part(row, bare[n], fixed)}
    for n in range(len(rows) - 1):  # a line that is broken in two
        if not told[n] and not told[n + 1] and _tells(bare[n] + bare[n + 1], fixed):
            leaks |= {n, n + 1}
    kept = "\n".join(row for n, row in enumerate(rows) if n not in leaks)
    return _tidy(kept), tuple(rows[n].strip()[:LONGEST] for n in sorted(leaks))


def _lines(data: bytes) -> Iterator[str]:
    for row in data.decode("utf-8", "replace").split("\n"):
        line = row.strip()
        if not line.startswith(_COMMENT) and _SIGNS.search(line[:LONGEST]):
            bare = _BLANK.sub("", line[:LONGEST])
            if len(bare) >= SHORTEST:
                yield bare


def _tells(row: str, fixed: FixedCode) -> bool:
    return len(row) >= SHORTEST and any(line in row for line in fixed.lines)


def _has_part(row: str, bare: str, fixed: FixedCode) -> bool:
    """Return whether what may be code in a line is part of a line of the fix, and new with it."""
    parts = [_BLANK.sub("", span) for span in _SPAN.findall(row)]
    if re.search(r"[=()\[\]{}]", bare):
        parts.append(bare)
    return any(
        len(part) >= SHORTEST and _SIGNS.search(part) and part in fixed.text and part not in fixed.before
        for part in parts
    )


def _tidy(text: str) -> str:
    """Return a text without code fences that are empty, and without blank lines in a row."""
    text = re.sub(r"```[\w+-]*\n\s*```", "", text)
    return re.sub(r"\n\s*\n\s*\n+", "\n\n", text).strip()
