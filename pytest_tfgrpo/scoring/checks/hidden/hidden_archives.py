"""Archives of hidden tests: where the one with a digest lies, and whether it is still the same."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.scenarios import Check, WorkspaceArchive

_places: dict[str, Path] = {}
"""Where the archive of hidden tests with a digest lies: a check has digests alone, the same everywhere."""


def remember(digest: str, path: Path) -> None:
    """Note where the archive with a digest lies."""
    _places[digest] = path


def remembered(digest: str) -> Path | None:
    """Return where the archive with a digest lies; None where no scenario with it was read."""
    return _places.get(digest)


def digest_of(path: Path) -> str:
    """Return the sha256 of a file, read again only after its size or time changed; raises OSError."""
    status = path.stat()
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _digest(path: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hidden_archive(check: Check) -> Path:
    """Return where the hidden tests lie; raises CheckError where they are not what the scenario names."""
    digest = check.params["hidden_sha256"]
    path = _places.get(digest)
    try:
        if path is None or digest_of(path) != digest:
            raise CheckError(
                f"{check.params['hidden']!r} was changed since its scenario was read; restore it"
            )
    except OSError as error:
        raise CheckError(f"cannot read {check.params['hidden']!r}: {error.strerror}") from error
    return path


def suite_folder(archive: WorkspaceArchive) -> Path:
    """Return the folder of the scenario file that names an archive."""
    return archive.path.parents[len(Path(archive.archive).parts) - 1]
