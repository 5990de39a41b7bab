"""The log of a harvest, ``harvest.jsonl``: one row a change, of which the last one of a commit counts."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.files import sync_folder
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.harvest.fixes import HarvestRow

HARVEST_LOG = "harvest.jsonl"


class HarvestLog:
    """The open log of a suite; who has it open has the suite for himself."""

    def __init__(self, suite: Path) -> None:
        """Open the log of the folder `suite`, which is made where it is missing; a torn last line is cut off.

        Raises SettingError where another process works on the suite, StoreError where the log is damaged or
        cannot be written.
        """
        self.path = suite / HARVEST_LOG
        if suite.exists() and not suite.is_dir():
            raise SettingError(f"{suite} is not a folder; name the folder of a suite")
        try:
            suite.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(f"cannot open {self.path}: {error}") from error
        try:
            self._lock()
            self.rows = self._read()
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self) -> HarvestLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def append(self, rows: Iterable[HarvestRow]) -> None:
        """Add rows, which are on disk when the call returns; raises StoreError."""
        new = list(rows)
        if not new:
            return
        lines = "".join(json.dumps(to_wire(row), allow_nan=False) + "\n" for row in new).encode("ascii")
        end = os.fstat(self._handle).st_size
        try:
            written = 0
            while written < len(lines):
                written += os.write(self._handle, lines[written:])
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, end)
            raise StoreError(f"cannot write {self.path}: {error}; make room and harvest again") from error
        self.rows.update((row.commit, row) for row in new)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingError(
                f"the suite {self.path.parent} is locked: another harvest works on it; wait until it ends"
            ) from None
        except OSError:  # some file systems have no locks
            return
        sync_folder(self.path.parent)

    def _read(self) -> dict[str, HarvestRow]:
        with open(self._handle, "rb", closefd=False) as file:
            file.seek(0)
            data = file.read()
        whole = data.rfind(b"\n") + 1
        rows = _rows(data[:whole], self.path)
        if whole != len(data):
            os.ftruncate(self._handle, whole)
        return rows


def read_log_of(suite: Path) -> dict[str, HarvestRow]:
    """Return the rows of a suite by commit, none where it has no log; raises StoreError."""
    path = suite / HARVEST_LOG
    try:
        return _rows(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error}") from error


def _rows(data: bytes, path: Path) -> dict[str, HarvestRow]:
    rows = {}
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            row = from_wire(HarvestRow, json.loads(line))
        except (ValueError, RecursionError) as error:
            raise StoreError(
                f"{path}:{number}: it is not a row of a harvest: {error}; restore the file, or delete this "
                "line to have its change harvested again"
            ) from None
        rows[row.commit] = row
    return rows
