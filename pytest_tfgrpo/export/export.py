"""The export of a run: rows in a fixed order, written whole or not at all."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from pytest_tfgrpo.core.errors import ExportError, TfgrpoError
from pytest_tfgrpo.core.files import RUNS, open_plain, write_atomic
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.export.attempts import (
    FORMULAS,
    OTHER_PROMPT,
    AdvantageKind,
    prompt_of,
    read_group,
    without_secret,
)
from pytest_tfgrpo.export.index import open_index
from pytest_tfgrpo.export.rows import (
    ExportFormat,
    ExportRow,
    preference_rows,
    prompt_row,
    rollout_rows,
)
from pytest_tfgrpo.export.source import CALLS_TOOLS, HAS_LOGPROBS, HAS_TOKEN_IDS, ExportSource

LOW_REWARD = "below the least reward"
_STARTS = (
    b'{"schema":"tfgrpo.rollouts/',
    b'{"prompt":[{"role":',
    b'{"data_source":',
    b"agent,scenario,split,",
)
"""How the rows of each format begin."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T][\d:.]*Z?)?")
"""What loaders take for a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """What to export, and how."""

    format: ExportFormat
    advantage: AdvantageKind = "grpo"
    bare: bool = False
    """Leave the lessons out of prompts."""
    force: bool = False
    """Replace a file that exists."""
    min_reward: float | None = None
    """Least reward of an attempt, or of the better one of a pair."""


@dataclass(kw_only=True, slots=True)
class ExportTally:
    """What an export wrote and left out."""

    rows: int = 0
    groups: int = 0
    """Groups, or scenarios of prompts, with a row."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Rollouts, or prompts, by reason."""
    no_pair: int = 0
    """Groups without a pair."""
    shown: set[str] = field(default_factory=set)
    """Columns of messages that are null or a date in some rows, and were something else in others."""

    def told(self) -> str:
        """Return what was left out, as one line."""
        reasons = [f"{reason} {n}" for reason, n in sorted(self.left_out.items()) if n]
        if self.no_pair:
            reasons.append(f"groups without a pair {self.no_pair}")
        return f"left out: {', '.join(reasons) or 'nothing'}"


def export(folder: Path, target: Path, wanted: Export) -> Iterator[str]:
    """Write the rows of the run in `folder` to the file `target`, and yield what is to be said of it.

    Raises ExportError for an unfinished run, for a file that exists unless forced, also then for what a run
    keeps, without a row, and where the file cannot be written; JournalError where the run cannot be read.
    Then there is no file.
    """
    try:
        check_target(folder, target, wanted.force)
    except OSError as error:
        raise ExportError(f"cannot write {target}: {error.strerror}; name another file with -o") from error
    with open_index(folder) as index:
        yield from write_rows(index, target, wanted)


def write_rows(index: ExportSource, target: Path, wanted: Export) -> Iterator[str]:
    """Write the rows of a source to the file `target`, in place of what is there; as `export` does."""
    tally = ExportTally() if wanted.format == "prompt" else ExportTally(left_out=index.left_out)
    try:
        write_atomic(target, _lines(index, wanted, tally))
    except TfgrpoError:
        raise
    except OSError as error:
        raise ExportError(
            f"cannot write {target}: {error.strerror or error}; name another file with -o"
        ) from error
    of = "scenario" if wanted.format == "prompt" else "group"
    yield (f"{target}: {plural(tally.rows, 'row')} from {plural(tally.groups, of)} of {index.name}")
    yield tally.told()
    if wanted.format == "rollouts":
        yield f"advantage {wanted.advantage}: {FORMULAS[wanted.advantage]}"
    for column in ("chosen", "rejected") if wanted.format == "preference" else ():
        if f"{column} text" not in tally.shown:
            yield f"every text of {column!r} is a date: pass features to datasets, or it reads them as times"


def check_target(folder: Path, target: Path, force: bool) -> None:
    """Raise ExportError where a file is in the way: any without `force`, else one that a run keeps.

    In the folder of the run's task, an earlier export alone is replaced. Raises OSError for a name that
    cannot be.
    """
    if not target.exists():
        return
    if not target.is_file():
        raise ExportError(f"{target} exists; name another file with -o")
    kept = (folder.parent.parent if folder.parent.name == RUNS else folder).resolve()
    if target.resolve().is_relative_to(kept) and not _is_export(target):
        raise ExportError(
            f"{target} belongs to a run, and is not an earlier export; name another file with -o"
        )
    if not force:
        raise ExportError(f"{target} exists; name another file with -o, or replace it with --force")


def _is_export(path: Path) -> bool:
    """Return whether a file begins as an export does; raises OSError."""
    with open_plain(path) as file:
        start = file.read(len(max(_STARTS, key=len)))
    return start.startswith(_STARTS)


def _lines(index: ExportSource, wanted: Export, tally: ExportTally) -> Iterator[bytes]:
    made = _prompts(index, wanted, tally) if wanted.format == "prompt" else _by_group(index, wanted, tally)
    for row in made:
        tally.rows += 1
        yield _line(row)
    if not tally.rows:
        why = "" if any(index.groups()) else ": it has no training group; export a run that learned"
        raise ExportError(f"{index.name} has no row to export{why} ({tally.told()})")


def _line(row: ExportRow) -> bytes:
    text = json.dumps(row, allow_nan=False, separators=(",", ":"))
    if "\\ud" in text:  # half a surrogate pair is no text to a loader
        whole = json.dumps(row, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
        text = json.dumps(load_json(whole), separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def _by_group(index: ExportSource, wanted: Export, tally: ExportTally) -> Iterator[ExportRow]:
    """Yield rows group by group; those that show the type of a column come first.

    Loaders settle the type of a column by the first megabytes, and refuse a file that is null up to there.
    """
    done: set[str] = set()
    for column, flag in _FLAGGED[wanted.format].items():
        for id_, _ in index.groups():
            if column in tally.shown:
                break
            if index.flags(id_) & flag and id_ not in done:
                done.add(id_)
                yield from _rows_of(index, id_, wanted, tally)
    for id_, _ in index.groups():
        if id_ not in done:
            yield from _rows_of(index, id_, wanted, tally)


_FLAGGED: dict[ExportFormat, dict[str, int]] = {
    "rollouts": {"messages tools": CALLS_TOOLS, "logprobs": HAS_LOGPROBS, "token_ids": HAS_TOKEN_IDS},
    "preference": {"chosen tools": CALLS_TOOLS, "rejected tools": CALLS_TOOLS},
}
"""Columns that may be null, by what a group must have to show more."""


def _rows_of(index: ExportSource, id_: str, wanted: Export, tally: ExportTally) -> list[ExportRow]:
    group = read_group(index, id_, wanted.advantage, tally.left_out)
    least = -math.inf if wanted.min_reward is None else wanted.min_reward
    if wanted.format == "rollouts":
        rows = [row for row in rollout_rows(index, group, wanted.advantage) if row["reward"] >= least]
        tally.left_out[LOW_REWARD] += len(group.rollouts) - len(rows)
    else:
        pairs = preference_rows(index, group, wanted.bare, tally.left_out)
        rows = [row for row in pairs if row["chosen_reward"] >= least]
        tally.no_pair += not rows
    tally.groups += bool(rows)
    for row in rows:
        tally.shown.update(_shown(row))
    return rows


def _shown(row: ExportRow) -> Iterator[str]:
    for sampled in row.get("sampled") or ():
        yield from (name for name in ("logprobs", "token_ids") if sampled[name] is not None)
    for column in row.keys() & {"messages", "chosen", "rejected"}:
        if any(message["tool_calls"] for message in row[column]):
            yield f"{column} tools"
        if any(_DATE.fullmatch(message["content"]) is None for message in row[column]):
            yield f"{column} text"


def _prompts(index: ExportSource, wanted: Export, tally: ExportTally) -> Iterator[ExportRow]:
    """Yield the prompt of each training scenario, as it was the last time."""
    last = {scenario: id_ for id_, scenario in index.groups()}
    for n, (scenario_id, id_) in enumerate(last.items()):
        scenario = index.scenarios[scenario_id]
        prompt = prompt_of(index, scenario, index.load(id_).rollouts[0])
        if wanted.bare and prompt != OTHER_PROMPT:
            prompt = without_secret(index.bare_prompt(scenario))
        if isinstance(prompt, str):
            tally.left_out[prompt] += 1
        else:
            tally.groups += 1
            yield prompt_row(index, scenario, prompt, n)
