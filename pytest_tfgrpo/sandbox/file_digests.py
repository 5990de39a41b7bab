"""Digests of files, which are read again only once they change."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path


def digest_of(path: Path) -> str:
    """Return the sha256 of a file, read again only after its size or time changed; raises OSError."""
    status = path.stat()
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _digest(path: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
