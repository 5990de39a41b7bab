"""The program that the first word of a command line names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pytest_tfgrpo.core.errors import ActorError


def program_path(name: str, root: Path, spec: str, search: str) -> str:
    """Return the path of a program: one with a slash is in `root`, another on the PATH `search`.

    Raises ActorError naming `spec`.
    """
    if "/" not in name:
        if found := shutil.which(name, path=search):
            return found
        hint = f"; write ./{name}" if (root / name).is_file() else "; install it, or write its path"
        raise ActorError(f"{spec!r}: there is no program {name!r} on PATH{hint}")
    path = root / name
    if not path.is_file():
        raise ActorError(f"{spec!r}: there is no program {path}")
    if not os.access(path, os.X_OK):
        raise ActorError(f"{spec!r}: {path} is not executable; run chmod +x {name}")
    return str(path)
