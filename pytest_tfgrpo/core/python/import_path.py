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
        before = sys.path.count(entry)
        sys.path.insert(0 if first else len(sys.path), entry)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            places = [i for i, other in enumerate(sys.path) if other == entry]
            if len(places) > before:  # a module may change the path; what was there before it stays
                del sys.path[places[0 if first else -1]]
