"""The import path, with another folder for a moment."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATH = threading.RLock()
"""Held while the import path is changed: several runs may be prepared at once."""


@contextmanager
def importable(folder: Path, *, first: bool = True) -> Iterator[None]:
    """Look for modules in `folder` too, before all others or after them."""
    entry = str(folder)
    with _PATH:
        sys.path.insert(0 if first else len(sys.path), entry)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            if first and entry in sys.path:
                sys.path.remove(entry)
            elif sys.path[-1:] == [entry]:  # not another one, which was there before
                sys.path.pop()
