"""Runs compared by their final sweeps: one JSON value; terminal text and page are made from it.

A difference is `after` - `before`, paired by scenario; `before` is the run that the others are compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import DomainRow
from pytest_tfgrpo.core.settings.gate import GATE_MARGIN
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.gate.baseline import actor_name, compared_stamps
from pytest_tfgrpo.gate.result import MIN_SCENARIOS, MIN_SHARE
from pytest_tfgrpo.gate.sample_size import settling_advice
from pytest_tfgrpo.learning.library.library import diff
from pytest_tfgrpo.metrics import costs, significance
from pytest_tfgrpo.metrics.comparison import (
    Comparison,
    Sweeps,
    Tally,
    compare,
    figures,
    metric_changes,
)
from pytest_tfgrpo.metrics.epochs import epoch_row, per_epoch
from pytest_tfgrpo.metrics.named import metric_names
from pytest_tfgrpo.metrics.values import criteria_of
from pytest_tfgrpo.numerics.stats import holm
from pytest_tfgrpo.suite.families import sweeps_of

SCHEMA = "tfgrpo.versus/1"
LARGEST = 5
WITHIN = "relative_rank"
"""Its mean is 0.5 in every sweep: it ranks the rollouts of a group, so two runs cannot differ in it."""

Tallies: TypeAlias = Mapping[str, Tally]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pair:
    """Two runs, paired by the scenarios of their final sweeps."""

    before: Run
    after: Run
    earlier: Sweeps
    later: Sweeps
    known: Comparison
    """Errors left out."""
    as_zero: Comparison
    """Errors as failures."""

    @property
    def rows(self) -> tuple[Tallies, Tallies]:
        return self.earlier.rows_after, self.later.rows_after


def versus(before: Run, after: Run, further: Sequence[Run] = ()) -> dict[str, Any]:
    """Return `after` compared with `before`, as ``versus.schema.json`` describes it.

    `further` runs are compared with `before` too, each in a value of its own. `claim` is better or worse only
    if p < 0.05, after Holm's correction for the number of comparisons, and the interval lies on one side of
    0, both under both readings of errors, and where nothing of `obstacles` stands against comparing the two.
    `equal_within` is the smaller ``gate_margin`` of both where the interval lies inside it instead.
    """
    first, *others = compared_pairs([(before, run) for run in (after, *further)])
    return {**first, "further": others}


def compared_pairs(runs: Sequence[tuple[Run, Run]]) -> list[dict[str, Any]]:
    """Return each pair of runs compared, corrected for their number."""
    pairs = [_paired(before, after) for before, after in runs]
    without, as_zero = ([_nan_p(pair.known) for pair in pairs], [_nan_p(pair.as_zero) for pair in pairs])
    adjusted = list(zip(holm(without).tolist(), holm(as_zero).tolist(), strict=True))
    swept = [sweeps.after for pair in pairs for sweeps in (pair.earlier, pair.later)]
    criteria: dict[str, Sequence[str]] = {}
    for run in (run for pair in pairs for run in (pair.before, pair.after)):
        criteria |= criteria_of(run)
    found = metric_names(*(sweep.groups for sweep in swept if sweep is not None), criteria=criteria)
    names = [name for name in found if name != WITHIN]
    return [_value(pair, p, len(pairs), names) for pair, p in zip(pairs, adjusted, strict=True)]


def _paired(before: Run, after: Run) -> _Pair:
    earlier, later = sweeps_of(before), sweeps_of(after)
    old, new = earlier.rows_after, later.rows_after
    return _Pair(
        before=before,
        after=after,
        earlier=earlier,
        later=later,
        known=compare(old, new),
        as_zero=compare(old, new, errors_as_zero=True),
    )


def _value(
    pair: _Pair, p_adjusted: tuple[float, float], comparisons: int, metrics: Sequence[str]
) -> dict[str, Any]:
    """Return one of so many `comparisons`; `p_adjusted` has both readings, NaN without any scenario.

    `metrics` are those of all the runs, so that each comparison has them in one order.
    """
    before, after, known, as_zero = pair.before, pair.after, pair.known, pair.as_zero
    old, new = pair.rows
    p, p_as_zero = (None if math.isnan(value) else value for value in p_adjusted)
    errors = any(row.errors for rows in (old, new) for row in rows.values())
    obstacles = list(_obstacles(pair))
    claim = None if obstacles else significance.claim((known, p), (as_zero, p_as_zero))
    margin = min(GATE_MARGIN.of(run.settings) for run in (before, after))
    equal = (
        None if obstacles or claim else significance.equal_within(margin, known, as_zero, looks=comparisons)
    )
    scenarios = _scenarios(after, old, new, known)
    return {
        "schema": SCHEMA,
        "other": before.run_id,
        "before": side(before, pair.earlier),
        "after": side(after, pair.later),
        "obstacles": obstacles,
        "difference": {
            **figures(known),
            "p": significance.p_of(known),
            "p_adjusted": p,
            "errors_as_zero": {**figures(as_zero), "p": significance.p_of(as_zero), "p_adjusted": p_as_zero}
            if errors
            else None,
        },
        "comparisons": comparisons,
        "claim": claim,
        "equal_within": equal,
        "settling": None
        if obstacles or claim or equal is not None
        else _settling(pair, errors, comparisons, margin),
        "domains": _domains(after, old, new, claimed=not obstacles),
        "metrics": metric_changes(pair.earlier, pair.later, metrics),
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


def _nan_p(compared: Comparison) -> float:
    p = significance.p_of(compared)
    return math.nan if p is None else p


def _settling(pair: _Pair, errors: bool, comparisons: int, margin: float) -> dict[str, Any]:
    """Return how many scenarios would settle it, by the reading that needs more.

    Settled is which run is better, or that they are equal within `margin`, whichever takes fewer.
    """
    level, found = 1.0 - significance.ALPHA / comparisons, []
    for compared, zero in ((pair.known, False), (pair.as_zero, True))[: 1 + errors]:
        old, new = pair.rows
        if compared.difference.mean > 0:  # `settling_advice` is about a drop
            old, new = new, old
            compared = compare(old, new, errors_as_zero=zero)
        found.append(settling_advice(compared, old, new, margin, errors_as_zero=zero, level=level))
    advice, numbers = max(
        found, key=lambda one: math.inf if one[1]["settled_by"] is None else one[1]["settled_by"]
    )
    return {"scenarios": numbers["settled_by"], "advice": advice}


def side(run: Run, sweeps: Sweeps) -> dict[str, Any]:
    """Return the facts of a run and the results of its final sweep."""
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
    row = epoch_row(sweep, in_force, {id_: tally.family for id_, tally in rows.items() if tally.family})
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


def _obstacles(pair: _Pair) -> Iterator[str]:
    """Yield why nothing can be claimed of the difference, whatever its size."""
    before, after, larger = pair.before, pair.after, max(map(len, pair.rows))
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
    n = len(pair.known.ids)
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
            "scenario": id_,
            "domain": domain_of[id_],
            "before": b,
            "after": a,
            "difference": a - b,
            "errors": [old[id_].errors, new[id_].errors],
        }
        for id_, b, a in zip(compared.ids, compared.before_K, compared.after_K, strict=True)
    ]


def _size(row: Mapping[str, Any]) -> tuple[float, str]:
    return -abs(row["difference"]), row["scenario"]


def _apart(old: Tallies, new: Tallies, compared: Comparison) -> dict[str, list[str]]:
    """Return the ids that are not compared, and why: in one only, another task by the same id, all errors."""
    both, paired = old.keys() & new.keys(), set(compared.ids)
    changed = {id_ for id_ in both if old[id_].stamp != new[id_].stamp}
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
