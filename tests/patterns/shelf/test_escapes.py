"""Escapes: what a person reports, and what reverts of the history show."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.patterns.shelves import make_evidence, make_pattern, put
from support.repositories import Repository, git

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.shelf.escapes import note_escape, reported, reverted
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision
from pytest_tfgrpo.patterns.shelf.pattern import Pattern

ADA = ShelfDecision(by="ada", reason="totals were wrong")
OLD: Mapping[str | bytes, str | bytes | None] = {"a.py": "a = 1\n", "b.py": "b = 1\n"}
NEW: Mapping[str | bytes, str | bytes | None] = {"a.py": "a = 2\n", "new.py": "n = 1\n"}
UNDONE: Mapping[str | bytes, str | bytes | None] = {"a.py": "a = 1\n", "new.py": None}


def snapshot_of(repository: Repository, **files: str) -> Pattern:
    """Commit a change as a capture does, beside the branch, and return a pattern of it."""
    base = git(repository.folder, "rev-parse", "main")
    changed = {f"{name}.py": text for name, text in files.items()} or NEW
    commit = repository.commit(changed, branch="captured", parents=[base])  # type: ignore[arg-type]
    git(repository.folder, "update-ref", "refs/learning/x", commit)
    return make_pattern(evidence=make_evidence(commit=commit))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "r")
    found.commit(OLD)
    return found


@pytest.mark.parametrize(
    "message",
    ["Undo it", 'Revert "Take two"', "Back\n\nThis reverts commit {commit}."],
    ids=["effect", "subject", "id"],
)
def test_a_change_that_was_merged_and_reverted_has_escaped(repository: Repository, message: str) -> None:
    pattern = snapshot_of(repository)
    merged = repository.commit(NEW, "Take two")
    repository.commit({"b.py": "b = 3\n"}, "Else")
    files = UNDONE if message == "Undo it" else {**UNDONE, "a.py": "a = 0\n"}
    undone = repository.commit(files, message.format(commit=merged))
    (escape,) = reverted(repository.folder, [pattern])
    assert (escape.pattern, escape.commit) == (pattern, undone)
    assert escape.committed_at > 1_600_000_000


def test_a_change_that_stands_or_another_one_that_is_reverted_has_not(repository: Repository) -> None:
    pattern, other = snapshot_of(repository), snapshot_of(repository, b="b = 5\n")
    repository.commit(NEW, "Take two")
    assert reverted(repository.folder, [pattern, other]) == []
    repository.commit({"b.py": "b = 9\n"}, "Nine")
    repository.commit({"b.py": "b = 1\n"}, 'Revert "Nine"')
    assert reverted(repository.folder, [pattern, other]) == []


def test_a_change_that_was_reverted_twice_has_escaped_once(repository: Repository) -> None:
    pattern = snapshot_of(repository)
    for files in (NEW, UNDONE, NEW, UNDONE):
        repository.commit(files)
    assert len(reverted(repository.folder, [pattern])) == 1


def test_a_capture_that_undoes_another_is_no_revert_of_the_history(repository: Repository) -> None:
    pattern = snapshot_of(repository)
    assert pattern.evidence is not None
    undone = repository.commit(UNDONE, branch="undoing", parents=[pattern.evidence.commit])
    other = make_pattern(evidence=make_evidence(commit=undone))
    assert reverted(repository.folder, [other, pattern]) == []


def test_patterns_without_their_snapshot_are_passed_over(repository: Repository) -> None:
    others = [make_pattern(), make_pattern(evidence=None)]
    assert reverted(repository.folder, others) == []
    pattern = snapshot_of(repository)
    for files in (NEW, UNDONE):
        repository.commit(files)
    assert [one.pattern for one in reverted(repository.folder, [*others, pattern])] == [pattern]


def test_an_escape_is_noted_once(repository: Repository) -> None:
    shelf = put(repository.folder, make_pattern())
    commit = git(repository.folder, "rev-parse", "main")
    escape = reported(shelf, "read-rows-at-once", commit[:9])
    assert note_escape(shelf, escape, ADA)
    assert not note_escape(shelf, escape, replace(ADA, by="bo"))
    (entry,) = shelf.log.entries()
    assert (entry["event"], entry["commit"], entry["by"]) == ("escaped", commit, "ada")
    at = datetime.fromtimestamp(int(git(repository.folder, "log", "-1", "--format=%ct", commit)), UTC)
    assert entry["committed_at"] == f"{at:%Y-%m-%dT%H:%M:%SZ}"
    later = repository.commit({"b.py": "b = 2\n"})
    assert note_escape(shelf, reported(shelf, "read-rows-at-once", later), ADA)
    assert [entry["commit"] for entry in shelf.log.entries()] == [commit, later]
    with pytest.raises(SettingError, match="there is no commit 'none'"):
        reported(shelf, "read-rows-at-once", "none")


def test_a_commit_that_undoes_two_patterns_is_an_escape_of_each(repository: Repository) -> None:
    two = make_pattern(), make_pattern("sum-in-memory", id="p-" + "ba9876543210")
    shelf = put(repository.folder, *two)
    commit = git(repository.folder, "rev-parse", "main")
    assert all(note_escape(shelf, reported(shelf, one.name, commit), ADA) for one in two)
    assert [entry["id"] for entry in shelf.log.entries()] == [one.id for one in two]
