"""The shelf: the files of patterns in a repository, as they lie."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pytest_tfgrpo.core.errors import PatternError, StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.chained_log import ChainedLog
from pytest_tfgrpo.patterns.shelf.pattern import FOLDER, Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import read_pattern

SUFFIX = ".md"
LOG = "log.jsonl"
MOST = 10_000
"""Files that a folder may hold."""
_TEXTS, _TIMES = ("event", "id", "name", "by", "reason", "stamp"), ("time", "committed_at")
"""What each line of the log holds, and of what times it may hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfFile:
    """A file that lies on the shelf."""

    path: Path
    status: PatternStatus
    """By its folder."""
    pattern: Pattern | None = None
    """As the file has it; None where it cannot be read."""
    error: str = ""

    @property
    def name(self) -> str:
        """The name that it is called by."""
        return self.path.name.removesuffix(SUFFIX)


class Shelf:
    """The folder of patterns of a repository."""

    def __init__(self, root: Path) -> None:
        """`root` is that of the repository; raises PatternError where its shelf leads out of it."""
        self.root = root.resolve()
        self.folder = self.root / FOLDER
        self.log = ChainedLog(self.folder / LOG)
        for place in (self.folder.parent, self.folder, self.log.path, *map(self.place, PatternStatus)):
            if place.is_symlink():
                raise PatternError(
                    f"{place} is a link; patterns lie in the repository itself: make it a folder"
                )

    def place(self, status: PatternStatus, name: str = "") -> Path:
        """Return the folder of a status, or the path of a pattern there."""
        folder = self.folder / status.value
        return folder / f"{name}{SUFFIX}" if name else folder

    def files(self, *statuses: PatternStatus) -> list[ShelfFile]:
        """Return the files by folder and name, of all folders or these."""
        return [file for status in statuses or PatternStatus for file in self._files(status)]

    def patterns(self, *statuses: PatternStatus) -> list[Pattern]:
        """Return the patterns that can be read."""
        return [file.pattern for file in self.files(*statuses) if file.pattern is not None]

    def _files(self, status: PatternStatus) -> Iterator[ShelfFile]:
        folder = self.place(status)
        if not folder.is_dir():
            return
        found = sorted(
            (at for at in folder.iterdir() if at.name.endswith(SUFFIX)), key=lambda path: path.stem
        )
        if len(found) > MOST:
            raise PatternError(f"{folder} holds more than {MOST:,} patterns; take some away")
        yield from (_read(path, status) for path in found)

    def entries(self) -> list[dict[str, Json]]:
        """Return the entries of the log, the oldest first; raises StoreError on one of another form."""
        found = self.log.entries()
        for number, entry in enumerate(found, 1):
            if not all(isinstance(entry.get(key), str) for key in _TEXTS) or not _has_times(entry):
                raise StoreError(
                    f"{self.log.path}, line {number}: it is no entry of a shelf, as "
                    "'tfgrpo patterns' writes it; put the log back from git or a copy"
                )
        return found

    def find(self, name: str) -> ShelfFile:
        """Return the one file of this name; raises PatternError where there is none, or several."""
        found = [file for file in self.files() if file.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(file.path.relative_to(self.root)) for file in found)
            raise PatternError(f"there are several patterns {name!r}: {places}; take all but one away")
        hint = nearest(name, [file.name for file in self.files()]) or "; 'tfgrpo patterns list' has all"
        raise PatternError(f"there is no pattern {name!r} in {self.folder}{hint}")

    def pattern(self, name: str) -> Pattern:
        """Return the pattern of this name; raises PatternError where there is none that can be read."""
        file = self.find(name)
        if file.pattern is None:
            raise PatternError(file.error)
        return file.pattern


def _read(path: Path, status: PatternStatus) -> ShelfFile:
    if path.is_symlink() or not path.is_file():
        return ShelfFile(path=path, status=status, error=f"{path}:1: it is no regular file; take it out")
    try:
        pattern = read_pattern(path)
    except PatternError as error:
        return ShelfFile(path=path, status=status, error=str(error))
    if pattern.name != path.name.removesuffix(SUFFIX):
        why = f"{path}: name: it is {pattern.name!r}; write the name of the file, or rename the file"
        return ShelfFile(path=path, status=status, error=why)
    return ShelfFile(path=path, status=status, pattern=pattern)


def _has_times(entry: dict[str, Json]) -> bool:
    try:
        times = [datetime.fromisoformat(entry[key]) for key in _TIMES if key in entry]
    except (TypeError, ValueError):
        return False
    return "time" in entry and all(time.tzinfo is not None for time in times)
