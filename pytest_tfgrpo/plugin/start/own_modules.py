"""Keeps pytest from rewriting the assertions of this package, of whose modules it would parse each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_OURS = "pytest_tfgrpo."


class OwnModules:
    """A finder that loads modules of this package as Python does.

    pytest rewrites every module of a distribution with a plugin: some 170 of a run are parsed at each start
    where their cache cannot be written, and parsing on one thread while another formats a traceback raises
    SystemError on Python before 3.11.8 and 3.12.2 (gh-106905).
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what Python's own finder does for a module of this package, else None."""
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None


def load_as_they_are() -> None:
    """Have the rest of this package imported without pytest's rewriting."""
    if not any(isinstance(finder, OwnModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, OwnModules())
