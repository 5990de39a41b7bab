"""The lesson store: an append-only log of JSON lines (decisions 14-17).

An append takes the file's lock, writes its batch in one go and fsyncs; what other processes appended in the
meantime is read first. A lesson drops out of `fetch_top` when a tombstone or a later revision names its
id; its line stays on file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import sync_folder
from pytest_tfgrpo.core.lessons import Experience, Tombstone
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.learning.library.experience_lines import MAX_WORDS, check, encode, load, read_line
from pytest_tfgrpo.learning.library.retrieval import pick, raw_score, weigh_by_relevance

CHUNK = 8 << 20
MAX_LINE = 64 << 20
"""Bytes of a line: more than that is no record, and is not read into memory."""

StoreLine: TypeAlias = tuple[bytes, str | Tombstone]
"""A line, and its tombstone or the id of its experience."""


class Skipped(NamedTuple):
    """A line that is not a record, and why."""

    line: int
    """Counted from 1."""
    reason: str


class ExperienceStore:
    """The experiences of a task; for one thread of any number of processes."""

    skipped: list[Skipped]
    """Malformed lines."""
    repaired_bytes: int
    """Bytes of torn last lines that were cut off."""

    def __init__(self, path: Path, fd: int, max_words: int) -> None:
        """Use `open` instead."""
        self._path, self._fd, self._max_words = path, fd, max_words
        self.skipped = []
        self.repaired_bytes = 0
        self._end = 0
        self._lines = 0
        self._places: dict[str, tuple[int, int]] = {}
        self._tombstones: set[tuple[str, str]] = set()

    @classmethod
    def open(cls, path: Path, *, max_words: int = MAX_WORDS) -> ExperienceStore:
        """Open the store at `path`, which is made if need be; a torn last line is repaired.

        Raises StoreError naming the file.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(f"cannot open the lesson store {path}: {error}") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise StoreError(f"cannot open the lesson store {path}: it is not a regular file")
        store = cls(path, fd, max_words)
        try:
            store.refresh()
            with store._naming("sync the folder of"):
                sync_folder(path.parent)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> ExperienceStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of stored experiences, active or not."""
        return len(self._places)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._places

    @property
    def complaints(self) -> list[str]:
        """What was found wrong with the file, for a reader; empty when nothing was."""
        found = []
        if self.skipped:
            first = self.skipped[0]
            found.append(
                f"{self._path}: {len(self.skipped)} malformed lines were skipped; the first is line "
                f"{first.line}: {first.reason}"
            )
        if self.repaired_bytes:
            found.append(f"{self._path}: an incomplete last line of {self.repaired_bytes} bytes was removed")
        return found

    def append(self, records: Sequence[Experience | Tombstone]) -> int:
        """Commit `records` as one batch and return how many were new; known ids are left as they are.

        Raises StoreError when a record is refused (then none is written) or the file cannot be written (then
        what was committed before is intact).
        """
        batch = [self._admit(record) for record in records]
        with self._locked():
            self._catch_up()
            new = self._new(batch)
            self._write(b"".join(line + b"\n" for line, _ in new))
            for line, row in new:
                self._take_in(line, row)
        return len(new)

    def refresh(self) -> None:
        """Take in what other processes appended since."""
        with self._locked():
            self._catch_up()

    def get(self, id_: str) -> Experience:
        """Return the experience with `id_`; raises KeyError."""
        offset, length = self._places[id_]
        with self._naming("read"):
            return load(os.pread(self._fd, length, offset))

    def records(self) -> Iterator[Experience | Tombstone]:
        """Yield every record on file, in order of appending."""
        bad = {skipped.line for skipped in self.skipped}
        with self._naming("read"):
            for number, line in enumerate(self._read_lines(0, self._end), start=1):
                if number not in bad:
                    row = read_line(line)
                    yield row if isinstance(row, Tombstone) else load(line)

    def fetch_top(
        self,
        *,
        domain: str,
        limit: int,
        min_reward: float = 0.0,
        stamp: str | None = None,
        prompt: str | None = None,
        weights: tuple[float, float] = (0.7, 0.3),
    ) -> tuple[Experience, ...]:
        """Return at most `limit` active lessons of `domain`, best first (decision 16).

        With `stamp`, only those learned under that prompt pack; with `prompt`, weighed by relevance to it.
        """
        known: dict[str, Experience] = {}
        gone = {id_ for id_, _ in self._tombstones}
        for record in self.records():
            if isinstance(record, Experience):
                known.setdefault(record.id, record)
                gone.update(record.parents)
        able = (e for e in known.values() if e.id not in gone and e.domain == domain)
        scored = [(raw_score(e, weights), e) for e in able if stamp in (None, e.stamp_signature)]
        scored = [(score, e) for score, e in scored if score >= min_reward]
        if prompt is not None:
            scored, _ = weigh_by_relevance(scored, prompt)
        return pick(scored, limit)

    def _admit(self, record: Experience | Tombstone) -> StoreLine:
        try:
            line = encode(record)
            row = read_line(line)
            if self._max_words < MAX_WORDS:
                check(record, self._max_words)
            return line, row
        except (TypeError, ValueError) as error:
            raise StoreError(f"{self._path} refuses record {record.id!r}: {error}") from error

    def _new(self, batch: Iterable[StoreLine]) -> list[StoreLine]:
        new: dict[tuple[str, ...], StoreLine] = {}
        for line, row in batch:
            if isinstance(row, Tombstone):
                if (row.id, row.run_id) not in self._tombstones:
                    new.setdefault((row.id, row.run_id), (line, row))
            elif row not in self._places:
                new.setdefault((row,), (line, row))
        return list(new.values())

    def _write(self, blob: bytes) -> None:
        """Write and fsync at the end of the file; on failure cut it back to where it ended."""
        try:
            rest = memoryview(blob)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            os.fsync(self._fd)
        except OSError as error:
            with self._naming("restore"):
                os.ftruncate(self._fd, self._end)
            raise StoreError(f"cannot write the lesson store {self._path}: {error}") from error

    def _catch_up(self) -> None:
        """Take in the lines beyond those known, and repair a torn last one; call it with the lock held."""
        with self._naming("read"):
            size = os.fstat(self._fd).st_size
            if size < self._end:
                raise StoreError(f"{self._path} was truncated by another process while in use; open it again")
            for line in self._read_lines(self._end, size):
                try:
                    self._take_in(line, read_line(line))
                except ValueError as error:
                    self._take_in(line, None)
                    self.skipped.append(Skipped(self._lines, str(error)))
            if self._end < size:
                self._repair(os.pread(self._fd, size - self._end, self._end))

    def _repair(self, tail: bytes) -> None:
        """Finish a last line that lacks only its end, cut off one that is torn."""
        try:
            row = read_line(tail)
        except ValueError:
            os.ftruncate(self._fd, self._end)
            self.repaired_bytes += len(tail)
        else:
            os.write(self._fd, b"\n")
            self._take_in(tail, row)
        os.fsync(self._fd)

    def _read_lines(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the whole lines between two offsets."""
        held: list[bytes] = []
        while start < end and (data := os.pread(self._fd, min(CHUNK, end - start), start)):
            start += len(data)
            held.append(data)
            if b"\n" in data:
                *lines, rest = b"".join(held).split(b"\n")
                held = [rest]
                yield from lines
            if sum(map(len, held)) > MAX_LINE:
                raise StoreError(
                    f"{self._path}:{self._lines + 1}: the line has more than {MAX_LINE} bytes, so this is no "
                    "lesson store; remove the line, or the file"
                )

    def _take_in(self, line: bytes, row: str | Tombstone | None) -> None:
        """Remember the line at the end of what is known."""
        if isinstance(row, Tombstone):
            self._tombstones.add((row.id, row.run_id))
        elif row is not None:
            self._places.setdefault(row, (self._end, len(line)))
        self._end += len(line) + 1
        self._lines += 1

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._naming("lock"):
            if self._fd < 0:
                raise OSError(errno.EBADF, "it is closed")
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            with self._naming("find"):
                ours, there = os.fstat(self._fd), self._path.stat()
            if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
                raise StoreError(f"{self._path} was replaced by another file while in use; open it again")
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    @contextmanager
    def _naming(self, action: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"cannot {action} the lesson store {self._path}: {error}") from error


def export_camel(records: Iterable[Experience]) -> Iterator[dict[str, Json]]:
    """Yield experiences as the source document spells them: with camelCase keys (decision 15)."""
    for record in records:
        yield _camel(to_wire(record))


def _camel(value: Json) -> Json:
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), key): _camel(item) for key, item in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value
