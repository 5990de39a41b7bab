"""Reverts: which changes of a history undo which, by what they say and by what they do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_tfgrpo.harvest.fixes import ChangedFile, HistoryChange

_BY_ID = re.compile(r"\b[Tt]his reverts (?:commit|changeset) ([0-9a-f]{7,64})\b")
_BY_SUBJECT = re.compile(r'(?:Revert|revert:?)\s+"(.+)"(?:\s+\(#\d+\))?')
_NUMBER = re.compile(r"\s+\(#\d+\)$")
SUBJECT = 200
"""Characters of a subject that are compared."""


class Reverts:
    """What later changes revert; it sees the changes of a range from the newest to the oldest."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        """By the first 7 characters of what is reverted: its id, as written, and who reverts it."""
        self._subjects: dict[str, list[str]] = {}
        self._undone: dict[int, str] = {}
        """By the hash of a difference: who made the opposite one."""

    def reverted_by(self, change: HistoryChange) -> str | None:
        """Return the later change that reverts this one, if any, and note what this one reverts."""
        subject = subject_of(change.message)
        later = self._reverter(change, subject)
        if later is None:
            self._note(change, subject)
        return later

    def _reverter(self, change: HistoryChange, subject: str) -> str | None:
        if self._ids:
            written, _, later = self._ids.get(change.commit[:7], "").partition(" ")
            if later and change.commit.startswith(written):
                return later
        if self._subjects and (same := self._subjects.get(_plain(subject))):
            return same.pop()
        if change.files:
            return self._undone.pop(_effect(change.files), None)
        return None

    def _note(self, change: HistoryChange, subject: str) -> None:
        if "evert" in change.message:
            if found := _BY_ID.search(change.message):
                self._ids[found[1][:7]] = f"{found[1]} {change.commit}"
            elif match := _BY_SUBJECT.fullmatch(subject):
                self._subjects.setdefault(_plain(match[1]), []).append(change.commit)
        if change.files:
            self._undone[_effect(change.files, opposite=True)] = change.commit


def reverts_another(change: HistoryChange) -> bool:
    """Return whether a change says that it reverts another."""
    if "evert" not in change.message:
        return False
    return bool(_BY_ID.search(change.message) or _BY_SUBJECT.fullmatch(subject_of(change.message)))


def subject_of(message: str) -> str:
    """Return the first line of a commit message that says something; "" if none does."""
    return message.lstrip().partition("\n")[0].rstrip()


def _plain(subject: str) -> str:
    return _NUMBER.sub("", subject[:SUBJECT])


def _effect(files: Sequence[ChangedFile], *, opposite: bool = False) -> int:
    """Return the hash of what a change does to its files, or of what undoes it."""
    if opposite:
        return hash(tuple([(f.path, f.new_id, f.old_id) for f in files]))
    return hash(tuple([(f.path, f.old_id, f.new_id) for f in files]))
