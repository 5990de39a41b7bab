"""Writing: merge what a run has to record into the file; known entries do not change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.core.settings import shaping
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.recording.entries import (
    Participant,
    RecordingEntry,
    RecordingKey,
    RolloutEntry,
    actor_of,
    actor_stamp,
    entries_of,
    key_of,
    models_of,
    old_key_of,
)
from pytest_tfgrpo.recording.file import MAX_LINE, Recording, locked, write
from pytest_tfgrpo.recording.lines import Header, RecordedActor, encode, find_secrets, without_secrets

Named = TypeVar("Named", bound=RecordedActor | Participant)
_Lines: TypeAlias = dict[RecordingKey, tuple[bytes, RecordingEntry]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What a run left in a recording."""

    rollouts: int
    calls: int
    new: int
    """Entries that the file did not have like this."""
    redacted: int
    unfit: int
    """Entries that JSON cannot hold, or that are too large."""


def describe(name: str, written: Written) -> list[str]:
    """Return the lines about what was written to the file `name`."""
    lines = [
        f"recorded {plural(written.rollouts, 'rollout')} and {plural(written.calls, 'model call')} "
        f"in {name} ({written.new} new)"
    ]
    if written.redacted:
        lines.append(
            f"  {written.redacted} of them contained a secret, now redacted; replays use the redacted text"
        )
    if written.unfit:
        lines.append(f"  {written.unfit} could not be recorded: too large, or not JSON")
    return lines


def check_recordable(path: Path, identities: Mapping[str, Json]) -> None:
    """Raise RecordingError when a run could not be recorded in `path`, before anything is paid for."""
    if path.is_dir():
        raise RecordingError(f"record: {path} is a folder; name a file, for example recording.jsonl")
    Recording.open(path)
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise RecordingError(f"record: no file can be written in {folder}")
    for role, row in identities.items():
        for found in find_secrets(to_wire(row)):
            raise RecordingError(
                f"record: the {role} cannot be recorded: its name or identity contains what looks like a "
                f"secret ({found}); pass secrets in environment variables"
            )


def record(path: Path, run: Run, loose: Iterable[Rollout] = ()) -> Written:
    """Merge what `run` has to record into the file `path`; raises RecordingError.

    Of two answers to the same question the newer one stays, but an error never replaces an answer.
    """
    own, redacted, unfit = _lines(run, loose)
    with locked(path):
        before = Recording.open(path)
        merged = {key: line.text for key, line in before.lines.items()}
        new = 0
        for key, (line, entry) in own.items():
            old = old_key_of(entry)
            place = old if old in merged and key not in merged else key
            if merged.get(place) != line and _is_better(entry, before.entry(place)):
                merged.pop(place, None)
                merged[key] = line
                new += 1
        header = _header(before.header, run, changed=new > 0)
        if new or header != before.header:
            write(path, header, merged)
    rollouts = sum(key[1] == "rollout" for key in own)
    return Written(rollouts=rollouts, calls=len(own) - rollouts, new=new, redacted=redacted, unfit=unfit)


def _lines(run: Run, loose: Iterable[Rollout]) -> tuple[_Lines, int, int]:
    """Return the lines of a run with their entries, how many are redacted, how many unfit."""
    lines: _Lines = {}
    redacted = unfit = 0
    for entry in entries_of(run, loose):
        try:
            clean = without_secrets(entry)
            line = encode(clean)
        except (TypeError, ValueError, RecursionError):
            unfit += 1
            continue
        if len(line) >= MAX_LINE:
            unfit += 1
            continue
        redacted += clean.redacted > 0
        lines[key_of(clean)] = (line, clean)
    return lines, redacted, unfit


def _is_better(entry: RecordingEntry, before: RecordingEntry | None) -> bool:
    """Return whether an entry may replace what is known: no error an answer, and none the same with files."""
    if before is None or not isinstance(entry, RolloutEntry) or not isinstance(before, RolloutEntry):
        return before is None or entry.settled or not before.settled
    same = (entry.status, entry.answer, entry.frames) == (before.status, before.answer, before.frames)
    if same and before.files_kept and not entry.files_kept:
        return False
    return entry.settled or not before.settled


def _header(before: Header | None, run: Run, *, changed: bool) -> Header:
    today = utc_now()[:10]
    actor = actor_of(run)
    row = RecordedActor(
        name=actor.name,
        identity=actor.identity,
        stamp=actor_stamp(actor),
        settings={name: run.settings.get(name) for name in shaping("prompts", "answers")},
        stamps=dict(run.stamps),
    )
    models = models_of(run)
    if before is None:
        return Header(created=today, updated=today, actors=(row,), models=_latest((), models))
    known = {actor.stamp for actor in before.actors}
    actors = _latest(before.actors, [row]) if changed or row.stamp not in known else before.actors
    found = replace(before, actors=actors, models=_latest(before.models, models))
    return found if found == before and not changed else replace(found, updated=today)


def _latest(before: Sequence[Named], own: Sequence[Named]) -> tuple[Named, ...]:
    """Return the rows by name, of one name the latest last, each identity once."""
    identities = [row.identity for row in own]
    kept = [row for row in before if row.identity not in identities or row.name not in {o.name for o in own}]
    return tuple(sorted([*kept, *own], key=lambda row: row.name))
