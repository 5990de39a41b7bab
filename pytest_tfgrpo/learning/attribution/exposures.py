"""Exposures: which lessons each training group had or lacked, and its score; from a run or its file.

``exposures.jsonl`` in the folder of a run follows from the journal: one line about the run, one per group.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import fsum
from pathlib import Path
from typing import Any, BinaryIO

from pytest_tfgrpo.core.file_writing import write_pieces
from pytest_tfgrpo.core.files import EXPOSURES, JOURNAL, open_plain
from pytest_tfgrpo.core.lessons import Experience, Exposure, Library
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, PhaseResult, Run
from pytest_tfgrpo.core.settings.agents import ACTOR, JUDGE_WEIGHT
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.strict import finite, load_json
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire

NOT_OURS = (OSError, ValueError, KeyError, TypeError, RecursionError)
"""Raised by a file of exposures that is missing, or that we would not have written."""
UNREAD = "exposures_unread"
"""Key of the complaints about earlier runs, among what is found before a run."""
EARLIER = "exposures"
"""Key of what earlier runs showed of the starting library, among what is found before a run."""

SCHEMA = "tfgrpo.exposures/1"
KEY_DIGITS = 16
MIN_PROPENSITY = 0.05
"""Below it a row is not ours: the setting `lesson_dropout` ends at 0.9."""
_EVIDENCE = re.compile(r"\b\d+ of \d+\b")
MAX_BYTES = 256 << 20
"""A larger file of exposures is not read, except for its end."""
BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class RunExposures:
    """The exposures of one run."""

    run_id: str
    measure: str
    """Stamp of who acted and who scored: only equal ones are pooled."""
    actor: str
    """Name of the actor, for a reader."""
    epochs: tuple[int, ...]
    """Training epochs that it made."""
    rows: tuple[Exposure, ...]


def content_key(experience: Experience) -> str:
    """Return what identifies a lesson over runs: its domain, polarity, text and the stamp of its pack.

    Figures of evidence in the text, such as ``37 of 39``, grow with every revision and count as equal.
    """
    text = _EVIDENCE.sub("# of #", experience.summary32)
    said = [experience.domain, experience.polarity, text, experience.stamp_signature]
    return stamp(said)[:KEY_DIGITS]


def series_of(seed: int, start: Library) -> str:
    """Return what a run draws by: its seed and its starting library, so that equal runs draw alike."""
    return stamp([seed, start.hash])[:KEY_DIGITS]


def measure_of(
    stamps: Mapping[str, str], identities: Mapping[str, Any], settings: Mapping[str, object]
) -> str:
    """Return the stamp of the actor, the judge and the judge's weight in the rewards."""
    return stamp([stamps.get("actor"), identities.get("judge"), JUDGE_WEIGHT.recorded(settings)])


def known_lessons(start: Library, results: Iterable[PhaseResult]) -> dict[str, Experience]:
    """Return every lesson that a prompt of the run can have carried, by id."""
    lessons = {e.id: e for e in start.experiences}
    for result in results:
        if result.revision is not None:
            lessons |= {e.id: e for e in result.revision.library.experiences}
    return lessons


def exposures_of(
    groups: Iterable[Group],
    *,
    run_id: str,
    series: str,
    propensity: float,
    stamps: Mapping[str, str],
    keys: Mapping[str, str],
    unknown: frozenset[str] = frozenset(),
) -> list[Exposure]:
    """Return what the training groups of one epoch show; those without a lesson to show are left out.

    A lesson that was surely in the prompt shows nothing. `stamps` maps scenario ids to stamps, `keys` lesson
    ids to content keys. The reward of a scenario in
    `unknown` counts as unknown: a majority vote is no ground truth.
    """
    if propensity >= 1:
        return []
    rows: list[Exposure] = []
    known: dict[Hashable, Any] = {}
    """Values of rows, of which there are many: equal ones are held once."""
    for group in groups:
        first = group.rollouts[0]
        chanced = first.experiences if first.tossed is None else first.tossed
        if not chanced and not first.left_out:
            continue
        rewards = [score.reward for score in group.scores if score.reward is not None]
        told = bool(rewards) and group.scenario_id not in unknown
        reward = fsum(rewards) / len(rewards) if told else None
        included = tuple(keys[id_] for id_ in chanced if id_ in keys)
        left_out = tuple(keys[id_] for id_ in first.left_out if id_ in keys)
        rows.append(
            Exposure(
                run_id=run_id,
                epoch=group.epoch,
                scenario=stamps[group.scenario_id],
                domain=known.setdefault(group.domain, group.domain),
                series=series,
                propensity=propensity,
                reward=known.setdefault(reward, reward),
                errors=sum(r.status == "error" for r in group.rollouts),
                included=known.setdefault(included, included),
                left_out=known.setdefault(left_out, left_out),
            )
        )
    return rows


def record_of(run: Run) -> RunExposures:
    """Return the exposures of a run, complete or not."""
    keys = {id_: content_key(e) for id_, e in known_lessons(run.library_start, run.phases).items()}
    trained = [result for result in run.phases if result.phase.mode == "train"]
    rows = [
        row
        for result in trained
        for row in exposures_of(
            result.groups,
            run_id=run.run_id,
            series=series_of(SEED.of(run.settings), run.library_start),
            propensity=1.0 - result.phase.lesson_dropout,
            stamps={s.id: s.stamp for s in run.scenarios},
            keys=keys,
            unknown=frozenset(s.id for s in run.scenarios if s.truth == "majority"),
        )
    ]
    return RunExposures(
        run_id=run.run_id,
        measure=measure_of(run.stamps, run.identities, run.settings),
        actor=str(run.identities.get("actor", {}).get("name") or ACTOR.of(run.settings)),
        epochs=tuple(result.phase.epoch for result in trained if result.status == "complete"),
        rows=tuple(rows),
    )


def write(folder: Path, record: RunExposures) -> None:
    """Write the file of exposures of the run in `folder`, atomically; raises JournalError.

    It names the length of the journal that it follows from.
    """
    head = to_wire(replace(record, rows=())) | {
        "schema": SCHEMA,
        "rows": len(record.rows),
        "journal_bytes": _length(folder),
    }
    lines = chain([head], map(to_wire, record.rows))
    write_pieces(folder / EXPOSURES, ((json.dumps(line) + "\n").encode("ascii") for line in lines))


def read(folder: Path) -> RunExposures | None:
    """Return the exposures on file for the run in `folder`; None when they must be had from its journal.

    That is so where the file is missing, torn, not ours, or older than the journal.
    """
    try:
        with open_plain(folder / EXPOSURES) as file:
            found = None if _size(file) > MAX_BYTES else _head(file, folder)
            if found is None:
                return None
            record, count = found
            rows = tuple(_row(load_json(line, parse_constant=finite), folder.name) for line in file)
    except NOT_OURS:
        return None
    return replace(record, rows=rows) if len(rows) == count else None


def read_latest(
    folder: Path, *, measure: str, keys: frozenset[str], most: int, room: int = MAX_BYTES
) -> tuple[list[Exposure], int] | None:
    """Return the last rows on file that show something of the lessons in `keys`, and the bytes looked at.

    The latest of at most `most` rows comes first. A run of another `measure` has none, and no more than the
    last `room` bytes are looked at. None as for `read`.
    """
    rows: list[Exposure] = []
    looked = 0
    try:
        with open_plain(folder / EXPOSURES) as file:
            found = _head(file, folder)
            if found is None:
                return None
            record, count = found
            if record.measure != measure:
                return [], 0
            start = file.tell()
            if _size(file) <= MAX_BYTES and sum(block.count(b"\n") for block in _blocks(file)) != count:
                return None
            for line in _lines_backwards(file, start):
                looked += len(line)
                if looked > room or len(rows) == most:
                    break
                value = load_json(line, parse_constant=finite)
                if not (keys.isdisjoint(value["included"]) and keys.isdisjoint(value["left_out"])):
                    rows += within([_row(value, folder.name)], keys)
    except NOT_OURS:
        return None
    return rows, looked


def _head(file: BinaryIO, folder: Path) -> tuple[RunExposures, int] | None:
    """Return what the first line says of the run in `folder`, and how many rows follow; None if not of it."""
    head = load_json(file.readline(BLOCK), parse_constant=finite)
    if not isinstance(head, dict) or head.pop("schema", None) != SCHEMA:
        return None
    count, length = head.pop("rows", None), head.pop("journal_bytes", None)
    if head.get("run_id") != folder.name or length != _length(folder):
        return None
    return from_wire(RunExposures, head | {"rows": []}), count


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _lines_backwards(file: BinaryIO, start: int) -> Iterator[bytes]:
    """Yield the lines after an offset, the last one first; raises ValueError where they are none of ours."""
    end = _size(file)
    if end > start:
        file.seek(end - 1)
        if file.read(1) != b"\n":
            raise ValueError("not lines of ours")
    lines = [b""]
    while end > start:
        size = min(BLOCK, end - start)
        end -= size
        file.seek(end)
        rest = lines[0]
        lines = (file.read(size) + rest).split(b"\n")
        if len(rest) > BLOCK:
            raise ValueError("not lines of ours")
        yield from (line for line in reversed(lines[1:]) if line)
    if lines[0]:
        yield lines[0]


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _row(value: Any, run_id: str) -> Exposure:
    """Return one row; raises ValueError where it is none that we would have written."""
    row = from_wire(Exposure, value)
    reward = 0.0 if row.reward is None else row.reward
    if (
        row.run_id != run_id
        or not (MIN_PROPENSITY <= row.propensity < 1 and 0 <= reward <= 1)
        or row.errors < 0
    ):
        raise ValueError(f"not an exposure of run {run_id}: {value!r}")
    return row


def _length(folder: Path) -> int:
    return (folder / JOURNAL).stat().st_size


def within(rows: Sequence[Exposure], keys: frozenset[str]) -> list[Exposure]:
    """Return the rows that show something of the lessons in `keys`, and of them alone."""
    kept = []
    for row in rows:
        included = tuple(key for key in row.included if key in keys)
        left_out = tuple(key for key in row.left_out if key in keys)
        if included or left_out:
            kept.append(replace(row, included=included, left_out=left_out))
    return kept


def history(preflight: Mapping[str, object]) -> list[Exposure]:
    """Return what earlier runs showed of the lessons that a run started with."""
    return list(from_wire(tuple[Exposure, ...], preflight.get(EARLIER, [])))
