"""What was counted so far, with the positions up to which it was: kept in one row, whole or not at all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.production.sinks.prometheus.families import FAMILIES, MetricFamily

MOST_KNOWN = 20
"""Versions, tasks of one, and jobs that run, of which something is remembered."""
_BUCKETS = {family.name: family.buckets for family in FAMILIES if family.kind == "histogram"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedLabels:
    """A counter with its labels."""

    labels: tuple[str, ...]
    value: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricHistogram:
    """Observations by bucket, the infinite one last; not cumulated."""

    counts: tuple[int, ...]
    total: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricTotals:
    """Counters, histograms and what more the metrics need of what went by."""

    positions: Mapping[str, int] = field(default_factory=dict)
    """Sequence of each stream up to which it was counted."""
    counters: Mapping[str, tuple[CountedLabels, ...]] = field(default_factory=dict)
    histograms: Mapping[str, MetricHistogram] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Benchmark scores by version and task, the newest version last."""
    started: Mapping[str, str] = field(default_factory=dict)
    """When jobs that run began."""
    states: Mapping[str, str] = field(default_factory=dict)
    """State of versions that were deployed, the newest last."""
    newest: float = 0.0
    """When the newest trajectory arrived; 0 before the first."""

    def position(self, stream: str) -> int:
        """Return the sequence up to which a stream was counted."""
        return self.positions.get(stream, 0)

    def at(self, stream: str, position: int) -> MetricTotals:
        """Return these totals, counted up to a position."""
        return replace(self, positions={**self.positions, stream: position})

    def counted(self, family: MetricFamily, found: Iterable[tuple[tuple[str, ...], int]]) -> MetricTotals:
        """Return these totals with more of a counter."""
        known = {one.labels: one.value for one in self.counters.get(family.name, ())}
        for labels, value in found:
            known[labels] = known.get(labels, 0) + value
        rows = tuple(CountedLabels(labels=labels, value=value) for labels, value in known.items())
        return replace(self, counters={**self.counters, family.name: rows})

    def observed(self, family: MetricFamily, found: Iterable[tuple[float, int]]) -> MetricTotals:
        """Return these totals with more observations: values, and how often each was made."""
        known = self.histograms.get(family.name) or MetricHistogram(counts=(0,) * (len(family.buckets) + 1))
        counts, total = list(known.counts), known.total
        for value, times in found:
            counts[bisect_left(family.buckets, value)] += times
            total += value * times
        whole = MetricHistogram(counts=tuple(counts), total=total)
        return replace(self, histograms={**self.histograms, family.name: whole})

    def encode(self) -> Json:
        """Return them as JSON values."""
        return to_wire(self)


def totals_of(kept: Json) -> MetricTotals:
    """Return what was kept; where that cannot be read counting begins again, as after a restart."""
    try:
        found = from_wire(MetricTotals, kept)
    except ValueError:
        return MetricTotals()
    fits = all(len(one.counts) == len(_BUCKETS.get(name, ())) + 1 for name, one in found.histograms.items())
    return found if fits else MetricTotals()


def newest_of(known: Mapping[str, Json], key: str, value: Json) -> dict[str, Json]:
    """Return a mapping with one more entry, without the oldest where these are too many."""
    entries = {name: one for name, one in known.items() if name != key} | {key: value}
    return dict([*entries.items()][-MOST_KNOWN:])
