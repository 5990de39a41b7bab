"""Named metrics: their figures by sweep and domain, over the means of scenarios.

A scenario counts with the mean over its rollouts that have a score, as it does for gt_score.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.named_scores import SHARE, MetricScale
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.harness.metrics.values import BUILT_IN, NOBODY, Criteria, derived, source_of
from pytest_tfgrpo.numerics.stats import mean_interval

if TYPE_CHECKING:
    from pytest_tfgrpo.core.report_blocks import MetricFigures, ScoreQuantity

RESAMPLES = 10_000
MANY, FEW = 20_000_000, 2_000_000
"""Values drawn at most for one interval: there are many, of each metric in each domain."""
MOST_METRICS = 100
"""Metrics of each source that a sweep shows: a rubric of its own for each scenario makes thousands."""


@dataclass(slots=True)
class MetricMeans:
    """What a sweep found of one metric."""

    means: dict[str, float] = field(default_factory=dict)
    """Mean of each scenario that has a score, by id."""
    scale: MetricScale = SHARE


def metric_names(*sweeps: Sequence[Group], criteria: Criteria = NOBODY) -> list[str]:
    """Return the metrics of some sweeps: built-in ones, those of rewarders by name, then derived ones."""
    found: dict[str, MetricMeans] = {}
    for groups in sweeps:
        for name, of in SweepMetrics(groups, criteria=criteria).means().items():
            found.setdefault(name, MetricMeans()).means.update(of.means)
    return sorted(_foremost(found)[0], key=_place)


def _place(name: str) -> tuple[int, str]:
    """Return what metrics are sorted by: built-in ones, those of rewarders, derived ones."""
    built_in = BUILT_IN.index(name) if name in BUILT_IN else len(BUILT_IN)
    return built_in + bool(source_of(name)), name


class SweepMetrics:
    """The metrics of a sweep, from its groups one by one.

    A figure on another scale than the first one of its metric does not count.
    """

    def __init__(self, groups: Iterable[Group] = (), *, criteria: Criteria = NOBODY) -> None:
        """Take some groups; `criteria` are those that a judge looks at."""
        self._criteria = criteria
        self._domain_of: dict[str, str] = {}
        self._built_in = {name: MetricMeans() for name in BUILT_IN}
        self._of_rewarders: dict[str, MetricMeans] = {}
        self._of_sources: dict[str, MetricMeans] = {}
        for group in groups:
            self.add(group)

    def add(self, group: Group) -> None:
        """Take one more group."""
        id = group.scenario_id
        self._domain_of[id] = group.domain
        columns = (
            [s.gt_score for s in group.scores],
            [s.reward for s in group.scores],
            [s.relative_rank for s in group.scores],
        )
        for of, column in zip(self._built_in.values(), columns, strict=True):
            if known := [value for value in column if value is not None]:
                of.means[id] = sum(known) / len(known)
        values: dict[str, list[float]] = {}
        for score in group.scores:
            for name, value in score.extra.items():
                own = values.setdefault(name, [])
                if value is not None:
                    own.append(value)
        _add_means(self._of_rewarders, id, values)
        derived_values = _of_sources(group, self._criteria.get(id, ()), self._of_sources)
        _add_means(self._of_sources, id, derived_values)

    def means(self) -> dict[str, MetricMeans]:
        """Return the means of the scenarios that have a score, by metric: built-in ones, others by name."""
        others = sorted(self._of_rewarders.items()), sorted(self._of_sources.items())
        return self._built_in | dict(others[0]) | dict(others[1])

    def figures(self, families: Mapping[str, str]) -> tuple[dict[str, MetricFigures], int]:
        """Return the figures of every metric in all and in each domain, and how many metrics were left out.

        Built-in ones come first; metrics and domains without a score are there too, with n 0. `families` are
        those of the scenarios that share one, by id.
        """
        domains = sorted(set(self._domain_of.values()))
        found: dict[str, MetricFigures] = {}
        measured, left_out = _foremost(self.means())
        for name, of in measured.items():
            means, scale = of.means, of.scale
            parts: dict[str, dict[str, float]] = {domain: {} for domain in domains}
            for id, mean in means.items():
                parts[self._domain_of[id]][id] = mean
            whole = score_quantity(means, families, MANY if name in BUILT_IN else FEW, scale)
            found[name] = {
                **whole,
                "unit": scale.unit,
                "better": scale.better,
                "domains": {
                    domain: whole if len(part) == len(means) else score_quantity(part, families, FEW, scale)
                    for domain, part in parts.items()
                },
            }
        return found, left_out


def _of_sources(
    group: Group, criteria: Sequence[str], known: dict[str, MetricMeans]
) -> dict[str, list[float]]:
    """Return the derived figures of a group's rollouts by metric; `known` remembers the scale of each."""
    values: dict[str, list[float]] = {}
    for rollout in group.rollouts:
        for name, (value, scale) in derived(rollout, criteria).items():
            if name not in known:
                known[name] = MetricMeans(scale=scale)
            if scale is known[name].scale or scale == known[name].scale:
                values.setdefault(name, []).append(value)
    return values


def _add_means(found: dict[str, MetricMeans], id: str, values: Mapping[str, Sequence[float]]) -> None:
    for name, own in values.items():
        of = found.setdefault(name, MetricMeans())
        if own:
            of.means[id] = sum(own) / len(own)


def _foremost(found: Mapping[str, MetricMeans]) -> tuple[dict[str, MetricMeans], int]:
    """Return the metrics without those of sources that have too many, and how many those are.

    The ones of most scenarios stay.
    """
    by_source: dict[str, list[str]] = {}
    for name in found:
        by_source.setdefault(source_of(name), []).append(name)
    dropped: set[str] = set()
    for source, names in by_source.items():
        if source and len(names) > MOST_METRICS:
            dropped.update(sorted(names, key=lambda name: (-len(found[name].means), name))[MOST_METRICS:])
    return {name: of for name, of in found.items() if name not in dropped}, len(dropped)


def score_quantity(
    means: Mapping[str, float], families: Mapping[str, str], draws: int, scale: MetricScale = SHARE
) -> ScoreQuantity:
    """Return n, sum, mean and 95 % interval over the means of scenarios, by id.

    The interval is of 10,000 resamples, of fewer where that makes more than `draws` values.
    """
    values, n = array("d", means.values()), len(means)
    total, resamples = fsum(values), min(RESAMPLES, max(1000, draws // max(n, 1)))
    shares = values if scale == SHARE else array("d", map(scale.share, values))
    ci95 = _ci95(shares.tobytes(), tuple(families.get(id, id) for id in means), resamples)
    return {
        "n": n,
        "sum": total if n else None,
        "mean": total / n if n else None,
        "ci95": None if ci95 is None else sorted(map(scale.figure, ci95)),
    }


@lru_cache(maxsize=64)
def _ci95(values: bytes, families: tuple[str, ...], resamples: int) -> tuple[float, ...] | None:
    """Return the interval of some values; many come again: with each phase, and for reward."""
    ci95 = mean_interval(array("d", values).tolist(), families, resamples=resamples).ci95
    return None if ci95 is None else tuple(ci95)
