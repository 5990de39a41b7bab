"""What each run of a task came to, read from its report; runs that came to nothing are shown as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import fsum
from typing import Any, NamedTuple

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.report_blocks import Bounds
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.report.cost import spent
from pytest_tfgrpo.report.gates import overall

UNREADABLE = "unusable report"
"""State of a run whose report is damaged, or of another version."""
LONGEST = 120
"""Characters of a text that others wrote."""


class FinalScores(NamedTuple):
    """What a final sweep came to; None where it is unknown."""

    mean: float | None = None
    ci95: Bounds = None
    gain: float | None = None
    gain_ci95: Bounds = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PastRun:
    """One run of a task."""

    run_id: str
    state: str
    """How it ended; running, killed, partial, or why its report cannot be read."""
    counts: bool
    """Whether it is drawn and averaged: it is complete, and swept the whole suite."""
    actor: str = ""
    """Spec of the agent, in a replay of the one recorded; empty where none is known."""
    commit: str = ""
    """Empty where none was recorded."""
    lessons_hash: str = ""
    """Hash of the lessons that its final sweep carried."""
    lessons: int | None = None
    suite: str = ""
    """Stamp of its eval split: means of different splits do not compare."""
    scores: FinalScores = FinalScores()
    gate: str = ""
    usd: float | None = None
    cost: str = ""
    """Its cost for a reader; ``+`` says that a part of it is unknown."""
    seconds: float | None = None


def past_run(run_id: str, report: Mapping[str, Any]) -> PastRun:
    """Return a run that has a report; one of an older version has none that fits."""
    try:
        return _past_run(run_id, report)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return PastRun(run_id=run_id, state=UNREADABLE, counts=False)


def _past_run(run_id: str, report: Mapping[str, Any]) -> PastRun:
    sweeps = [row["gt_score"] for row in report["epochs"] if row["mode"] == "eval"]
    final = sweeps[-1] if sweeps else {"mean": None, "ci95": None}
    gain = report["gain"] or {"difference": None, "ci95": None}
    state, partial = line(report["status"], LONGEST), bool(report["partial_selection"])
    stamps = report["stamps"]
    return PastRun(
        run_id=run_id,
        state="a part of the suite" if partial and state == "complete" else state,
        counts=state == "complete" and not partial and final["mean"] is not None,
        actor=line(report.get("actor") or ACTOR.of(report["settings"]) or "", LONGEST),
        commit=line(str(report["versions"].get("commit", "")), LONGEST),
        lessons_hash=line(report["library"]["hash"], LONGEST),
        lessons=len(report["library"]["lessons"]),
        suite=line(stamps.get("eval") or stamps.get("scenarios") or "", LONGEST),
        scores=FinalScores(
            mean=_figure(final["mean"]),
            ci95=_bounds(final["ci95"]),
            gain=_figure(gain["difference"]),
            gain_ci95=_bounds(gain["ci95"]),
        ),
        gate=line(overall(report["gate"]), LONGEST) if report["gate"] else "",
        usd=_figure(report["cost"]["usd"]),
        cost=spent(report["cost"]),
        seconds=_seconds(report["started_at"], report["finished_at"]),
    )


def unreported(run_id: str, state: str, header: Mapping[str, Any] | None) -> PastRun:
    """Return a run without a report, with what the `header` of its journal says."""

    def told(part: str, name: str) -> str:
        known = (header or {}).get(part)
        known = known.get("actor") if part == "identities" and isinstance(known, dict) else known
        return line(str(known.get(name) or ""), LONGEST) if isinstance(known, dict) else ""

    return PastRun(
        run_id=run_id,
        state=line(state, LONGEST),
        counts=False,
        actor=told("identities", "name") or told("settings", "actor"),
        commit=told("versions", "commit"),
    )


def _figure(value: object) -> float | None:
    if value is None or (isinstance(value, (int, float)) and math.isfinite(value)):
        return value
    raise TypeError(f"{value!r:.40} is no number")


def _bounds(value: Sequence[object] | None) -> Bounds:
    if value is None:
        return None
    low, high = (_figure(bound) for bound in value)
    return None if low is None or high is None else (low, high)


def _seconds(start: str, end: str) -> float | None:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() if end else None


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOverRuns:
    """The runs of one agent, commit, library and eval split, averaged."""

    runs: tuple[PastRun, ...]
    """Oldest first."""
    scores: FinalScores
    usd: float | None
    seconds: float | None

    @property
    def latest(self) -> PastRun:
        """The newest of its runs."""
        return self.runs[-1]


def by_build(runs: Iterable[PastRun]) -> list[BuildOverRuns]:
    """Return the runs that count by agent, commit, library and eval split, that of the newest run first.

    The interval is the mean of those of the runs. A mean of estimates spreads no more than its parts do on
    average, however they hang together, so that it is never too narrow; all of them run the same scenarios.
    """
    groups: dict[tuple[str, ...], list[PastRun]] = {}
    for run in runs:
        if run.counts:
            key = (run.actor, run.commit, run.lessons_hash, run.suite)
            groups[key] = [*groups.pop(key, []), run]
    return [_averaged(tuple(group)) for group in reversed(groups.values())]


def _averaged(runs: tuple[PastRun, ...]) -> BuildOverRuns:
    return BuildOverRuns(
        runs=runs,
        scores=FinalScores(
            mean=_mean([run.scores.mean for run in runs]),
            ci95=_mean_bounds([run.scores.ci95 for run in runs]),
            gain=_mean([run.scores.gain for run in runs]),
            gain_ci95=_mean_bounds([run.scores.gain_ci95 for run in runs]),
        ),
        usd=_mean([run.usd for run in runs]),
        seconds=_mean([run.seconds for run in runs]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None where one is unknown."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if len(known) == len(values) else None


def _mean_bounds(bounds: Sequence[Bounds]) -> Bounds:
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    low, high = (_mean([bound[side] for bound in known]) for side in (0, 1))
    return None if low is None or high is None else (low, high)


def suites(runs: Iterable[PastRun]) -> dict[str, str]:
    """Return a short name for each eval split, in the order in which runs swept them."""
    stamps = dict.fromkeys(run.suite for run in runs if run.counts)
    return {stamp: f"{n}" for n, stamp in enumerate(stamps, 1)}


def agents(runs: Iterable[PastRun]) -> dict[str, str]:
    """Return a letter for each agent, in the order in which they ran."""
    actors = dict.fromkeys(run.actor for run in runs if run.counts)
    return {actor: chr(97 + n % 26) + (f"{n // 26}" if n > 25 else "") for n, actor in enumerate(actors)}


def short(commit: str) -> str:
    """Return a commit as a table has it: seven digits, ``*`` where files differed from it."""
    head, mark, _ = commit.partition("+")
    return head[:7] + ("*" if mark else "")


def span(seconds: float | None, digits: int = 0) -> str:
    """Return how long something took: ``40 s``, ``12 min``, ``2.3 h``; minutes with `digits` decimals."""
    if seconds is None:
        return "-"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 9.95 or not seconds else f"{seconds:.1f} s"
    return f"{seconds / 60:.{digits}f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
