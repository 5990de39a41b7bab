"""Comparison of two sweeps, paired by scenario; axis ``_K`` runs over the scenarios that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from types import MappingProxyType

from pytest_tfgrpo.core.records import Group, PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import ComparisonFigures
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.core.text import scenarios_of
from pytest_tfgrpo.core.wire import SPARSE
from pytest_tfgrpo.numerics.planning import minimum_detectable_effect
from pytest_tfgrpo.numerics.stats import Interval, paired_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """The gt_scores of one scenario in one sweep: enough for its mean and variance."""

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
    shared: bool = field(default=False, metadata=SPARSE)
    """True where the same answers count in the baseline sweep and in the final one of a run."""

    def mean(self, *, errors_as_zero: bool = False) -> float | None:
        """Return the mean gt_score; None when nothing counts."""
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
    groups: Iterable[Group], stamps: Mapping[str, str], families: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Tally]:
    """Return the tally of each group by scenario id; `stamps` are task stamps, `families` by scenario id."""
    tallies = {}
    for group in groups:
        known = [s.gt_score for s in group.scores if s.gt_score is not None]
        tallies[group.scenario_id] = Tally(
            stamp=stamps[group.scenario_id],
            n=len(known),
            sum=fsum(known),
            sum_sq=fsum(x * x for x in known),
            errors=len(group.scores) - len(known),
            domain=group.domain,
            family=families.get(group.scenario_id),
            shared=group.shared,
        )
    return tallies


def in_domain(tallies: Mapping[str, Tally], domain: str) -> dict[str, Tally]:
    """Return the tallies of one domain."""
    return {id: row for id, row in tallies.items() if row.domain == domain}


def compare(
    before: Mapping[str, Tally], after: Mapping[str, Tally], *, errors_as_zero: bool = False
) -> Comparison:
    """Return the paired difference over scenarios of equal id and task stamp, in the order of `after`.

    Families are those of `after`: files of baselines have none.
    """
    rows = []
    for id, new in after.items():
        old = before.get(id)
        if old is None or old.stamp != new.stamp:
            continue
        pair = old.mean(errors_as_zero=errors_as_zero), new.mean(errors_as_zero=errors_as_zero)
        if pair[0] is not None and pair[1] is not None:
            rows.append((id, pair[0], pair[1], new.family))
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


class Sweeps:
    """The sweeps that a run is judged by, with their tallies by scenario id, each counted once."""

    def __init__(self, run: Run, families: Mapping[str, str] | None = None) -> None:
        """`families` are those of the eval scenarios that share one, by id; None: those that are given.

        `before` is the baseline sweep, `after` the final one; None where the run has none.
        """
        self._stamps = {s.id: s.stamp for s in run.scenarios}
        self._families = given_families(run.scenarios) if families is None else families
        self.before: PhaseResult | None = next((r for r in run.phases if r.phase.mode == "baseline"), None)
        self.early: PhaseResult | None = next((r for r in run.phases if r.phase.mode == "early"), None)
        """The part of the baseline sweep that was asked before training."""
        self.after: PhaseResult | None = next(
            (r for r in reversed(run.phases) if r.phase.mode == "eval"), None
        )

    @cached_property
    def rows_before(self) -> Mapping[str, Tally]:
        """Tallies of the baseline sweep; empty without one."""
        return tally(self.before.counted, self._stamps, self._families) if self.before is not None else {}

    @cached_property
    def drift(self) -> Comparison | None:
        """What the control changed by since its early part; None where no part was early."""
        if self.early is None or self.before is None:
            return None
        return compare(tally(self.early.groups, self._stamps, self._families), self.rows_before)

    @cached_property
    def rows_after(self) -> Mapping[str, Tally]:
        """Tallies of the final sweep; empty without one."""
        return tally(self.after.groups, self._stamps, self._families) if self.after is not None else {}

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
        first = (replace(group, scores=group.scores[:rollouts]) for group in groups)
        return tally(first, self._stamps, self._families)
