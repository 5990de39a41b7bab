"""Watch which files are synced to disk, and how much of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Syncs:
    """What os.fsync was called with, as if the machine could lose all else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, int]] = []
        """Name of the file or folder, and the size of the file at that time (0 for a folder)."""
        really = os.fsync

        def fsync(fd: int) -> None:
            path = Path(f"/proc/self/fd/{fd}").readlink()
            self.seen.append((path.name, os.fstat(fd).st_size if path.is_file() else 0))
            really(fd)

        monkeypatch.setattr(os, "fsync", fsync)

    def on_disk(self, path: Path) -> bytes:
        """Return what of a file would be left if the machine stopped now."""
        sizes = [size for name, size in self.seen if name == path.name]
        return path.read_bytes()[: max(sizes, default=0)]
