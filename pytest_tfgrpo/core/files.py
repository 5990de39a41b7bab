"""Files: the names of those that the project reads and writes, and how one is written whole."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

USUAL_SUFFIXES = (".scenario.yaml", ".scenario.json", ".scenarios.jsonl", ".scenarios.csv")
"""Ends of the names of scenario files, as the documentation has them."""
SCENARIO_SUFFIXES = (
    *USUAL_SUFFIXES,
    *(".scenario.yml", ".scenarios.yml", ".scenarios.yaml"),
    *(".scenarios.json", ".scenario.jsonl", ".scenario.csv"),
)
"""A file whose name ends so holds scenarios."""


def scenario_name(path: Path) -> str | None:
    """Return how a file would be named to hold scenarios; None where it holds some, or is of another kind."""
    wanted = {end.rpartition(".")[2]: end for end in (*SCENARIO_SUFFIXES, *USUAL_SUFFIXES)}
    end = wanted.get(path.suffix[1:])
    return None if end is None or path.name.endswith(SCENARIO_SUFFIXES) else path.stem + end


INI_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""Where settings stand, in the order in which pytest looks for them in a folder."""

JOURNAL = "journal.jsonl"
JOURNAL_START = b'{"n":1,"event":"run","data":{"schema":"tfgrpo.journal/'
"""First bytes of a journal."""
MANIFEST = "manifest.json"
BATCHES = "batches.jsonl"
METRICS = "metrics.jsonl"
PER_EPOCH = "per-epoch.json"
REPORT_JSON = "report.json"
REPORT_SCHEMA = "tfgrpo.report/1"
REPORT_HTML = "report.html"
DETAILS = "report-details.jsonl.gz"
"""Beside the page of a run with more scenarios than a page holds."""
EXPERIENCES = "experiences.jsonl"
EXPOSURES = "exposures.jsonl"
LIBRARY = "library.json"
LABELS = "labels.json"
LABELS_FORM = "labels.csv"
DECOYS = "answers.json"
"""In a run's folder, wrong answers by scenario: an agent that answers with one has looked there."""
RUNS = "runs"
REPLICATIONS = "replications"
"""In a task's folder, the runs of `tfgrpo replicate`: each seed has an output folder of its own."""
ARENAS = "arenas"
"""In a task's folder, a folder for each arena."""
ARENA_PLAN = "plan.json"
ARENA_RESULT = "arena.json"
ARENA_SIDES = "sides"
"""In the folder of an arena, the output folder of what its sides run: a task each."""
ARENA_SWEEP = "final"
"""The task of the final sweep, beside those of the sides."""
WORKSPACES = "workspaces.json"
"""In a run's folder, names the folder of the run's workspaces, where a resumed run needs them."""
WORKSPACES_PREFIX = "tfgrpo-workspaces-"
"""Start of the name of a folder of workspaces, before the run id."""


LARGEST = 256_000_000
"""Bytes of a file that is read whole."""


def open_plain(path: Path) -> BinaryIO:
    """Open a file that a person named; raises OSError, also for what is no regular file.

    A pipe without a writer would wait for ever, and a device never end.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return open(handle, "rb")  # noqa: PTH123 - a descriptor, not a path
    except BaseException:
        os.close(handle)
        raise


def read_plain(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a file that a person named; raises OSError, also where it is too large."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > largest else file.read(largest + 1)
    if size > largest or len(data) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest} bytes", str(path))
    return data


def make_private(path: Path) -> None:
    """Make an empty file for its owner alone, whatever the umask, and leave one that is there as it is.

    What SQLite puts beside such a file takes over its mode. Raises OSError.
    """
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def write_atomic(path: Path, content: Iterable[bytes]) -> None:
    """Write a file whole or not at all, durable when the call returns; raises OSError.

    What is there and is no regular file, such as a device, is not replaced: it is an error.
    A link stays a link, and a file keeps its mode. Threads and processes that write one path at once do not
    meet: the last one wins. What a killed process left of the same file is removed.
    """
    path = path.resolve()
    remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with _claim(temporary) as file:
            with suppress(FileNotFoundError):
                mode = path.stat().st_mode
                if not stat.S_ISREG(mode):
                    raise OSError(errno.EINVAL, "it is not a regular file", str(path))
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)  # before its lock is gone
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def _claim(path: Path) -> BinaryIO:
    """Open a file to write and lock it, once more where it was taken for one that nobody writes."""
    while True:
        file = path.open("wb")
        with suppress(OSError):  # some file systems have no locks, and there nothing is removed
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():
            return file
        file.close()


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` that nobody writes any more: who writes one holds its lock."""
    with suppress(OSError):
        for left in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
            number, _, thread = left.name.rsplit(".", 2)[-2].partition("-")
            if number.isdigit() and thread.isdigit():
                with suppress(OSError), left.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(file.fileno()), left.stat()):
                        left.unlink()


def sync_folder(folder: Path) -> None:
    """Return once the names of the files in `folder` are on disk; raises OSError."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def run_folder(out: Path, task_id: str, run_id: str) -> Path:
    """Return the folder of a run."""
    return out / task_id / RUNS / run_id
