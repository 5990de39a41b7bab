"""Metrics: the public rows of ``per-epoch.json`` and the lines of ``metrics.jsonl``, derived from records.

Every quantity is stored as n, sum and mean (decision 19). An unknown cost is null and not counted, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.lessons import Revision
from pytest_tfgrpo.core.records import Frame, Group, PhaseResult, Rollout, Run
from pytest_tfgrpo.core.report_blocks import (
    Changes,
    DevWork,
    EpochRow,
    Latency,
    MetricFigures,
    ScoreQuantity,
)
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.metrics.looks import final_variant
from pytest_tfgrpo.metrics.named import SweepMetrics
from pytest_tfgrpo.metrics.passes import Passes
from pytest_tfgrpo.metrics.used import UsedInSweep
from pytest_tfgrpo.metrics.values import GT, NOBODY, Criteria, criteria_of

if TYPE_CHECKING:
    from pytest_tfgrpo.metrics.named import SweepMetrics

SCHEMA = "tfgrpo.per-epoch/1"
PARTS = ("phase", "groups", "shared", "revision", "dev")
"""What a row is made of."""


MadeRows: TypeAlias = dict[int, tuple[PhaseResult, EpochRow]]
"""Rows by epoch, with what each was made of."""


def per_epoch(run: Run, made: MadeRows | None = None) -> dict[str, Any]:
    """Return the value of ``per-epoch.json``; the baseline sweep is epoch 0.

    `made` keeps the rows of a run that goes on, so that each is made once.
    """
    made = {} if made is None else made
    in_force, rows, families = len(run.library_start.experiences), [], given_families(run.scenarios)
    criteria = criteria_of(run)
    for result in run.phases:
        if result.revision is not None:
            in_force = len(result.revision.library.experiences)
        lessons = in_force
        if run.reference is not None and result.phase.is_control:
            lessons = len(run.reference.library.experiences)
        known = made.get(result.phase.epoch)
        if known is None or any(getattr(known[0], part) is not getattr(result, part) for part in PARTS):
            known = made[result.phase.epoch] = result, epoch_row(result, lessons, families, criteria)
        rows.append(known[1])
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
    result: PhaseResult,
    in_force: int,
    families: Mapping[str, str] = MappingProxyType({}),
    criteria: Criteria = NOBODY,
) -> EpochRow:
    """Return the public row of one sweep or epoch; `in_force` experiences hold when it ends.

    gt_score and the other metrics count scenarios: n, sum and mean are over the means of the scenarios that
    have a scored rollout, also in a group of the final sweep that serves the baseline sweep too (`shared`);
    the 95 % interval is by `families` of those that share one. Of attempts made elsewhere it counts their
    total_reward alike, and no gt_score. Tokens and cost count all rollouts made for the sweep, latency those
    that are not errors.
    """
    phase, measured = result.phase, SweepMetrics(criteria=criteria)
    used, passes, served = _once(result, measured)
    metrics, left_out = measured.figures(families)
    row: EpochRow = {
        "epoch": phase.epoch,
        "mode": phase.mode,
        "temperature": phase.temperature,
        "rollouts": used.rollouts.n,
        "errors": used.errors,
        "groups": used.groups,
        "informative_groups": used.informative,
        "gt_score": _score(metrics[GT]),
        "pass_at_1": passes.at(1),
        "pass_at_g": passes.at(phase.rollouts),
        "experiences": _changes(result.revision, in_force),
        "tokens": used.rollouts.tokens.row(),
        "cost_usd": used.rollouts.costs_usd.row(),
        "latency_ms": _latency(used),
        "tools": used.tools(),
    }
    if phase.asks:
        row["metrics"] = metrics
    else:  # of attempts made elsewhere nothing is measured here
        row["total_reward"] = _score(metrics["reward"])
    if left_out:
        row["metrics_left_out"] = left_out
    if result.shared:
        row["shared"], row["shared_rollouts"] = len(result.shared), served
    if result.dev:
        row["dev"] = _dev(result)
    return row


def _once(result: PhaseResult, measured: SweepMetrics) -> tuple[UsedInSweep, Passes, int]:
    """Return what a sweep used, what passed in it, and the rollouts that the baseline sweep made for it.

    Each group is looked at once, as a look at one of a long run reads its file.
    """
    counted, used, passes, served = result.counted, UsedInSweep(), Passes(), 0
    for group in counted:
        passes.add(group)
        measured.add(group)
        if counted is result.groups:
            used.add(group)
        elif group.shared:
            served += len(group.rollouts)
    for group in () if counted is result.groups else result.groups:
        used.add(group)
    return used, passes, served


def _latency(used: UsedInSweep) -> Latency:
    latencies = used.rollouts.latencies_ms
    p50, p95 = (percentile(latencies.values, share) if latencies.values else None for share in (0.5, 0.95))
    return {**latencies.row(), "p50": p50, "p95": p95}


def _score(of: MetricFigures) -> ScoreQuantity:
    return {"n": of["n"], "sum": of["sum"], "mean": of["mean"], "ci95": of["ci95"]}


def _dev(result: PhaseResult) -> DevWork:
    """Return what the dev split took after a training epoch; the row counts it nowhere else."""
    used = UsedInSweep(result.dev)
    return {
        "rollouts": used.rollouts.n,
        "errors": used.errors,
        "groups": used.groups,
        "tokens": used.rollouts.tokens.row(),
        "cost_usd": used.rollouts.costs_usd.row(),
    }


def metric_lines(group: Group) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``metrics.jsonl`` for a group: each call, then its rollout (tool null).

    Attempts that were made elsewhere used nothing here.
    """
    if group.mode == "evidence":
        return
    for rollout in group.rollouts:
        sources: list[tuple[str | None, Frame | Rollout]] = [
            (frame.name, frame) for frame in rollout.frames if frame.kind != USER
        ]
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
