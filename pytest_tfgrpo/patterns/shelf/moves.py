"""Moves of patterns from folder to folder, each decided by somebody for a reason.

The log has a decision before its file is moved. Where a process is killed between the two, log and folder
differ: `unfinished` finds that, and `finish` moves the file to where the log has it. A new candidate is
written first, and logged then.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.shelf.duplicates import with_relations
from pytest_tfgrpo.patterns.shelf.git_files import git_add, git_move, is_tracked
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus, TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamped, write_pattern
from pytest_tfgrpo.patterns.shelf.shelf import Shelf, ShelfFile

ShelfMove: TypeAlias = Literal["promoted", "rejected", "deprecated", "restored"]
MOVES: Mapping[ShelfMove, tuple[PatternStatus, PatternStatus]] = {
    "promoted": (PatternStatus.CANDIDATE, PatternStatus.ACTIVE),
    "rejected": (PatternStatus.CANDIDATE, PatternStatus.DEPRECATED),
    "deprecated": (PatternStatus.ACTIVE, PatternStatus.DEPRECATED),
    "restored": (PatternStatus.DEPRECATED, PatternStatus.ACTIVE),
}
"""All moves that there are: from where, to where."""
WRITTEN, COMMENT, STAMPED, ESCAPED, TRIED = "written", "comment", "stamped", "escaped", "tried"
"""Further events of the log, which move nothing."""
_SCREENED = (WRITTEN, STAMPED, "promoted", "restored")
PROGRAM = "tfgrpo"
"""Who writes candidates."""
NAME_MAX = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfDecision:
    """Who decides, and why."""

    by: str
    reason: str

    def require(self) -> None:
        """Raise PatternError unless it names somebody and says something."""
        for what, text in (("who decides", self.by), ("the reason", self.reason)):
            if not text.strip() or not text.isprintable() or len(text) > 2000:
                raise PatternError(f"name {what} in 1 to 2,000 printable characters, not {text[:40]!r}")


def write_candidate(shelf: Shelf, pattern: Pattern) -> Pattern:
    """Write a new pattern to the candidates and log it; returns it as written, or what its job has already.

    Its name gets a number where it is taken, and its id depends on its name and job. It names the patterns
    that it is much like.
    """
    job = pattern.evidence.job if pattern.evidence else ""
    with locked(shelf):
        there = [one for one in shelf.patterns() if job and one.evidence and one.evidence.job == job]
        if there:
            return there[0]
        name = _free_name(shelf, pattern.name)
        named = replace(pattern, name=name, id=f"p-{stamp([job, name])[:12]}", status=PatternStatus.CANDIDATE)
        related = stamped(with_relations(named, shelf.patterns()))
        text = write_pattern(related)
        path = shelf.place(PatternStatus.CANDIDATE, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        note(shelf, WRITTEN, related, ShelfDecision(by=PROGRAM, reason=f"job {job}" if job else "by hand"))
    return related


def move(
    shelf: Shelf, name: str, event: ShelfMove, decision: ShelfDecision, *, judged: Pattern | None = None
) -> Pattern:
    """Log a move of a pattern, then make it; returns it as it lies. Raises PatternError if it may not be.

    Whether it may be promoted is for the rules of promotion, which `judged` what must be there still.
    """
    decision.require()
    source, target = MOVES[event]
    with locked(shelf):
        file = shelf.find(name)
        if file.pattern is None:
            raise PatternError(file.error)
        if file.status is not source:
            raise PatternError(
                f"{name!r} cannot be {event}: it lies in {file.status.value}, not in {source.value}"
            )
        if judged not in (None, file.pattern):
            raise PatternError(f"{name!r} was changed while it was checked; look at it, then decide again")
        pattern = replace(file.pattern, status=target)
        write_pattern(pattern)  # before anything is decided, it is known to be writable
        note(shelf, event, pattern, decision, move=(source, target))
        _carry(shelf, file.path, pattern)
    return pattern


def comment(shelf: Shelf, name: str, decision: ShelfDecision) -> None:
    """Log what somebody, a person or an agent, says about a pattern."""
    decision.require()
    with locked(shelf):
        note(shelf, COMMENT, shelf.pattern(name), decision)


def restamp(shelf: Shelf, name: str, decision: ShelfDecision) -> Pattern:
    """Stamp a pattern that was edited, once its screens are passed, and log it."""
    decision.require()
    with locked(shelf):
        file = shelf.find(name)
        if file.pattern is None:
            raise PatternError(file.error)
        pattern = stamped(replace(file.pattern, status=file.status))
        note(shelf, STAMPED, pattern, decision)
        _carry(shelf, file.path, pattern)
    return pattern


def record_trial(shelf: Shelf, name: str, trial: TrialResult) -> Path:
    """Write what a trial found into the file of a pattern, and log it; returns the file."""
    with locked(shelf):
        file = shelf.find(name)
        if file.pattern is None:
            raise PatternError(file.error)
        pattern = replace(file.pattern, status=file.status, trial=trial)
        tried = replace(pattern, stamp=trial.pattern_stamp)
        note(shelf, TRIED, tried, ShelfDecision(by=PROGRAM, reason=trial.outcome), delivery=trial.delivery)
        _carry(shelf, file.path, pattern)
    return file.path


def trials_of(shelf: Shelf, pattern: Pattern) -> list[str]:
    """Return what each trial of a pattern as it is now came to, the oldest first."""
    same = {"event": TRIED, "id": pattern.id, "stamp": pattern.stamp}
    return [entry["reason"] for entry in shelf.entries() if same.items() <= entry.items()]


def note(
    shelf: Shelf,
    event: str,
    pattern: Pattern,
    decision: ShelfDecision,
    *,
    move: tuple[PatternStatus, PatternStatus] | None = None,
    **more: Json,
) -> None:
    """Append an entry about a pattern to the log."""
    moved = {"from": move[0].value, "to": move[1].value} if move else {}
    shelf.log.append(
        {
            "event": event,
            "id": pattern.id,
            "name": pattern.name,
            "by": decision.by,
            "reason": decision.reason,
            "stamp": pattern.stamp,
            **moved,
            **more,
        }
    )


def status_in_log(entries: list[dict[str, Json]]) -> dict[str, PatternStatus]:
    """Return where the log has each pattern, by id."""
    found: dict[str, PatternStatus] = {}
    for entry in entries:
        to = PatternStatus.CANDIDATE.value if entry.get("event") == WRITTEN else entry.get("to")
        if to in set(PatternStatus) and isinstance(entry.get("id"), str):
            found[entry["id"]] = PatternStatus(to)
    return found


def stamps_in_log(entries: list[dict[str, Json]]) -> dict[str, str]:
    """Return the stamp with which each pattern was last written, screened or given to agents, by id."""
    return {entry["id"]: entry["stamp"] for entry in entries if entry["event"] in _SCREENED}


def unfinished(shelf: Shelf) -> list[tuple[ShelfFile, PatternStatus]]:
    """Return the files that lie elsewhere than the log has them, or say so, with where it has them."""
    known = status_in_log(shelf.entries())
    return [
        (file, known[file.pattern.id])
        for file in shelf.files()
        if file.pattern is not None
        and file.pattern.id in known
        and (file.status, file.pattern.status) != (known[file.pattern.id],) * 2
    ]


def finish(shelf: Shelf) -> list[str]:
    """Move what `unfinished` returns to where the log has it; returns the names."""
    with locked(shelf):
        found = unfinished(shelf)
        for file, status in found:
            assert file.pattern is not None
            _carry(shelf, file.path, replace(file.pattern, status=status))
    return [file.name for file, _ in found]


@contextmanager
def locked(shelf: Shelf) -> Iterator[None]:
    """Keep other processes from deciding meanwhile."""
    shelf.folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(shelf.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _carry(shelf: Shelf, source: Path, pattern: Pattern) -> None:
    """Bring a file to its folder, with git where git knows it, and write its status."""
    target = shelf.place(pattern.status, pattern.name)
    tracked = is_tracked(shelf.root, source)
    if source != target:
        if target.exists() or target.is_symlink():
            raise PatternError(f"{target} is there already and is not overwritten; take it away or rename it")
        target.parent.mkdir(parents=True, exist_ok=True)
        if tracked:
            git_move(shelf.root, source, target)
        else:
            source.rename(target)
    write_text(target, write_pattern(pattern))
    if tracked:
        git_add(shelf.root, target)


def _free_name(shelf: Shelf, name: str) -> str:
    taken = {file.name for file in shelf.files()}
    if name not in taken:
        return name
    n = 2
    while (numbered := f"{name[: NAME_MAX - len(str(n)) - 1].rstrip('-')}-{n}") in taken:
        n += 1
    return numbered
