"""The archive of a scenario's workspace: found beside the scenario, and compared with its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import confined

ARCHIVE_MAX_BYTES = 1_000_000_000
"""Of the archive itself, compressed."""


class WrongDigest(ValueError):
    """An archive that is not the one that its scenario names."""


def find_archive(data: Mapping[str, Json], folder: Path) -> WorkspaceArchive:
    """Return the archive that `data` of a scenario in `folder` names.

    Raises WrongDigest where its bytes are others, and ValueError or OSError where it cannot be read.
    """
    path = confined(folder, data["archive"], ARCHIVE_MAX_BYTES)
    archive = WorkspaceArchive(archive=data["archive"], path=path, sha256=data["sha256"])
    found = digest_of(path)
    if found != archive.sha256:
        raise WrongDigest(
            f"{archive.archive!r} has the sha256 {found}, not {archive.sha256}; restore the file, or write "
            "the digest that it has"
        )
    return archive


def digest_of(path: Path) -> str:
    """Return the sha256 of a file, read again only after its size or time changed; raises OSError."""
    status = path.stat()
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _digest(path: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
