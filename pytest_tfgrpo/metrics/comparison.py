"""Comparison of two sweeps, paired by scenario; axis ``_K`` runs over the scenarios that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import fsum
from types import MappingProxyType

from pytest_tfgrpo.core.named_scores import SHARE, MetricScale
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import ComparisonFigures, MetricChange
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.core.texts.text import scenarios_of
from pytest_tfgrpo.core.wire.wire import SPARSE
from pytest_tfgrpo.metrics.values import (
    GT,
    NOBODY,
    Criteria,
    column,
    criteria_of,
    scale_of,
    source_of,
)
from pytest_tfgrpo.numerics.planning import minimum_detectable_effect
from pytest_tfgrpo.numerics.stats import Interval, paired_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """The gt_scores, or what else was measured, of one scenario in one sweep: for its mean and variance."""

    stamp: str
    """Task stamp: tallies of different tasks are never compared."""
    n: int
    """Rollouts scored."""
    sum: float
    sum_sq: float
    errors: int
    """Rollouts that are errors."""
    domain: str = ""
    """Empty when it is unknown."""
    family: str | None = field(default=None, metadata=SPARSE)
    """None where the scenario is its own, and in files of baselines."""
    metrics: Mapping[str, tuple[float, ...]] = field(default_factory=dict, metadata=SPARSE)
    """n, `sum` and `sum_sq` of other metrics by name, in baselines; only of those that have a score."""
    shared: bool = field(default=False, metadata=SPARSE)
    """True where the same answers count in the baseline sweep and in the final one of a run."""

    def mean(self, *, errors_as_zero: bool = False) -> float | None:
        """Return the mean score; None when nothing counts."""
        n = self.n + (self.errors if errors_as_zero else 0)
        return self.sum / n if n else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two sweeps over the scenarios that have a mean in both."""

    ids: tuple[str, ...]
    before_K: tuple[float, ...]
    after_K: tuple[float, ...]
    families_K: tuple[str, ...]
    """Family of each paired scenario."""
    difference: Interval
    """Mean of after - before over scenarios."""

    @property
    def differences_K(self) -> list[float]:
        """After - before of each paired scenario."""
        return [after - before for before, after in zip(self.before_K, self.after_K, strict=True)]

    @property
    def before(self) -> float | None:
        """Mean over the paired scenarios before; None without any."""
        return fsum(self.before_K) / len(self.ids) if self.ids else None

    @property
    def after(self) -> float | None:
        """Mean over the paired scenarios after; None without any."""
        return fsum(self.after_K) / len(self.ids) if self.ids else None


def tally(
    groups: Iterable[Group],
    stamps: Mapping[str, str],
    families: Mapping[str, str] = MappingProxyType({}),
    metric: str = GT,
    criteria: Criteria = NOBODY,
) -> dict[str, Tally]:
    """Return the tally of each group by scenario id; `stamps` are task stamps, `families` by scenario id.

    What another `metric` found counts as share of the best that there can be; a rollout without a score of it
    counts for nothing, unless it is an error.
    """
    if source_of(metric) and not isinstance(groups, Sequence):  # looked at twice
        groups = list(groups)
    scale = scale_of(groups, metric)
    tallies = {}
    for group in groups:
        values = column(group, metric, criteria, scale)
        known = [value if scale is SHARE else scale.share(value) for value in values if value is not None]
        tallies[group.scenario_id] = Tally(
            stamp=stamps[group.scenario_id],
            n=len(known),
            sum=fsum(known),
            sum_sq=fsum(x * x for x in known),
            errors=sum(s.gt_score is None for s in group.scores),
            domain=group.domain,
            family=families.get(group.scenario_id),
            shared=group.shared,
        )
    return tallies


def in_domain(tallies: Mapping[str, Tally], domain: str) -> dict[str, Tally]:
    """Return the tallies of one domain."""
    return {id_: row for id_, row in tallies.items() if row.domain == domain}


def compare(
    before: Mapping[str, Tally], after: Mapping[str, Tally], *, errors_as_zero: bool = False
) -> Comparison:
    """Return the paired difference over scenarios of equal id and task stamp, in the order of `after`.

    Families are those of `after`: files of baselines have none.
    """
    rows = []
    for id_, new in after.items():
        old = before.get(id_)
        if old is None or old.stamp != new.stamp:
            continue
        pair = old.mean(errors_as_zero=errors_as_zero), new.mean(errors_as_zero=errors_as_zero)
        if pair[0] is not None and pair[1] is not None:
            rows.append((id_, pair[0], pair[1], new.family))
    before_K, after_K = tuple(row[1] for row in rows), tuple(row[2] for row in rows)
    families_K = tuple(row[3] or f"scenario {row[0]}" for row in rows)
    return Comparison(
        ids=tuple(row[0] for row in rows),
        before_K=before_K,
        after_K=after_K,
        families_K=families_K,
        difference=paired_interval(before_K, after_K, families_K),
    )


def figures(comparison: Comparison) -> ComparisonFigures:
    """Return the figures of a comparison, as reports and gate results contain them."""
    difference, n = comparison.difference, len(comparison.ids)
    known = difference.low is not None
    return {
        "n": n,
        "families": len(set(comparison.families_K)),
        "just_these": difference.just_these,
        "before": comparison.before,
        "after": comparison.after,
        "difference": difference.mean if n else None,
        "ci95": difference.ci95,
        "method": difference.method,
        "detectable": minimum_detectable_effect(difference.std, n) if known and difference.std else None,
    }


def metric_changes(before: Sweeps, after: Sweeps, names: Iterable[str]) -> list[MetricChange]:
    """Return how the metrics of two final sweeps compare, in order.

    n is 0 where only one of them has it, or where they measured it on two scales.
    """
    own = before.rows_after, after.rows_after
    known = figures(compare(*own))
    found: list[MetricChange] = []
    for name in names:
        rows = before.rows_of(name), after.rows_of(name)
        there = [
            sweeps.scale_of(name)
            for sweeps, tallies in zip((before, after), rows, strict=True)
            if any(row.n for row in tallies.values())
        ]
        scale = there[-1] if there else SHARE
        if len(set(there)) > 1:
            rows = {}, {}
        made = known if rows == own else on_scale(scale, figures(compare(*rows)))
        found.append({"name": name, "unit": scale.unit, "better": scale.better, **made})
    return found


def on_scale(scale: MetricScale, shares: ComparisonFigures) -> ComparisonFigures:
    """Return the figures of a comparison of shares on the scale that these were made of."""
    if scale is SHARE:
        return shares
    sign = scale.most if scale.better == "higher" else -scale.most
    detectable, ci95 = shares["detectable"], shares["ci95"]
    return {
        **shares,
        "before": None if shares["before"] is None else scale.figure(shares["before"]),
        "after": None if shares["after"] is None else scale.figure(shares["after"]),
        "difference": None if shares["difference"] is None else sign * shares["difference"],
        "ci95": None if ci95 is None else sorted(sign * bound for bound in ci95),
        "detectable": None if detectable is None else scale.most * detectable,
    }


def sentence(comparison: Comparison) -> str:
    """Return a comparison in words."""
    difference = comparison.difference
    if not comparison.ids:
        return "no scenario is in both sweeps"
    interval = (
        f"95 % interval {difference.low:+.3f} to {difference.high:+.3f}"
        if difference.low is not None
        else "too few for an interval"
    )
    return (
        f"{difference.mean:+.3f} (from {comparison.before:.3f} to {comparison.after:.3f}), "
        f"{interval}, {scenarios_of(difference.n, len(set(comparison.families_K)), difference.just_these)}"
    )


def has_lessons(group: Group) -> bool:
    """Return whether a prompt of a group carried a lesson."""
    return any(rollout.experiences for rollout in group.rollouts)


class Sweeps:
    """The sweeps that a run is judged by, with their tallies by scenario id, each counted once."""

    def __init__(self, run: Run, families: Mapping[str, str] | None = None, metric: str = GT) -> None:
        """`families` are those of the eval scenarios that share one, by id; None: those that are given.

        `metric` is what its tallies are of. `before` is the baseline sweep, `after` the final one; None where
        the run has none.
        """
        self._metric = metric
        self._criteria = criteria_of(run)
        self._stamps = {s.id: s.stamp for s in run.scenarios}
        self._families = given_families(run.scenarios) if families is None else families
        self.before: PhaseResult | None = next((r for r in run.phases if r.phase.mode == "baseline"), None)
        self.early: PhaseResult | None = next((r for r in run.phases if r.phase.mode == "early"), None)
        """The part of the baseline sweep that ran before training."""
        self.placebo: PhaseResult | None = next((r for r in run.phases if r.phase.mode == "placebo"), None)
        self.after: PhaseResult | None = next(
            (r for r in reversed(run.phases) if r.phase.mode == "eval"), None
        )

    @cached_property
    def rows_before(self) -> Mapping[str, Tally]:
        """Tallies of the baseline sweep; empty without one."""
        return self._tally(self.before.counted) if self.before is not None else {}

    @cached_property
    def rows_placebo(self) -> Mapping[str, Tally]:
        """Tallies of the placebo sweep; empty without one.

        Scenarios whose lessons had no others to stand in their place are left out: nothing is known of them.
        """
        if self.placebo is None:
            return {}
        return self._tally((*self.placebo.groups, *(g for g in self.placebo.shared if not has_lessons(g))))

    @cached_property
    def drift(self) -> Comparison | None:
        """What the control changed by since its early part; None where no part was early."""
        if self.early is None or self.before is None:
            return None
        return compare(self._tally(self.early.groups), self.rows_before)

    def rows_of(self, metric: str) -> Mapping[str, Tally]:
        """Return the tallies of a metric in the final sweep; empty without one."""
        if metric == self._metric or self.after is None:
            return self.rows_after
        return tally(self.after.groups, self._stamps, self._families, metric, self._criteria)

    def scale_of(self, metric: str) -> MetricScale:
        """Return the scale of a metric in the final sweep."""
        return scale_of(self.after.groups if self.after is not None else (), metric)

    @cached_property
    def rows_after(self) -> Mapping[str, Tally]:
        """Tallies of the final sweep; empty without one."""
        return self._tally(self.after.groups) if self.after is not None else {}

    def rows_until(self, rollouts: int) -> Mapping[str, Tally]:
        """Return the tallies of the final sweep over the first `rollouts` of each scenario alone."""
        groups = self.after.groups if self.after is not None else ()
        return self._first_of(groups, rollouts)

    def control_until(self, rollouts: int) -> Mapping[str, Tally] | None:
        """Return the tallies of a control when the sweep beside it had `rollouts`; None where none ran so."""
        before, after = self.before, self.after
        if before is None or after is None or not before.phase.concurrent:
            return None
        own = before.phase.rollouts * rollouts // after.phase.rollouts
        return {**self._first_of(before.groups, own), **self._first_of(before.shared, rollouts)}

    def _first_of(self, groups: Iterable[Group], rollouts: int) -> dict[str, Tally]:
        first = (
            replace(group, scores=group.scores[:rollouts], rollouts=group.rollouts[:rollouts])
            for group in groups
        )
        return self._tally(first)

    def _tally(self, groups: Iterable[Group]) -> dict[str, Tally]:
        return tally(groups, self._stamps, self._families, self._metric, self._criteria)
