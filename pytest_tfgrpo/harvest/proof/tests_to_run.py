"""Which tests a validation runs: those that the fix changed, and the others of the touched packages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator

from pytest_tfgrpo.scoring.checks.hidden.protected import is_test

MOST = 200
"""Files with tests besides those that the fix changed."""
_AFFIX = re.compile(r"^test_|_tests?$|[._-](?:test|spec)$", re.IGNORECASE)


def files_to_run(
    changed: Iterable[str], sources: Iterable[str], tree: Collection[str], globs: tuple[str, ...], folder: str
) -> tuple[str, ...]:
    """Return the files with tests of a tree to run, sorted as in a check.

    Beside them lie the other tests of their folders; the tests named after a source, or in a folder of
    tests beside it, are of its package. Only files below `folder` are taken.
    """
    own = [name for name in changed if name in tree]
    homes = {posixpath.dirname(name) for name in own}
    beside = {posixpath.dirname(name) for name in sources}
    named = {_stem(name) for name in sources}
    others = [
        name
        for name in sorted(tree)
        if _within(name, folder)
        and name not in own
        and is_test(name, globs)
        and (posixpath.dirname(name) in homes or _stem(name) in named or _is_beside(name, beside))
    ]
    return tuple(sorted((*own, *others[:MOST])))


def nearest_tests(protected: Iterable[str], tree: Collection[str], globs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files with tests nearest to changed files that hold none: data of tests, `conftest.py`."""
    tests = [name for name in tree if is_test(name, globs)]
    found: set[str] = set()
    for name in protected:
        near = (below for above in _above(name) if (below := [t for t in tests if _within(t, above)]))
        found.update(next(near, ()) if name in tree else ())
    return tuple(sorted(found)[:MOST])


def _is_beside(name: str, folders: Collection[str]) -> bool:
    """Return whether a test lies in a folder of sources, or one below it; all is below the tree itself."""
    return any(above in folders for above in _above(name) if above)


def _above(name: str) -> Iterator[str]:
    while name:
        name = posixpath.dirname(name)
        yield name


def _within(name: str, folder: str) -> bool:
    return folder in ("", ".") or name.startswith(f"{folder.rstrip('/')}/")


def _stem(name: str) -> str:
    return _AFFIX.sub("", posixpath.basename(name).partition(".")[0]).lower().strip("_")
