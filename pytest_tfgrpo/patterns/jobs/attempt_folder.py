"""The folder of one attempt: what a worker writes is seen by nobody before its lease is checked.

It begins with links to the files of the job, and what differs in the end moves into the job's folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_tfgrpo.core.files import MANIFEST, sync_folder
from pytest_tfgrpo.sandbox.removal import remove

LOGS = "logs"
"""In the folder of a job: what went wrong, by attempt."""
PREFIX = ".attempt-"
LAST = ".scenario.yaml"
"""End of the names of files that move last, so that there is no scenario without its archives."""


class AttemptFolder:
    """A folder in that of a job."""

    def __init__(self, job: Path, path: Path) -> None:
        """`path` is new and empty."""
        self.job, self.path = job, path
        for name in _files(job):
            if name.parts[0] != LOGS and name.name != MANIFEST:
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                _link(job / name, path / name)
        (path / LOGS).mkdir()
        self._began = self._marks()

    def publish(self) -> None:
        """Move what the attempt wrote into the job's folder, and remove there what it removed."""
        now = self._marks()
        changed = [name for name, mark in now.items() if self._began.get(name) != mark]
        for name in sorted(changed, key=lambda one: (one.name.endswith(LAST), one)):
            target = self.job / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).replace(target)
        for name in self._began.keys() - now.keys():
            (self.job / name).unlink(missing_ok=True)
        for folder in {self.job / name.parent for name in changed}:
            sync_folder(folder)

    def _marks(self) -> dict[Path, tuple[int, int, int]]:
        """Return what tells whether a file was written again, by name."""
        found = {}
        for name in _files(self.path):
            status = (self.path / name).lstat()
            found[name] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return found


@contextmanager
def attempt_folder(job: Path, holder: str) -> Iterator[AttemptFolder]:
    """Make the folder of an attempt, which goes in the end; raises OSError.

    What lost workers left of theirs is removed.
    """
    for left in job.glob(f"{PREFIX}*"):
        remove(left)
    path = job / f"{PREFIX}{holder}"
    path.mkdir(parents=True)
    try:
        yield AttemptFolder(job, path)
    finally:
        remove(path)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the plain files below a folder, those of attempts left out, by their path in it."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(PREFIX)]
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder)


def _link(source: Path, target: Path) -> None:
    with suppress(OSError):  # some file systems have no links
        target.hardlink_to(source)
        return
    shutil.copy2(source, target)
