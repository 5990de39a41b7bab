"""Events in a folder: a gzip file of JSON lines for each kind and day."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.sinks import day_file
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.rows import SinkRow

_DAY = re.compile(r"[a-z]+-(\d{4}-\d\d-\d\d)\.jsonl\.gz")
_HEAD = re.compile(
    rb'\{"id":"([^"]*)","time":"[^"]*","subject":"[^"]*","trajectory":"([^"]*)",'
    rb'"sessions":\[([^\]]*)\],"users":\[([^\]]*)\],"data":'
)
"""Of a line; what is before the data is written here, so that no line needs to be parsed."""
_NAMES = re.compile(rb'[^",]+')


class Archive:
    """See `Sink`."""

    name, every_s, keeps = "archive", 5.0, True

    def __init__(self, folder: Path) -> None:
        """The folder is made where it is missing, once there is something for it."""
        self._folder = folder
        self._sizes: dict[Path, int] = {}
        """Of the files as this process left them; another one is to be looked at first."""

    def write(self, rows: Sequence[SinkRow], *, again: bool) -> int:
        """Add rows to the files of their days, each once."""
        files: defaultdict[str, list[SinkRow]] = defaultdict(list)
        for row in rows:
            files[f"{row.table}-{row.time[:10]}.jsonl.gz"].append(row)
        with self._alone():
            for name, some in sorted(files.items()):
                self._add(self._folder / name, some, again)
        return 0

    def _add(self, path: Path, rows: Sequence[SinkRow], again: bool) -> None:
        left = self._sizes.pop(path, -1)
        known: set[bytes] = set()
        if path.exists() and (again or path.stat().st_size != left):
            known = {_head(line).id for line in day_file.repair(path)}
        lines = {row.id: _line(row) for row in rows if row.id.encode() not in known}
        if lines:
            self._sizes[path] = day_file.append(path, list(lines.values()))

    def remove(self, removal: Removal) -> None:
        """Write the files again without what is to go."""
        with self._alone():
            found = self._with_sessions(removal) if removal.of_people else _Doomed.of(removal)
            self._rewrite(lambda head: found.has(head) and not found.names(head))
            self._rewrite(found.has)  # last what others are found by, for another attempt

    def _rewrite(self, goes: Callable[[_Head], bool]) -> None:
        for path in self._files():
            day_file.rewrite(path, lambda line: not goes(_head(line)))
            self._sizes.pop(path, None)

    def _with_sessions(self, removal: Removal) -> _Doomed:
        """Return what goes with sessions and users: runs, and what users' sessions have without any user."""
        found = _Doomed.of(removal)
        sessions: set[bytes] = set()
        for head in self._heads():
            if found.users & head.users:
                sessions |= head.sessions
        shared = {
            one for head in self._heads() if head.users - found.users for one in sessions & head.sessions
        }
        found.lonely.update(sessions - shared)
        found.trajectories.update(head.trajectory for head in self._heads() if found.has(head))
        found.trajectories.discard(b"")
        return found

    def expire(self, before: str) -> None:
        """Remove the files of days before a day."""
        with self._alone():
            for path in self._files():
                found = _DAY.fullmatch(path.name)
                if found and found[1] < before:
                    day_file.drop(path)

    def close(self) -> None:
        """Hold nothing between uses."""

    def _files(self) -> list[Path]:
        return [path for path in sorted(self._folder.iterdir()) if _DAY.fullmatch(path.name)]

    def _heads(self) -> Iterator[_Head]:
        for path in self._files():
            for _, lines in day_file.members(path):
                yield from map(_head, lines)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out of the folder; OSError becomes StoreError."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                os.close(handle)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"archive {self._folder}: {error}") from error


class _Head(NamedTuple):
    """Whose line it is."""

    id: bytes
    trajectory: bytes
    sessions: frozenset[bytes]
    users: frozenset[bytes]


class _Doomed(NamedTuple):
    """What goes."""

    events: set[bytes]
    trajectories: set[bytes]
    sessions: set[bytes]
    users: set[bytes]
    lonely: set[bytes]
    """Sessions of which goes what names nobody else."""

    @classmethod
    def of(cls, removal: Removal) -> _Doomed:
        """Return what a removal names."""
        named = (removal.events, removal.trajectories, removal.sessions, removal.users)
        events, trajectories, sessions, users = ({one.encode() for one in some} for some in named)
        return cls(events, trajectories, sessions, users, set())

    def names(self, head: _Head) -> bool:
        """Return whether a line names who is forgotten."""
        return not (self.sessions.isdisjoint(head.sessions) and self.users.isdisjoint(head.users))

    def has(self, head: _Head) -> bool:
        """Return whether a line goes."""
        return (
            head.id in self.events
            or head.trajectory in self.trajectories
            or self.names(head)
            or (not self.lonely.isdisjoint(head.sessions) and not head.users - self.users)
        )


def _line(row: SinkRow) -> bytes:
    names = {"sessions": row.sessions, "users": row.users}
    head = {"id": row.id, "time": row.time, "subject": row.subject, "trajectory": row.trajectory, **names}
    return f'{json.dumps(head, separators=(",", ":"))[:-1]},"data":{row.text}}}\n'.encode("ascii")


def _head(line: bytes) -> _Head:
    """Return whose a line is; what is not of ours is nobody's."""
    found = _HEAD.match(line)
    if found is None:
        return _Head(b"", b"", frozenset(), frozenset())
    return _Head(found[1], found[2], *(frozenset(_NAMES.findall(found[n])) for n in (3, 4)))
