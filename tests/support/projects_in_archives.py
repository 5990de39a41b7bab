"""Archives of small projects, as scenarios name them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack


def write_archive(path: Path, files: Mapping[str, str | ArchiveEntry]) -> WorkspaceArchive:
    """Write an archive of files, by name, and return how a scenario names it."""
    entries = [
        value if isinstance(value, ArchiveEntry) else ArchiveEntry(name=name, data=value.encode())
        for name, value in files.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(entries))
    return WorkspaceArchive(archive=path.name, path=path, sha256=stamp_bytes(path.read_bytes()))
