"""The folder of a job, written beside its place, then moved there whole; what killed captures left goes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_tfgrpo.core.file_writing import write_pieces
from pytest_tfgrpo.core.files import sync_folder
from pytest_tfgrpo.sandbox.removal import remove

DIFF, PROMPT, HISTORY, TARBALL, LOGS = "diff.patch", "prompt.md", "history.jsonl", "snapshot.tar.gz", "logs"
"""Names in the folder of a job, beside its manifest."""
STAGED = ".capture-"
"""Start of the name of a folder that is still being written."""
_IGNORE = "*\n"


def make_learning_folder(folder: Path) -> None:
    """Make the folder of jobs; git ignores what is in it, so that no snapshot takes it in. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".gitignore").exists():
        write_pieces(folder / ".gitignore", [_IGNORE.encode()])


@contextmanager
def staged_folder(learning: Path, name: str) -> Iterator[Path]:
    """Make the folder of a job where nobody looks for it; it goes unless it was moved. Raises OSError."""
    folder = learning / f"{STAGED}{name}"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems have no locks, and there nothing is removed
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        if folder.exists():
            remove(folder)
        os.close(handle)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a job; raises JournalError, OSError."""
    (folder / LOGS).mkdir(exist_ok=True)
    for name, content in files.items():
        write_pieces(folder / name, [content])


def finish(folder: Path, learning: Path, name: str) -> None:
    """Move a staged folder to its place, in one step; raises OSError."""
    target = learning / name
    folder.rename(target)
    with suppress(OSError):
        sync_folder(learning)


def abandoned(learning: Path) -> Iterator[str]:
    """Yield the names of jobs whose capture was killed; their folders are removed after each."""
    for folder in sorted(learning.glob(f"{STAGED}*")):
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder.name.removeprefix(STAGED)
            remove(folder)
        except OSError:  # who writes it holds its lock
            continue
        finally:
            os.close(handle)
