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
    marked = [n for n, line in enumerate(lines) if "```" in line or "~~~" in line]
    after = 0
    for i, n in enumerate(marked):
        if n < after:
            continue
        line = lines[n].rstrip()
        pieces = line.split("```")
        if len(pieces) > 2:  # whole blocks within one line, of which the last counts
            code = pieces[(len(pieces) - 1) // 2 * 2 - 1]
            named = LANGUAGE.match(code)
            language = named[0] if named else ""
            found.append(Fence(language.lower(), code[len(language) :], True, n, n))
        elif opened := OPEN.search(line):
            block = _block(lines, marked, i, opened, quoted=line.lstrip().startswith(">"))
            found.append(block)
            after = block.last + 1
    return found


def _block(lines: list[str], marked: list[int], i: int, opened: re.Match[str], *, quoted: bool) -> Fence:
    """Return the block that line ``marked[i]`` opens; all that follows where none closes it."""
    mark, language, first = opened[1], opened[2].lower(), marked[i]
    for j in range(i + 1, len(marked)):
        n = marked[j]
        line = _bare(lines[n], quoted=quoted)
        after = line.strip(" \t").removeprefix(mark)
        if len(after) < len(line.strip(" \t")) and (not after.strip(mark[0]) or " " in after):
            return Fence(language, _inner(lines[first + 1 : n], quoted=quoted), True, first, n)
        if line.endswith(mark) and mark[0] == "`":  # the end stands behind the last line of code
            inner = _inner([*lines[first + 1 : n], line.rstrip("`")], quoted=quoted)
            return Fence(language, inner, True, first, n)
    return Fence(language, _inner(lines[first + 1 :], quoted=quoted), False, first, len(lines) - 1)


def _bare(line: str, *, quoted: bool) -> str:
    return line.rstrip().lstrip(" \t>") if quoted else line.rstrip()


def _inner(lines: list[str], *, quoted: bool) -> str:
    """Return lines of code without blanks at their ends and the marks of a quotation."""
    return "\n".join([_bare(line, quoted=True) for line in lines] if quoted else map(str.rstrip, lines))
