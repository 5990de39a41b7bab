"""What the log and the files of a shelf say: how patterns are reviewed, what escaped, what is in use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TypeAlias

from pytest_tfgrpo.core.files import JOURNAL, RUNS, open_plain
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.shelf.moves import ESCAPED, WRITTEN
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of

JOURNAL_LINE = 100_000_000
"""Bytes of the first line of a journal, which has the library that the run started with."""
PATTERNS = "patterns"
"""Task id of a lesson that comes from a pattern; its run id is the pattern's."""
DECIDED = ("promoted", "rejected")

ShelfEntry: TypeAlias = Mapping[str, Json]


def shelf_stats(entries: Iterable[ShelfEntry], patterns: Sequence[Pattern]) -> dict[str, Json]:
    """Return the figures of a shelf from the lines of its log, in their order, and its files.

    A rate or a median is null where nothing has been decided yet. Times are in seconds; a clock that went
    back counts as 0.
    """
    by_id = defaultdict[str, list[ShelfEntry]](list)
    for entry in entries:
        by_id[entry["id"]].append(entry)
    events = Counter(entry["event"] for of in by_id.values() for entry in of)
    decided = events["promoted"] + events["rejected"]
    return {
        "review": {
            "waiting": sum(one.status is PatternStatus.CANDIDATE for one in patterns),
            "decided": decided,
            "rejection_rate": events["rejected"] / decided if decided else None,
            "median_latency_s": _median(_between(of, WRITTEN, *DECIDED) for of in by_id.values()),
        },
        "regressions": {
            "escaped": sum(any(e["event"] == ESCAPED for e in of) for of in by_id.values()),
            "median_time_to_detect_s": _median(_detected(of) for of in by_id.values()),
        },
        "hygiene": {
            "deprecated": events["deprecated"],
            "reintroduced": sum(one.reintroduced != "" for one in patterns),
            "median_time_to_remove_s": _median(_between(of, ESCAPED, "deprecated") for of in by_id.values()),
            "escaped_and_in_force": sum(
                one.status is PatternStatus.ACTIVE and any(e["event"] == ESCAPED for e in by_id[one.id])
                for one in patterns
            ),
        },
        "patterns": {status.value: sum(one.status is status for one in patterns) for status in PatternStatus},
        "trials": dict(sorted(Counter(_trial(one) for one in patterns).items())),
    }


def reuse_of(task_folder: Path, patterns: Sequence[Pattern]) -> dict[str, Json]:
    """Return how many runs of a task started with patterns: in all, and by name of the pattern.

    A run whose journal cannot be read is one without.
    """
    names = {pattern.id: pattern.name for pattern in patterns}
    runs = sorted((task_folder / RUNS).glob(f"*/{JOURNAL}"))
    found = [_started_with(path) & names.keys() for path in runs]
    uses = Counter(names[id_] for ids in found for id_ in ids)
    return {
        "runs": len(runs),
        "runs_with_patterns": sum(bool(ids) for ids in found),
        "by_pattern": {name: uses[name] for name in sorted(names.values()) if uses[name]},
    }


def _started_with(journal: Path) -> set[str]:
    """Return the ids of the patterns in the library that a run started with."""
    try:
        with open_plain(journal) as file:
            data = load_json(file.readline(JOURNAL_LINE))["data"]
        lessons = data["library"]["experiences"]
        return {one["run_id"] for one in lessons if one["task_id"] == PATTERNS}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def _trial(pattern: Pattern) -> str:
    trial = pattern.trial
    return trial.outcome if trial is not None and trial.pattern_stamp == stamp_of(pattern) else "untried"


def _between(entries: Sequence[ShelfEntry], start: str, *ends: str) -> float | None:
    """Return the seconds from the first entry of one kind to the first one after it of others."""
    began = next((n for n, entry in enumerate(entries) if entry["event"] == start), None)
    if began is None:
        return None
    end = next((entry for entry in entries[began:] if entry["event"] in ends), None)
    return None if end is None else _seconds(entries[began]["time"], end["time"])


def _detected(entries: Sequence[ShelfEntry]) -> float | None:
    """Return the seconds from the writing of a pattern to the commit that showed its first regression."""
    began = next((entry["time"] for entry in entries if entry["event"] == WRITTEN), None)
    shown = next((entry["committed_at"] for entry in entries if entry["event"] == ESCAPED), None)
    return None if began is None or shown is None else _seconds(began, shown)


def _seconds(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def _median(times: Iterable[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return median(known) if known else None
