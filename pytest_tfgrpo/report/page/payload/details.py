"""The file beside the page of a large run: all its scenarios and rollouts, for `tfgrpo view`.

It is gzip in members, each a line of JSON, so that programs read it as lines and a viewer reads one member:
a head; then by turns up to `SHARD` rows and their groups; a table of where each of these starts; and at last
a member of fixed size that says where the table is.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.report.page.payload.payload import SHARD, Rows
from pytest_tfgrpo.report.page.previews import preview
from pytest_tfgrpo.report.page.trajectories import (
    CHUNK,
    ChunkWriter,
    Packed,
    groups_of,
    gzipped,
    told_of,
)

if TYPE_CHECKING:
    from pytest_tfgrpo.report.page.layout import Layout

SCHEMA = "tfgrpo.details/1"
LEVEL = 3
"""Of compression: a long run waits for it."""
LARGEST_TABLE = 64_000_000
"""Characters of a table that is read."""
_TAIL = 60
"""Characters of the last line."""


class Details:
    """Makes the file of a run that was laid out."""

    def __init__(self, laid: Layout, run: Run) -> None:
        """Read nothing yet."""
        self._laid, self._run = laid, run
        self.key = ""
        """Names this content, once all of it was made."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the file, member by member."""
        head = {"schema": SCHEMA, "run_id": self._run.run_id, "scenarios": len(self._laid.cells.rows)}
        table: dict[str, list[list[int]]] = {"rows": [], "groups": []}
        yield (piece := _member(json.dumps(head)))
        end = len(piece)
        for kind, first, text in self._parts():
            yield (piece := _member(text))
            table[kind].append([first, end, len(piece)])
            end += len(piece)
        written = json.dumps({**head, **table}, separators=(",", ":"))
        self.key = _key(written)
        yield (piece := _member(written))
        yield _tail(end, len(piece))

    def _parts(self) -> Iterator[tuple[str, int, str]]:
        """Yield the kind of each part, the number of its first row, and its text."""
        cells, told, rows = self._laid.cells, told_of(self._run), Rows(self._laid)
        for start in range(0, len(cells.rows), SHARD):
            stop = min(start + SHARD, len(cells.rows))
            said = [asdict(preview(row, cells, told.scenarios[row.id])) for row in cells.rows[start:stop]]
            words = {key: [one[key] for one in said] for key in said[0]}
            value = rows.part(start, stop, Packed()) | {"start": start, "words": words}
            yield "rows", start, json.dumps(value, separators=(",", ":"), allow_nan=False)
            part, first = ChunkWriter(), start
            for n, row in enumerate(cells.rows[start:stop], start):
                for place, group in groups_of(cells, n, row):
                    part.add(place, group, told)
                if part.size > CHUNK or n + 1 == stop:
                    yield "groups", first, part.json()
                    part, first = ChunkWriter(), n + 1


class DetailsFile:
    """Reads the members of such a file, for any thread."""

    def __init__(self, path: Path) -> None:
        """Open the file; raises JournalError where it is none or is damaged."""
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise JournalError(f"cannot read {path}: {error.strerror}") from error
        try:
            self._starts, self._places, self.key = self._table()
        except (OSError, ValueError, TypeError, KeyError, zlib.error) as error:
            raise JournalError(
                f"{path} is damaged or not a file of details; write it again with "
                f"tfgrpo report {path.parent.name}"
            ) from error

    def __del__(self) -> None:
        """Close the file."""
        if hasattr(self, "_fd"):
            os.close(self._fd)

    def piece(self, kind: str, row: int) -> bytes | None:
        """Return the member of a kind, `rows` or `groups`, that has a row, as gzip; None where none has."""
        starts = self._starts.get(kind, [])
        at = bisect_right(starts, row) - 1
        if at < 0:
            return None
        start, size = self._places[kind][at]
        return os.pread(self._fd, size, start)

    def _table(self) -> tuple[dict[str, list[int]], dict[str, list[tuple[int, int]]], str]:
        size, tail = os.fstat(self._fd).st_size, len(_tail(0, 0))
        at, length = load_json(_text(os.pread(self._fd, tail, max(0, size - tail)), _TAIL))["table"]
        written = _text(os.pread(self._fd, _checked(length, size), _checked(at, size)), LARGEST_TABLE)
        starts, places = {}, {}
        for kind in ("rows", "groups"):
            entries: Sequence[Sequence[Any]] = load_json(written)[kind]
            starts[kind] = [_checked(first, LARGEST_TABLE) for first, _, _ in entries]
            places[kind] = [(_checked(at, size), _checked(length, size)) for _, at, length in entries]
        return starts, places, _key(written.removesuffix("\n"))


def _key(table: str) -> str:
    return hashlib.sha256(table.encode()).hexdigest()[:32]


def _checked(value: Any, most: int) -> int:
    """Return a number of a table; raises ValueError."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r} is no place in the file")
    return value


def _member(text: str) -> bytes:
    return gzipped(text + "\n", LEVEL)


def _tail(start: int, size: int) -> bytes:
    """Return the last member, whose size is always the same, as it is not compressed."""
    return gzipped(json.dumps({"table": [start, size]}).ljust(_TAIL - 1) + "\n", 0)


def _text(data: bytes, most: int) -> str:
    """Return the text of a member; raises ValueError where it is longer."""
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    found = reader.decompress(data, most + 1)
    if len(found) > most or not reader.eof:
        raise ValueError("a member that is cut or too long")
    return found.decode("ascii")
