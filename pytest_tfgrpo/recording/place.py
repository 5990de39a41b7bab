"""Which file a replay names, and what is in it now."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_tfgrpo.core.files import open_plain


def named(argument: str, root: Path) -> tuple[str, str]:
    """Return file and actor of ``<file>`` or ``<file>#<actor>``; '' for an actor that is not named."""
    if "#" in argument and not (root / argument).is_file():
        name, _, actor = argument.partition("#")
        return name, actor
    return argument, ""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file as it is now; empty for one that cannot be read."""
    digest = hashlib.sha256()
    try:
        with open_plain(path) as file:
            while part := file.read(1 << 20):
                digest.update(part)
    except OSError:
        return ""
    return digest.hexdigest()
