"""Changed code: what a patch adds to sources, the functions it is in, and an excerpt of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.history.candidates import is_code
from pytest_tfgrpo.patterns.shelf.pattern_file import EXCERPT_COLUMNS, EXCERPT_LINES
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected

_FILE = re.compile(r"\+\+\+ (?:b/(.*?)|\"b/(.*)\"|/dev/null)\t?")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)")
_NAME = re.compile(
    r"\b(?:def|class|function|func|fn|interface|struct|trait|module|sub)\s+(?:\([^)]{0,80}\)\s*)?([A-Za-z_]\w{0,60})"
    r"|\b(?:const|let|var)\s+([A-Za-z_]\w{0,60})\s*=\s*(?:async\s*)?(?:\(|function\b)"
)
_ROWS = 100_000
"""Lines of a patch that are read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedHunk:
    """A place of a source that a change adds lines to, or takes lines from."""

    path: str
    names: tuple[str, ...]
    """Functions and classes that it is in, or that it brings."""
    rows: tuple[str, ...]
    """Lines as they are after the change, from the first added one to the last."""
    added: int


def changed_hunks(diff: str) -> list[ChangedHunk]:
    """Return the hunks of a patch in sources; tests, documentation and deleted files have none."""
    found = _hunks(diff.split("\n")[:_ROWS])
    return [hunk for hunk in found if is_code(hunk.path) and not is_protected(hunk.path)]


def excerpt_of(hunks: list[ChangedHunk]) -> tuple[str, str]:
    """Return path and lines of the hunk that adds most, as far as an excerpt goes; "" where none adds."""
    most = max(hunks, key=lambda hunk: hunk.added, default=None)
    if most is None or not most.added:
        return "", ""
    rows = [row.rstrip() for row in dedent("\n".join(most.rows)).split("\n")][:EXCERPT_LINES]
    text = "\n".join(rows).strip("\n")
    return (most.path, text) if max(map(len, rows)) <= EXCERPT_COLUMNS else ("", "")


def _hunks(rows: list[str]) -> Iterator[ChangedHunk]:
    path, n = "", 0
    while n < len(rows):
        if found := _FILE.fullmatch(rows[n]):
            path = _unquoted(found[2]) if found[2] else found[1] or ""
        elif path and (opened := _HUNK.fullmatch(rows[n])):
            body = list(_body(rows, n + 1, int(opened[1] or 1), int(opened[2] or 1)))
            n += len(body)
            yield _hunk(path, opened[3], body)
        n += 1


def _body(rows: list[str], start: int, old: int, new: int) -> Iterator[str]:
    """Yield the lines of a hunk, as many as its heading says, whatever they hold."""
    for row in rows[start:]:
        if old <= 0 and new <= 0:
            return
        old -= row[:1] in (" ", "-", "")
        new -= row[:1] in (" ", "+", "")
        yield row


def _hunk(path: str, heading: str, body: list[str]) -> ChangedHunk:
    after = [row for row in body if row[:1] in (" ", "+", "")]
    marked = [n for n, row in enumerate(after) if row[:1] == "+" and row[1:].strip()]
    rows = after[marked[0] : marked[-1] + 1] if marked else []
    brought = [name for row in body if row[:1] in "+-" for name in _names(row[1:])]
    around = [name for row in body if row[:1] == " " for name in _names(row[1:])]
    names = brought or around[:1] or _names(heading)
    return ChangedHunk(
        path=path, names=tuple(dict.fromkeys(names)), rows=tuple(row[1:] for row in rows), added=len(marked)
    )


def _unquoted(path: str) -> str:
    """Return a path as it is, of which git wrote bytes as escapes: ``\\303\\274.py``."""
    escaped = path.encode("latin-1", "backslashreplace")
    return escaped.decode("unicode_escape", "replace").encode("latin-1", "replace").decode("utf-8", "replace")


def _names(row: str) -> list[str]:
    return [found[1] or found[2] for found in _NAME.finditer(row)]
