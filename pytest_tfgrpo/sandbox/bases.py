"""Bases: the files of which workspaces are made, unpacked once and kept in this process's memory.

Nothing is kept on disk: what an agent could write to would have to be checked each time, and what a killed
process left would have to be found and removed.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, ArchiveProblem, read_entries
from pytest_tfgrpo.sandbox.repository import repository_files
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter

GIT = ".git"
KEPT_BYTES = 256_000_000
"""Bytes of all bases that are kept; one that is larger is unpacked for each workspace."""
ENTRY_BYTES = 500
"""What an entry takes beside its content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """The files of an archive."""

    entries: Mapping[str, ArchiveEntry]
    """By name, sorted."""
    repository: Mapping[str, bytes]
    """Files of its ``.git`` folder, by their names in it."""
    size: int
    """Bytes in memory, about."""


class _Bases:
    """The bases that were used last; one that several threads want at once is read once."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: OrderedDict[str, Base] = OrderedDict()
        self._mutex = threading.Lock()
        self._reading: dict[str, threading.Lock] = {}

    def open(self, archive: WorkspaceArchive) -> Base:
        with self._mutex:
            if (found := self._found(archive.sha256)) is not None:
                return found
            reading = self._reading.setdefault(archive.sha256, threading.Lock())
        with reading:
            with self._mutex:
                if (found := self._found(archive.sha256)) is not None:
                    return found
            base = _read(archive)
            with self._mutex:
                self._reading.pop(archive.sha256, None)
                self._keep(archive.sha256, base)
        return base

    def _found(self, sha256: str) -> Base | None:
        if sha256 in self._kept:
            self._kept.move_to_end(sha256)
        return self._kept.get(sha256)

    def _keep(self, sha256: str, base: Base) -> None:
        if base.size > KEPT_BYTES:
            return
        self._kept[sha256] = base
        self._room -= base.size
        while self._room < 0:
            _, oldest = self._kept.popitem(last=False)
            self._room += oldest.size


_BASES = _Bases(KEPT_BYTES)
_WRITING = threading.Lock()
"""One base is written at a time: many threads of small writes take longer, as they wait for turns."""


def open_base(archive: WorkspaceArchive) -> Base:
    """Return the files of an archive, which has the digest that the scenario names.

    Raises ArchiveProblem where it is damaged or another, OSError where it cannot be read.
    """
    return _BASES.open(archive)


def _read(archive: WorkspaceArchive) -> Base:
    data = archive.path.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != archive.sha256:
        raise ArchiveProblem(
            f"{archive.archive}: it changed since the scenario was read: its sha256 is {found}, not "
            f"{archive.sha256}"
        )
    try:
        entries = sorted(read_entries(io.BytesIO(data)), key=lambda entry: entry.name)
    except ArchiveProblem as error:
        raise ArchiveProblem(f"{archive.archive}: {error}") from None
    repository = repository_files(entries)
    size = sum(len(entry.data) + ENTRY_BYTES for entry in entries) + sum(map(len, repository.values()))
    return Base(entries={entry.name: entry for entry in entries}, repository=repository, size=size)


def lay_base(base: Base, folder: Path, ignored: Collection[str] = (), *, repository: bool = True) -> None:
    """Write the files of a base into a folder, and its repository; raises OSError.

    The repository ignores what `ignored` names: it lies in the workspace, and is no part of the project.
    """
    with _WRITING, TreeWriter(folder) as writer:
        for entry in base.entries.values():
            if entry.link is None:
                writer.file(entry.name, entry.data, executable=entry.executable)
            else:
                writer.link(entry.name, entry.link)
        if repository:
            exclude = "".join(f"/{name}\n" for name in ignored).encode("utf-8", "surrogateescape")
            for name, data in (*base.repository.items(), ("info/exclude", exclude)):
                writer.file(f"{GIT}/{name}", data, executable=False)
