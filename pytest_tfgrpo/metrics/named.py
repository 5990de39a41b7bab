"""Named metrics: their figures by sweep and domain, over the means of scenarios.

A scenario counts with the mean over its rollouts that have a score, as it does for gt_score.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import fsum
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.named_scores import SHARE, MetricScale
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.metrics.values import BUILT_IN, NOBODY, Criteria, derived, source_of
from pytest_tfgrpo.numerics.stats import mean_interval

if TYPE_CHECKING:
    from pytest_tfgrpo.core.report_blocks import MetricFigures, ScoreQuantity

RESAMPLES = 10_000
MANY, FEW = 20_000_000, 2_000_000
"""Values drawn at most for one interval: there are many, of each metric in each domain."""
MOST_METRICS = 100
"""Metrics of each source that a sweep shows: a rubric of its own for each scenario makes thousands."""
MOST_INTERVALS = 1000
KNOWN_INTERVALS: dict[tuple[bytes, int, int], Sequence[float] | None] = {}
"""Intervals by what they are of, by its digest."""


@dataclass(slots=True)
class MetricMeans:
    """What a sweep found of one metric."""

    groups: array[int] = field(default_factory=lambda: array("l"))
    """Places of the scenarios that have a score among those of the sweep."""
    means: array[float] = field(default_factory=lambda: array("d"))
    """The mean of each of them."""
    scale: MetricScale = SHARE

    def add(self, group: int, values: Sequence[float]) -> None:
        """Take what the rollouts of a scenario have of the metric."""
        if values:
            self.groups.append(group)
            self.means.append(sum(values) / len(values))


def metric_names(*sweeps: Sequence[Group], criteria: Criteria = NOBODY) -> list[str]:
    """Return the metrics of some sweeps: built-in ones, those of rewarders by name, then derived ones."""
    found: dict[str, set[str]] = {}
    for groups in sweeps:
        measured = SweepMetrics(groups, criteria=criteria)
        for name, of in measured.means().items():
            own = found.setdefault(name, set())
            if source_of(name):
                own.update(measured.ids[place] for place in of.groups)
    dropped = _dropped({name: len(ids) for name, ids in found.items()})
    return sorted(found.keys() - dropped, key=_place)


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
        self.ids: list[str] = []
        """Ids of the scenarios, in the order in which they came."""
        self._domains: list[str] = []
        self._built_in = {name: MetricMeans() for name in BUILT_IN}
        self._of_rewarders: dict[str, MetricMeans] = {}
        self._of_sources: dict[str, MetricMeans] = {}
        for group in groups:
            self.add(group)

    def add(self, group: Group) -> None:
        """Take one more group."""
        id_, place = group.scenario_id, len(self.ids)
        self.ids.append(id_)
        self._domains.append(group.domain)
        columns = (
            [s.gt_score for s in group.scores],
            [s.reward for s in group.scores],
            [s.relative_rank for s in group.scores],
        )
        for of, column in zip(self._built_in.values(), columns, strict=True):
            of.add(place, [value for value in column if value is not None])
        values: dict[str, list[float]] = {}
        for score in group.scores:
            for name, value in score.extra.items():
                own = values.setdefault(name, [])
                if value is not None:
                    own.append(value)
        _add_means(self._of_rewarders, place, values)
        derived_values = _of_sources(group, self._criteria.get(id_, ()), self._of_sources)
        _add_means(self._of_sources, place, derived_values)

    def means(self) -> dict[str, MetricMeans]:
        """Return the means of the scenarios that have a score, by metric: built-in ones, others by name."""
        others = sorted(self._of_rewarders.items()), sorted(self._of_sources.items())
        return self._built_in | dict(others[0]) | dict(others[1])

    def figures(self, families: Mapping[str, str]) -> tuple[dict[str, MetricFigures], int]:
        """Return the figures of every metric in all and in each domain, and how many metrics were left out.

        Built-in ones come first; metrics and domains without a score are there too, with n 0. `families` are
        those of the scenarios that share one, by id.
        """
        measured = self.means()
        dropped = _dropped({name: len(of.means) for name, of in measured.items()})
        shown = {
            name: self._figures(of, families, MANY if name in BUILT_IN else FEW)
            for name, of in measured.items()
            if name not in dropped
        }
        return shown, len(dropped)

    def _figures(self, of: MetricMeans, families: Mapping[str, str], draws: int) -> MetricFigures:
        parts: dict[str, tuple[array[float], list[str]]] = {
            domain: (array("d"), []) for domain in sorted(set(self._domains))
        }
        names = []
        for group, mean in zip(of.groups, of.means, strict=True):
            id_ = self.ids[group]
            means, own = parts[self._domains[group]]
            means.append(mean)
            if families:  # else each scenario is its own
                names.append(families.get(id_, id_))
                own.append(names[-1])
        whole = score_quantity(of.means, names, draws, of.scale)
        return {
            **whole,
            "unit": of.scale.unit,
            "better": of.scale.better,
            "domains": {
                domain: whole if len(means) == len(of.means) else score_quantity(means, own, FEW, of.scale)
                for domain, (means, own) in parts.items()
            },
        }


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


def _add_means(found: dict[str, MetricMeans], group: int, values: Mapping[str, Sequence[float]]) -> None:
    for name, own in values.items():
        found.setdefault(name, MetricMeans()).add(group, own)


def _dropped(scenarios: Mapping[str, int]) -> set[str]:
    """Return the metrics to leave out: of a source that has too many, all but the ones of most scenarios.

    `scenarios` says by metric how many have a score.
    """
    by_source: dict[str, list[str]] = {}
    for name in scenarios:
        by_source.setdefault(source_of(name), []).append(name)
    dropped: set[str] = set()
    for source, names in by_source.items():
        if source:
            dropped.update(sorted(names, key=lambda name: (-scenarios[name], name))[MOST_METRICS:])
    return dropped


def score_quantity(
    means: array[float], families: Sequence[str], draws: int, scale: MetricScale = SHARE
) -> ScoreQuantity:
    """Return n, sum, mean and 95 % interval over the means of scenarios, which are of `families`, if any.

    The interval is of 10,000 resamples, of fewer where that makes more than `draws` values.
    """
    total, n = fsum(means), len(means)
    shares = means if scale == SHARE else array("d", map(scale.share, means))
    ci95 = _ci95(shares, families, min(RESAMPLES, max(1000, draws // max(n, 1))))
    return {
        "n": n,
        "sum": total if n else None,
        "mean": total / n if n else None,
        "ci95": None if ci95 is None else sorted(map(scale.figure, ci95)),
    }


def _ci95(values: array[float], families: Sequence[str], resamples: int) -> Sequence[float] | None:
    """Return the interval of some values; many come again: in the report, and for reward."""
    seen = blake2b(values.tobytes())
    seen.update("\0".join(families).encode("utf-8", "surrogatepass"))
    key = seen.digest(), len(families), resamples
    if key not in KNOWN_INTERVALS:
        if len(KNOWN_INTERVALS) >= MOST_INTERVALS:
            KNOWN_INTERVALS.clear()
        found = mean_interval(values.tolist(), families, resamples=resamples).ci95
        KNOWN_INTERVALS[key] = found
        return found
    return KNOWN_INTERVALS[key]
