"""Maintenance of a recording: its content, its integrity, and which entries no run uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import RecordingError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import count, line, plural, table
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.recording.entries import (
    MISS,
    CallEntry,
    Participant,
    RecordingEntry,
    RecordingKey,
    RolloutEntry,
    actor_of,
    actor_stamp,
    entries_of,
    key_of,
    old_key_of,
    rollout_fingerprint,
)
from pytest_tfgrpo.recording.file import Recording, lines_of, locked, naming, write
from pytest_tfgrpo.recording.lines import (
    SPOKEN,
    Header,
    decode,
    decode_header,
    encode,
    encode_header,
    find_secrets,
)


def stat(path: Path) -> Iterator[str]:
    """Yield what is in a recording, for a reader; raises RecordingError."""
    numbered = lines_of(path)
    first = next(numbered, None)
    if first is None:
        raise RecordingError(f"there is no recording {path}, or it is empty; record one with --tfgrpo-record")
    with naming(path, first.number):
        header = decode_header(first.text)
    names = {actor.stamp: line(actor.name, 60) for actor in header.actors}
    entries: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    scenarios: dict[tuple[str, str], set[str]] = {}
    for number, text in numbered:
        with naming(path, number):
            entry = decode(text)
        if isinstance(entry, RolloutEntry):
            who = "rollouts", f"{names.get(entry.actor, 'unknown')} {entry.actor[:6]}"
        else:
            who = "model calls", line(entry.model, 60)
        entries[who] += 1
        sizes[who] += len(text) + 1
        scenarios.setdefault(who, set()).add(key_of(entry)[0])
    yield f"{path}: rollouts: {header.rollouts}, model calls: {header.calls}, redacted: {header.redacted}"
    yield f"  created {header.created}, updated {header.updated}, {path.stat().st_size} bytes"
    rows = [
        [kind, who, str(len(scenarios[kind, who])), str(entries[kind, who]), count(sizes[kind, who])]
        for kind, who in sorted(entries)
    ]
    if rows:
        yield from table(["kind", "of", "scenarios", "entries", "bytes"], rows, left=2)


def verify(path: Path) -> Iterator[str]:
    """Yield what is wrong with a recording, each with its line; nothing when it is sound.

    Raises RecordingError when the file cannot be read at all.
    """
    numbered = lines_of(path)
    first = next(numbered, None)
    if first is None:
        raise RecordingError(f"there is no recording {path}, or it is empty")
    with naming(path, first.number):
        header = decode_header(first.text)
    yield from (f"{path}:1: {problem}" for problem in _problems_of_header(header, first.text))
    stamps = {actor.stamp for actor in header.actors}
    seen: dict[RecordingKey, int] = {}
    latest: RecordingKey | None = None
    kinds: Counter[str] = Counter()
    for number, text in numbered:
        try:
            entry = decode(text)
        except ValueError as error:
            yield f"{path}:{number}: {error}"
            continue
        key = key_of(entry)
        for problem in _problems_of_entry(entry, text, stamps):
            yield f"{path}:{number}: {problem}"
        if key in seen:
            yield f"{path}:{number}: the same entry is on line {seen[key]}"
        elif latest is not None and key < latest:
            yield f"{path}:{number}: out of order: it belongs before the line above"
        seen.setdefault(key, number)
        latest = key
        kinds.update([key[1], *(["redacted"] if entry.redacted else [])])
    for name, stated in (("rollout", header.rollouts), ("call", header.calls), ("redacted", header.redacted)):
        if kinds[name] != stated:
            yield f"{path}:1: the header states {stated} entries of kind {name!r}, there are {kinds[name]}"


def _problems_of_header(header: Header, text: bytes) -> Iterator[str]:
    if encode_header(header) != text:
        yield "the header is not in canonical form"
    for actor in header.actors:
        if actor_stamp(Participant(name=actor.name, identity=actor.identity)) != actor.stamp:
            yield f"the stamp of actor {short(actor.name)} is not that of its name and identity"
    yield from (f"a secret: {found}" for found in find_secrets(to_wire(header)))


def _problems_of_entry(entry: RecordingEntry, text: bytes, stamps: Collection[str]) -> Iterator[str]:
    if encode(entry) != text:
        yield "the line is not in canonical form"
    if isinstance(entry, RolloutEntry):
        asked = entry.actor, entry.asked, entry.prompt, entry.temperature, entry.seed
        if rollout_fingerprint(*asked) != entry.fingerprint:
            yield "the fingerprint is not that of actor, scenario, prompt, temperature and seed"
        if entry.actor not in stamps:
            yield f"the header names no actor {short(entry.actor)}"
    spoken = {name: value for name, value in to_wire(entry).items() if name in SPOKEN}
    yield from (f"a secret: {found}" for found in find_secrets(spoken))


class RunUse(NamedTuple):
    """What one run uses of a recording."""

    run_id: str
    actor: str
    """Its name."""
    keys: frozenset[RecordingKey]


def use_of(run: Run, loose: Iterable[Rollout]) -> RunUse:
    """Return what `run` uses, with rollouts that belong to no group of it.

    Raises RecordingError for a run that does not show what others need.
    """
    why = ""
    rollouts = [*loose]
    if run.status != "complete":
        why = f"is {run.status}"
    elif run.partial_selection:
        why = "ran on part of the suite"
    elif any(rollout.failure is not None and rollout.failure.code == MISS for rollout in rollouts):
        why = "is a replay with missing answers"
    elif "actor" not in run.identities:
        why = "was made by a version that did not record"
    if why:
        raise RecordingError(
            f"run {run.run_id} {why}, so it does not show what can be removed; name another with --run"
        )
    keys = frozenset(key for entry in entries_of(run, rollouts) for key in (key_of(entry), old_key_of(entry)))
    return RunUse(run.run_id, actor_of(run).name, keys)


def prune(path: Path, uses: Sequence[RunUse], *, others: bool, dry: bool) -> Iterator[str]:
    """Remove the entries that no run among `uses` has, unless `dry`; yields what is removed.

    Raises RecordingError, also if that would remove all entries of an actor that no run uses, unless
    `others`.
    """
    used = frozenset[RecordingKey]().union(*(use.keys for use in uses))
    with locked(path):
        recording = Recording.open(path)
        if recording.header is None:
            raise RecordingError(f"there is no recording {path}, or it is empty")
        strangers = {actor.name for actor in recording.header.actors} - {use.actor for use in uses}
        if strangers and not others:
            raise RecordingError(
                f"{path} also holds answers of {', '.join(sorted(strangers))}; "
                "name a run of each with --run, or remove them with --others"
            )
        for use in uses:
            if use.keys.isdisjoint(recording.lines):
                raise RecordingError(f"run {use.run_id} uses nothing from {path}; was it recorded elsewhere?")
        kept = {key: text for key, (_, text) in recording.lines.items() if key in used}
        gone = Counter((key[0] or "-", key[1]) for key in recording.lines if key not in used)
        if gone and not dry:
            write(path, _header_of(recording, kept), kept)
    verb = "would remove" if dry else "removed"
    for (scenario, kind), n in sorted(gone.items()):
        yield f"{verb} {plural(n, 'rollout' if kind == 'rollout' else 'model call')} of {line(scenario)}"
    yield f"{path}: {verb} {gone.total()} of {len(recording.lines)} entries"


def _header_of(recording: Recording, kept: Collection[RecordingKey]) -> Header:
    """Return the header for the entries that are left: without those who answer none of them."""
    assert recording.header is not None, "pruned from a recording with a header"
    actors, models = set(), set()
    for key in kept:
        entry = recording.entry(key)
        if isinstance(entry, RolloutEntry):
            actors.add(entry.actor)
        elif isinstance(entry, CallEntry):
            models.add(entry.model)
    header = recording.header
    return replace(
        header,
        updated=utc_now()[:10],
        actors=tuple(actor for actor in header.actors if actor.stamp in actors),
        models=tuple(model for model in header.models if model.name in models),
    )
