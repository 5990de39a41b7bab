"""Fences: blocks of code in a text of Markdown, wherever models put them."""

from __future__ import annotations

import re
from typing import NamedTuple

OPEN = re.compile(r"(?<!`)(?<!~)(`{3,20}|~{3,20})[ \t]*([\w+.#/-]{0,40})[^`~\n]{0,100}$")
"""The end of a line that opens a block."""
LANGUAGE = re.compile(r"[A-Za-z0-9]{1,20}(?=[\s{\[])")
"""What stands before the code of a block within one line."""


class Fence(NamedTuple):
    """A block of code."""

    language: str
    """In lower case; empty where it has none."""
    text: str
    closed: bool
    """Whether its end came before that of the text."""
    first: int
    """Number of its first line, from 0."""
    last: int


def fences(text: str) -> list[Fence]:
    """Return the blocks of code in `text`, in order; one that is open at the end counts too."""
    if "```" not in text and "~~~" not in text:
        return []
    found: list[Fence] = []
    lines = text.split("\n")
    n = 0
    while n < len(lines):
        line = lines[n].rstrip()
        pieces = line.split("```") if "```" in line else []
        if len(pieces) > 2:  # whole blocks within one line, of which the last counts
            code = pieces[(len(pieces) - 1) // 2 * 2 - 1]
            named = LANGUAGE.match(code)
            language = named[0] if named else ""
            found.append(Fence(language.lower(), code[len(language) :], True, n, n))
            n += 1
            continue
        opened = OPEN.search(line) if line else None
        if opened is None:
            n += 1
            continue
        block = _block(lines, n, opened, quoted=line.lstrip().startswith(">"))
        found.append(block)
        n = block.last + 1
    return found


def _block(lines: list[str], first: int, opened: re.Match[str], *, quoted: bool) -> Fence:
    """Return the block that a line opens; without a line that closes it, all that follows."""
    mark, language = opened[1], opened[2].lower()
    inner: list[str] = []
    for n in range(first + 1, len(lines)):
        line = lines[n].rstrip()
        bare = line.lstrip(" \t>") if quoted else line
        after = bare.strip(" \t").removeprefix(mark)
        if len(after) < len(bare.strip(" \t")) and (not after.strip(mark[0]) or " " in after):
            return Fence(language, "\n".join(inner), True, first, n)
        if bare.endswith(mark) and mark[0] == "`":  # the end stands behind the last line of code
            return Fence(language, "\n".join([*inner, bare.rstrip("`")]), True, first, n)
        inner.append(bare)
    return Fence(language, "\n".join(inner), False, first, len(lines) - 1)
