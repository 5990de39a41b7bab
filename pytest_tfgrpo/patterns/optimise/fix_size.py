"""The size of a fix: lines that it adds to the source and removes from it, counted alike for all fixes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.harvest.history.changed_lines import differing_lines
from pytest_tfgrpo.harvest.suite.provenance import read_provenance
from pytest_tfgrpo.harvest.suite.suite_files import SuitePaths
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, read_archive
from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected


@dataclass(frozen=True, kw_only=True, slots=True)
class ProvenFix:
    """The fix of a proven job, as the files of its scenario have it."""

    base: Mapping[str, bytes]
    """Files before it."""
    fixed: Mapping[str, bytes | None]
    """What it made of them, those that every check takes from it left out; None: it removed the file."""
    protected: Collection[str]
    """What every check takes from it, such as its tests."""
    globs: Sequence[str]
    """Further paths that are so."""

    @property
    def lines(self) -> int:
        """Changed lines of source."""
        return _lines(self.base, self.fixed)

    def source_of(self, files: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """Return what an agent changed that its check took from it."""
        return tuple(
            file
            for file in files
            if file.name not in self.protected and not is_protected(file.name, self.globs)
        )

    def lines_of(self, files: Sequence[FileChange]) -> int:
        """Return the changed lines of an agent's source."""
        return _lines(self.base, {file.name: content_of(file) for file in self.source_of(files)})


def read_fix(folder: Path, scenario: str) -> ProvenFix:
    """Return the fix of a job's folder; raises StoreError, ArchiveProblem, OSError."""
    paths = SuitePaths(suite=folder, id=scenario)
    provenance = read_provenance(paths.provenance)
    fixed: dict[str, bytes | None] = dict.fromkeys(provenance.removed)
    return ProvenFix(
        base=_contents(paths.base),
        fixed=fixed | _contents(paths.reference),
        protected=frozenset(provenance.protected),
        globs=provenance.recipe.protected,
    )


def content_of(file: FileChange) -> bytes | None:
    """Return what a file holds, of a link where it leads; None: it is gone."""
    if file.link is not None:
        return file.link.encode()
    if file.text is not None:
        return file.text.encode()
    return None if file.hex is None else bytes.fromhex(file.hex)


def _contents(path: Path) -> dict[str, bytes]:
    return {entry.name: _content(entry) for entry in read_archive(path)}


def _content(entry: ArchiveEntry) -> bytes:
    return entry.data if entry.link is None else entry.link.encode()


def _lines(base: Mapping[str, bytes], fixed: Mapping[str, bytes | None]) -> int:
    return sum(differing_lines(base.get(name, b""), after or b"") for name, after in fixed.items())
