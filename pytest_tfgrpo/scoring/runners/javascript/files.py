"""Files of tests that node finds by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.sandbox.paths import walk

_CODE = r"\.[cm]?js"
_NAMED = re.compile(rf"(?:.+[.\-_])?test{_CODE}|test-.+{_CODE}")
_ANY = re.compile(rf".+{_CODE}")


def is_node_test(path: str) -> bool:
    """Return whether node runs a file by its path: in a folder ``test``, or called a test."""
    *folders, name = PurePosixPath(path).parts
    return bool(_NAMED.fullmatch(name) or ("test" in folders and _ANY.fullmatch(name)))


def node_tests(folder: Path) -> Iterator[str]:
    """Yield the files of tests below a folder, relative to it, sorted; nothing of ``node_modules``."""
    yield from sorted(path for path in walk(folder, ("node_modules", ".git")) if is_node_test(path))
