"""Two runs compared by their final sweeps: one JSON value; terminal text and page are made from it.

A difference is `after` - `before`, paired by scenario; `before` is the run that the other is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import DomainRow
from pytest_tfgrpo.core.text import plural
from pytest_tfgrpo.core.wire import Json, to_wire
from pytest_tfgrpo.harness.gate.baseline import actor_name, compared_stamps
from pytest_tfgrpo.harness.gate.result import MIN_SCENARIOS, MIN_SHARE
from pytest_tfgrpo.harness.learning.library.library import diff
from pytest_tfgrpo.harness.metrics import costs, significance
from pytest_tfgrpo.harness.metrics.comparison import Comparison, Sweeps, Tally, compare, figures
from pytest_tfgrpo.harness.metrics.epochs import epoch_row, per_epoch
from pytest_tfgrpo.harness.suite.families import sweeps_of

SCHEMA = "tfgrpo.versus/1"
LARGEST = 5

Tallies: TypeAlias = Mapping[str, Tally]


def versus(before: Run, after: Run) -> dict[str, Any]:
    """Return `after` compared with `before`, as ``versus.schema.json`` describes it.

    `claim` is better or worse only if p < 0.05 and the interval lies on one side of 0, both under both
    readings of errors, and where nothing of
    `obstacles` stands against comparing the two at all.
    """
    earlier, later = sweeps_of(before), sweeps_of(after)
    old, new = earlier.rows_after, later.rows_after
    known, as_zero = compare(old, new), compare(old, new, errors_as_zero=True)
    p, p_as_zero = significance.p_of(known), significance.p_of(as_zero)
    errors = any(row.errors for rows in (old, new) for row in rows.values())
    obstacles = list(_obstacles(before, after, known, max(len(old), len(new))))
    scenarios = _scenarios(after, old, new, known)
    return {
        "schema": SCHEMA,
        "other": before.run_id,
        "before": _side(before, earlier),
        "after": _side(after, later),
        "obstacles": obstacles,
        "difference": {
            **figures(known),
            "p": p,
            "errors_as_zero": {**figures(as_zero), "p": p_as_zero} if errors else None,
        },
        "claim": None if obstacles else significance.claim((known, p), (as_zero, p_as_zero)),
        "domains": _domains(after, old, new, claimed=not obstacles),
        "regressions": sorted((s for s in scenarios if s["difference"] < 0), key=_size)[:LARGEST],
        "gains": sorted((s for s in scenarios if s["difference"] > 0), key=_size)[:LARGEST],
        "scenarios": scenarios,
        "apart": _apart(old, new, known),
        "library": _library(before, after),
        "settings": _differing(to_wire(before.settings), to_wire(after.settings)),
        "stamps": _differing(before.stamps, after.stamps),
        "versions": _differing(before.versions, after.versions),
        "epochs": per_epoch(before)["epochs"],
    }


def _side(run: Run, sweeps: Sweeps) -> dict[str, Any]:
    """Return the facts of one of the two runs and the results of its final sweep."""
    total = costs.of_run(run)
    return {
        "run_id": run.run_id,
        "task_id": run.task_id,
        "status": run.status,
        "reason": run.reason,
        "started_at": run.started_at,
        "partial_selection": run.partial_selection,
        "actor": actor_name(run),
        "library": run.library.hash,
        "lessons": len(run.library.experiences),
        "final": None
        if sweeps.after is None
        else _final(sweeps.after, len(run.library.experiences), sweeps.rows_after),
        "total": {key: total[key] for key in ("calls", "failed", "unknown", "tokens", "usd")},
    }


def _final(sweep: PhaseResult, in_force: int, rows: Tallies) -> dict[str, Any]:
    """Return the final sweep; `mean` leaves errors out, `mean_errors_as_zero` counts them as failures."""
    row = epoch_row(sweep, in_force, {id: tally.family for id, tally in rows.items() if tally.family})
    as_zero = [mean for tally in rows.values() if (mean := tally.mean(errors_as_zero=True)) is not None]
    return {
        "status": sweep.status,
        "temperature": sweep.phase.temperature,
        "scenarios": len(rows),
        "rollouts": row["rollouts"],
        "errors": row["errors"],
        "mean": row["gt_score"]["mean"],
        "ci95": row["gt_score"]["ci95"],
        "mean_errors_as_zero": sum(as_zero) / len(as_zero) if as_zero else None,
        "pass_at_1": row["pass_at_1"],
        "tokens": row["tokens"],
        "cost_usd": row["cost_usd"],
        "p50_ms": row["latency_ms"]["p50"],
    }


def _obstacles(before: Run, after: Run, compared: Comparison, larger: int) -> Iterator[str]:
    """Yield why nothing can be claimed of the difference, whatever its size."""
    if (before.task_id, before.run_id) == (after.task_id, after.run_id):
        yield "both are the same run; compare another one, which `tfgrpo runs` lists"
    ends = []
    for run in (before, after):
        sweep = sweeps_of(run).after
        if sweep is None:
            yield f"run {run.run_id} has no final sweep"
            continue
        ends.append(sweep)
        if sweep.status != "complete":
            yield f"the final sweep of run {run.run_id} is {sweep.status}"
        elif sweep.settled:
            yield f"the final sweep of run {run.run_id} stopped as soon as its gate was decided"
    if len(ends) < 2:
        return
    temperatures = [sweep.phase.temperature for sweep in ends]
    if temperatures[0] != temperatures[1]:
        yield f"the temperatures of the final sweeps differ: {temperatures[0]:g} and {temperatures[1]:g}"
    if (judges := [compared_stamps(run).get("judge") for run in (before, after)])[0] != judges[1]:
        yield "different judges scored them"
    n = len(compared.ids)
    if not n:
        yield "no scenario is scored in both"
    elif n < MIN_SHARE * larger:
        yield f"only {n} of {plural(larger, 'scenario', 'is', 'are')} in both"
    elif n < MIN_SCENARIOS:
        common = plural(n, "scenario", "is", "are")
        yield f"only {common} in both; a claim needs {MIN_SCENARIOS} or more eval scenarios"


def _domains(after: Run, old: Tallies, new: Tallies, *, claimed: bool) -> list[DomainRow]:
    rows = significance.domains(after, old, new)
    return rows if claimed else [DomainRow(**{**row, "claim": None}) for row in rows]


def _scenarios(after: Run, old: Tallies, new: Tallies, compared: Comparison) -> list[dict[str, Any]]:
    domain_of = {s.id: s.domain for s in after.scenarios}
    return [
        {
            "scenario": id,
            "domain": domain_of[id],
            "before": b,
            "after": a,
            "difference": a - b,
            "errors": [old[id].errors, new[id].errors],
        }
        for id, b, a in zip(compared.ids, compared.before_K, compared.after_K, strict=True)
    ]


def _size(row: Mapping[str, Any]) -> tuple[float, str]:
    return -abs(row["difference"]), row["scenario"]


def _apart(old: Tallies, new: Tallies, compared: Comparison) -> dict[str, list[str]]:
    """Return the ids that are not compared, and why: in one only, another task by the same id, all errors."""
    both, paired = old.keys() & new.keys(), set(compared.ids)
    changed = {id for id in both if old[id].stamp != new[id].stamp}
    return {
        "before": sorted(old.keys() - new.keys()),
        "after": sorted(new.keys() - old.keys()),
        "changed": sorted(changed),
        "unscored": sorted(both - changed - paired),
    }


def _library(before: Run, after: Run) -> dict[str, Any]:
    history = [
        operation.experience
        for run in (before, after)
        for result in run.phases
        if result.revision is not None
        for operation in result.revision.applied
        if operation.experience is not None
    ]
    found = diff(before.library, after.library, history)
    return {
        "added": [_lesson(experience) for experience in found.added],
        "removed": [_lesson(experience) for experience in found.removed],
        "changed": [
            {"before": [_lesson(experience) for experience in old], "after": _lesson(new)}
            for old, new in found.changed
        ],
    }


def _lesson(experience: Experience) -> dict[str, str]:
    return {
        "id": experience.id,
        "domain": experience.domain,
        "polarity": experience.polarity,
        "text": experience.summary32,
    }


def _differing(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[dict[str, Json]]:
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
