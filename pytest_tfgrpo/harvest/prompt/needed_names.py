"""Names that hidden tests need and the files before a fix lack: nobody could guess them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from pytest_tfgrpo.harvest.history.candidates import is_code
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees

MOST = 30
FILE_MAX = 1_000_000
"""Bytes of a file that is searched."""
_QUIET = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    r'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*|//[^\n]*',
    re.DOTALL,
)
"""Texts and comments; what of it is code in another language is left out, which names less, never more."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from\b[^\n]*\bimport\b\s*(?:\([^)]{0,4000}\)|[^\n]*)|import\b[^\n]*"
    r"|(?:const|let|var)\b[^\n]*\brequire\b[^\n]*)",
    re.MULTILINE,
)
_USED = re.compile(r"\.\s*([A-Za-z_]\w+)|[(,]\s*([A-Za-z_]\w+)\s*=(?!=)")
_KEYWORDS = "def|class|function|const|let|var|type|interface|enum"
_WORD = re.compile(r"[A-Za-z_]\w+")


def needed_names(trees: FixTrees) -> tuple[str, ...]:
    """Return names for a prompt, such as ``draw in shop/raffle.py``: at most MOST, the shortest files first.

    A name counts that a protected file imports, takes as an attribute or passes an argument by, that a file
    of the fix has, and that no file before the fix has.
    """
    wanted = {name for path in trees.hidden for name in _wanted(trees, path)}
    homes: dict[str, str] = {}
    defined: set[str] = set()
    for path in sorted(filter(is_code, trees.reference), key=lambda path: (len(path), path)):
        code = _code(_text(trees, "reference", path))
        for name in wanted & set(_words(code)):
            defines = _defines(code, name)
            if name not in homes or (defines and name not in defined):
                homes[name] = path
            if defines:
                defined.add(name)
    files = {PurePosixPath(path).stem: path for path in homes.values() if path not in trees.base}
    named = [f"`{name}` in `{homes[name]}`" for name in sorted(_absent(trees, homes))]
    modules = [f"`{path}`" for name, path in sorted(files.items()) if name in wanted]
    return tuple(dict.fromkeys((*modules, *named)))[:MOST]


def _wanted(trees: FixTrees, path: str) -> set[str]:
    """Return the names that a protected file uses and did not use before."""
    return set(_uses(_code(_text(trees, "hidden", path)))) - set(_uses(_code(_text(trees, "base", path))))


def _uses(code: str) -> Iterator[str]:
    for found in _IMPORT.finditer(code):
        yield from _words(found[0])
    for match in _USED.finditer(code):
        yield match[1] or match[2]


def _defines(code: str, name: str) -> bool:
    return (
        re.search(rf"\b(?:{_KEYWORDS})\s+{name}\b|^\s*(?:self\.)?{name}\s*[:=](?!=)", code, re.MULTILINE)
        is not None
    )


def _words(code: str) -> list[str]:
    return _WORD.findall(code)


def _code(text: str) -> str:
    return _QUIET.sub('""', text)


def _text(trees: FixTrees, part: str, path: str) -> str:
    entry = {"base": trees.base, "hidden": trees.hidden, "reference": trees.reference}[part].get(path)
    if entry is None or len(entry.data) > FILE_MAX or b"\0" in entry.data[:8000]:
        return ""
    return entry.data.decode("utf-8", "replace")


def _absent(trees: FixTrees, names: Iterable[str]) -> list[str]:
    """Return those of some names that no file before the fix has."""
    left = {name: name.encode() for name in names}
    for entry in trees.base.values():
        if not left:
            break
        if len(entry.data) <= FILE_MAX:
            for name in [name for name, data in left.items() if data in entry.data]:
                if re.search(rb"\b%s\b" % left[name], entry.data):
                    del left[name]
    return list(left)
