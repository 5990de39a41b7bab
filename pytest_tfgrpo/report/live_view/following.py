"""Follow a journal that grows: only what is new is read, and a journal that was replaced is read again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

from pytest_tfgrpo.core.errors import JournalError, describe
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.live_view.run_figures import RunFigures
from pytest_tfgrpo.runs.journal.journal import Event, damage, decode
from pytest_tfgrpo.runs.journal.journal_contents import header_of

CHECK = 40
"""Bytes before the place reached that must be as they were: they hold time and checksum of an event."""


class JournalFollower:
    """The figures of a run as far as its journal is read; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Follow the journal at `path`; nothing is read yet."""
        self.path = path
        self.generation = 0
        """How often reading began again, as the journal was another one."""
        self._begin()

    def _begin(self) -> None:
        self.run: RunFigures | None = None
        self.events = self.offset = self.size = 0
        self._inode: tuple[int, int] | None = None
        self._last = b""

    def read(self, seconds: float | None = None) -> bool:
        """Read what is new, for so long at most; return whether there is more.

        Raises JournalError where the journal cannot be read or relied on.
        """
        end = None if seconds is None else time.monotonic() + seconds
        try:
            with self.path.open("rb") as file:
                self._find_place(file)
                while line := file.readline():
                    if not line.endswith(b"\n"):
                        return False  # torn, or not yet whole
                    self._take(line)
                    if end is not None and time.monotonic() > end:
                        return self.offset < self.size
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.path}: {error}") from error
        return False

    def _find_place(self, file: BinaryIO) -> None:
        """Go to where reading stopped; to the start where the journal is not the one that was read."""
        found = os.fstat(file.fileno())
        inode = (found.st_dev, found.st_ino)
        file.seek(self.offset - len(self._last))
        if self._inode not in (None, inode) or file.read(len(self._last)) != self._last:
            self.generation += 1
            self._begin()
            file.seek(0)
        self._inode, self.size = inode, found.st_size

    def _take(self, line: bytes) -> None:
        number = self.events + 1
        try:
            event = decode(line[:-1])
        except ValueError as error:
            raise damage(self.path, number, str(error)) from None
        if event is None:
            raise damage(self.path, number, "it is damaged")
        if event.n != number:
            raise damage(self.path, number, f"its number n is {event.n!r:.40}: lines are missing or moved")
        try:
            self._count(event)
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise JournalError(
                f"{self.path}:{number}: event {event.event!r:.40} cannot be read: {describe(error)}"
            ) from error
        self.events, self.offset, self._last = number, self.offset + len(line), line[-CHECK:]

    def _count(self, event: Event) -> None:
        if self.run is None:
            self.run = RunFigures(header_of(self.path, event))
        else:
            self.run.take(event)

    def state(self, now: float) -> dict[str, Json]:
        """Return what a reader sees at the time `now`, seconds since 1970."""
        return {
            **(self.run.state(now) if self.run is not None else {}),
            "events": self.events,
            "generation": self.generation,
            "read": self.offset / self.size if self.size else 0.0,
        }
