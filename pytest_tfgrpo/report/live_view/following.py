"""Follow a journal that grows: only what is new is read, and a journal that was replaced is read again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

from pytest_tfgrpo.core.errors import JournalError, describe
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.live_view.run_figures import RunFigures
from pytest_tfgrpo.runs.journal.journal import damage, decode
from pytest_tfgrpo.runs.journal.journal_contents import header_of

CHECK = 40
"""Bytes before the place reached that must be as they were: they hold time and checksum of an event."""


class _Reading:
    """How far a journal was read, from its start."""

    def __init__(self, inode: tuple[int, int]) -> None:
        self.inode = inode
        """Of the file that is read."""
        self.run: RunFigures | None = None
        """None before the first event."""
        self.events = self.offset = self.size = 0
        self.last = b""
        """Bytes before the place reached."""


class JournalFollower:
    """The figures of a run as far as its journal is read; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Follow the journal at `path`; nothing is read yet."""
        self.path = path
        self.generation = 0
        """How often reading began again, as the journal was another one."""
        self._reading: _Reading | None = None

    @property
    def run(self) -> RunFigures | None:
        """Return the figures; None before the first event was read."""
        return self._reading.run if self._reading else None

    @property
    def events(self) -> int:
        """Return how many events were read."""
        return self._reading.events if self._reading else 0

    def read(self, seconds: float | None = None) -> bool:
        """Read what is new, for so long at most; return whether there is more.

        Raises JournalError where the journal cannot be read or relied on.
        """
        end = None if seconds is None else time.monotonic() + seconds
        try:
            with self.path.open("rb") as file:
                reading = self._reading = self._at_its_place(file)
                while line := file.readline():
                    if not line.endswith(b"\n"):
                        return False  # torn, or not yet whole
                    self._take(reading, line)
                    if end is not None and time.monotonic() > end:
                        return reading.offset < reading.size
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.path}: {error}") from error
        return False

    def _at_its_place(self, file: BinaryIO) -> _Reading:
        """Go to where reading stopped; to the start where the journal is not the one that was read."""
        found = os.fstat(file.fileno())
        inode = (found.st_dev, found.st_ino)
        reading = self._reading or _Reading(inode)
        file.seek(reading.offset - len(reading.last))
        if reading.inode != inode or file.read(len(reading.last)) != reading.last:
            self.generation += 1
            reading = _Reading(inode)
            file.seek(0)
        reading.size = found.st_size
        return reading

    def _take(self, reading: _Reading, line: bytes) -> None:
        number = reading.events + 1
        try:
            event = decode(line[:-1])
        except ValueError as error:
            raise damage(self.path, number, str(error)) from None
        if event is None:
            raise damage(self.path, number, "it is damaged")
        if event.n != number:
            raise damage(self.path, number, f"its number n is {event.n!r:.40}: lines are missing or moved")
        try:
            if reading.run is None:
                reading.run = RunFigures(header_of(self.path, event))
            else:
                reading.run.take(event)
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise JournalError(
                f"{self.path}:{number}: event {event.event!r:.40} cannot be read: {describe(error)}"
            ) from error
        reading.events, reading.offset = number, reading.offset + len(line)
        reading.last = line[-CHECK:]

    def state(self, now: float) -> dict[str, Json]:
        """Return what a reader sees at the time `now`, seconds since 1970."""
        reading = self._reading
        return {
            **(self.run.state(now) if self.run is not None else {}),
            "events": self.events,
            "generation": self.generation,
            "read": reading.offset / reading.size if reading and reading.size else 0.0,
        }
