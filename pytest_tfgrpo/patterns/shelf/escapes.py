"""Escapes: regressions that the change of a pattern let through, as people or a revert tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.harvest.fixes import HistoryChange
from pytest_tfgrpo.harvest.history.changes import CommitRange, changes
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.reverts import Reverts
from pytest_tfgrpo.patterns.shelf.moves import ESCAPED, ShelfDecision, locked, note
from pytest_tfgrpo.patterns.shelf.pattern import Pattern
from pytest_tfgrpo.patterns.shelf.shelf import Shelf

COMMITS = 5_000
"""Changes of the history that are looked at for reverts, the newest."""

FileEffects: TypeAlias = frozenset[tuple[str, str, str]]


class EscapedPattern(NamedTuple):
    """A pattern whose change was undone, or broke something."""

    pattern: Pattern
    commit: str
    """What undoes it, or shows what it broke."""
    committed_at: int
    """Seconds since 1970, UTC."""


def reported(shelf: Shelf, name: str, commit: str) -> EscapedPattern:
    """Return an escape that a person reports; raises SettingError where there is no such commit."""
    pattern = shelf.pattern(name)
    with GitObjects(shelf.root) as objects:
        change = _change(objects, objects.resolve(commit))
    return EscapedPattern(pattern, change.commit, change.committed_at)


def reverted(root: Path, patterns: Iterable[Pattern]) -> list[EscapedPattern]:
    """Return the patterns whose change a later commit of HEAD reverts; one without snapshot is passed over.

    Raises SettingError without a repository or a commit, and SnapshotError where its history breaks off.
    """
    with GitObjects(root) as objects:
        snapshots = list(_snapshots(objects, patterns))
        history = list(changes(objects, CommitRange(first=None, last=objects.resolve("HEAD")), limit=COMMITS))
    return list(_reverted(snapshots, history))


def note_escape(shelf: Shelf, escape: EscapedPattern, decision: ShelfDecision) -> bool:
    """Log an escape; False where the log has it already."""
    decision.require()
    with locked(shelf):
        known = {(entry.get("id"), entry.get("commit")) for entry in shelf.entries()}
        if (escape.pattern.id, escape.commit) in known:
            return False
        at = datetime.fromtimestamp(escape.committed_at, UTC).isoformat().replace("+00:00", "Z")
        note(shelf, ESCAPED, escape.pattern, decision, commit=escape.commit, committed_at=at)
    return True


def _snapshots(objects: GitObjects, patterns: Iterable[Pattern]) -> Iterator[tuple[Pattern, HistoryChange]]:
    for pattern in patterns:
        if pattern.evidence is not None:
            try:
                yield pattern, _change(objects, objects.resolve(pattern.evidence.commit))
            except (SettingError, SnapshotError):  # captured in another clone
                continue


def _reverted(
    snapshots: Sequence[tuple[Pattern, HistoryChange]], history: Sequence[HistoryChange]
) -> Iterator[EscapedPattern]:
    by_effect = {_effects(change): pattern for pattern, change in snapshots if change.files}
    at = {change.commit: change.committed_at for change in history}
    reverts, found = Reverts(), set[str]()
    for change in (*history, *(snapshot for _, snapshot in snapshots)):
        later = reverts.reverted_by(change)
        pattern = by_effect.get(_effects(change))
        if later in at and pattern is not None and pattern.id not in found:
            found.add(pattern.id)
            yield EscapedPattern(pattern, later, at[later])


def _effects(change: HistoryChange) -> FileEffects:
    return frozenset((file.path, file.old_id, file.new_id) for file in change.files)


def _change(objects: GitObjects, commit: str) -> HistoryChange:
    return next(changes(objects, CommitRange(first=None, last=commit), limit=1))
