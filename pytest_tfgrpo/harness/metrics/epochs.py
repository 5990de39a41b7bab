"""Metrics: the public rows of ``per-epoch.json`` and the lines of ``metrics.jsonl``, derived from records.

Every quantity is stored as n, sum and mean (decision 19). An unknown cost is null and not counted, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum, isnan
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.lessons import Revision
from pytest_tfgrpo.core.records import Frame, Group, PhaseResult, Rollout, Run
from pytest_tfgrpo.core.report_blocks import (
    Changes,
    DevWork,
    EpochRow,
    ScoreQuantity,
    SummedQuantity,
    ToolUse,
)
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.harness.metrics.looks import final_variant
from pytest_tfgrpo.numerics.stats import mean_interval, mean_of, pass_at_k

SCHEMA = "tfgrpo.per-epoch/1"


def per_epoch(run: Run) -> dict[str, Any]:
    """Return the value of ``per-epoch.json``; the baseline sweep is epoch 0."""
    in_force, rows, families = len(run.library_start.experiences), [], given_families(run.scenarios)
    for result in run.phases:
        if result.revision is not None:
            in_force = len(result.revision.library.experiences)
        lessons = in_force
        if run.reference is not None and result.phase.is_control:
            lessons = len(run.reference.library.experiences)
        rows.append(epoch_row(result, lessons, families))
    variant = final_variant(run)
    return {
        "schema": SCHEMA,
        "run_id": run.run_id,
        "task_id": run.task_id,
        "updated_at": run.finished_at or run.started_at,
        "epochs": rows,
        **({} if variant is None else {"variant": variant}),
    }


def epoch_row(
    result: PhaseResult, in_force: int, families: Mapping[str, str] = MappingProxyType({})
) -> EpochRow:
    """Return the public row of one sweep or epoch; `in_force` experiences hold when it ends.

    gt_score counts scenarios: n, sum and mean are over the means of the scenarios that have a scored rollout,
    also in a group of the final sweep that serves the baseline sweep too (`shared`); the 95 % interval is by
    `families` of those that share one. Tokens and cost count all rollouts made for the sweep, latency those
    that are not errors.
    """
    phase, groups = result.phase, result.groups
    rollouts = [r for group in groups for r in group.rollouts]
    latencies = [r.latency_ms for r in rollouts if r.status != "error"]
    p50, p95 = (percentile(latencies, share) if latencies else None for share in (0.5, 0.95))
    row: EpochRow = {
        "epoch": phase.epoch,
        "mode": phase.mode,
        "temperature": phase.temperature,
        "rollouts": len(rollouts),
        "errors": sum(r.status == "error" for r in rollouts),
        "groups": len(groups),
        "informative_groups": sum(group.informative for group in groups),
        "gt_score": _gt_score(result.counted, families),
        "pass_at_1": pass_at(result.counted, 1),
        "pass_at_g": pass_at(result.counted, phase.rollouts),
        "experiences": _changes(result.revision, in_force),
        "tokens": _quantity(r.tokens for r in rollouts),
        "cost_usd": _quantity(r.cost_usd for r in rollouts),
        "latency_ms": {**_quantity(latencies), "p50": p50, "p95": p95},
        "tools": _tools(frame for r in rollouts for frame in r.frames),
    }
    if result.shared:
        row["shared"] = len(result.shared)
    if result.dev:
        row["dev"] = _dev(result)
    return row


def _dev(result: PhaseResult) -> DevWork:
    """Return what the dev split took after a training epoch; the row counts it nowhere else."""
    rollouts = [rollout for group in result.dev for rollout in group.rollouts]
    return {
        "rollouts": len(rollouts),
        "errors": sum(rollout.status == "error" for rollout in rollouts),
        "groups": len(result.dev),
        "tokens": _quantity(rollout.tokens for rollout in rollouts),
        "cost_usd": _quantity(rollout.cost_usd for rollout in rollouts),
    }


def metric_lines(group: Group) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``metrics.jsonl`` for a group: each call, then its rollout (tool null)."""
    for rollout in group.rollouts:
        sources: list[tuple[str | None, Frame | Rollout]] = [(frame.name, frame) for frame in rollout.frames]
        for name, source in [*sources, (None, rollout)]:
            yield {
                "epoch": group.epoch,
                "mode": group.mode,
                "group_id": group.group_id,
                "rollout_id": rollout.rollout_id,
                "tool": name,
                "tokens": source.tokens,
                "cost_usd": source.cost_usd,
                "latency_ms": source.latency_ms,
            }


def solved(group: Group) -> int:
    """Return how many rollouts of a group passed every check."""
    return sum(s.gt_score is not None and s.gt_score >= 1.0 for s in group.scores)


def _gt_score(groups: tuple[Group, ...], families: Mapping[str, str]) -> ScoreQuantity:
    known = {group.scenario_id: mean for group in groups if (mean := group.gt_mean) is not None}
    means = list(known.values())
    return {**_quantity(means), "ci95": mean_interval(means, [families.get(id, id) for id in known]).ci95}


def pass_at(groups: tuple[Group, ...], k: int) -> float | None:
    """Return pass@k, the mean over scenarios with at least k scored rollouts; None without any.

    A group that lost rollouts to errors has no pass@G: guessing from fewer would favour it or harm it.
    """
    n_K = [sum(s.gt_score is not None for s in group.scores) for group in groups]
    values_K = pass_at_k(n_K, [solved(group) for group in groups], k)
    known_K = [value for value in values_K if not isnan(value)]
    return mean_of(known_K) if known_K else None


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of at least one `values` lie, interpolated linearly."""
    x, place = sorted(values), share * (len(values) - 1)
    low = int(place)
    high, part = min(low + 1, len(x) - 1), place - low
    step = x[high] - x[low]
    return float(x[high] - step * (1 - part) if part >= 0.5 else x[low] + step * part)  # rounds as numpy does


def _changes(revision: Revision | None, in_force: int) -> Changes:
    """Count what a revision did; a merge is one update and removes all but one of its lessons."""
    operations = revision.applied if revision is not None else ()
    kinds = [operation.kind for operation in operations]
    merged = sum(len(operation.targets) - 1 for operation in operations if operation.kind == "merge")
    return {
        "added": kinds.count("add"),
        "updated": kinds.count("update") + kinds.count("merge"),
        "removed": kinds.count("remove") + merged,
        "in_force": in_force,
    }


def _tools(frames: Iterable[Frame]) -> list[ToolUse]:
    by_name: dict[str, list[Frame]] = {}
    for frame in frames:
        by_name.setdefault(frame.name, []).append(frame)
    return [
        {
            "tool": name,
            "calls": len(calls),
            "tokens": _quantity(frame.tokens for frame in calls),
            "cost_usd": _quantity(frame.cost_usd for frame in calls),
            "latency_ms": _quantity(frame.latency_ms for frame in calls),
        }
        for name, calls in sorted(by_name.items())
    ]


def _quantity(values: Iterable[float | None]) -> SummedQuantity:
    known = [value for value in values if value is not None]
    total = sum(known) if all(isinstance(value, int) for value in known) else fsum(known)
    return {
        "n": len(known),
        "sum": total if known else None,
        "mean": total / len(known) if known else None,
    }
