"""The role that counts what is on file, and keeps what a scrape answers.

The totals stand in the row of its lease, together with the positions up to which they were counted: a restart
loses nothing and counts nothing twice, and they stay when retention takes the events. Whoever has the lease
counts; every service answers with the same totals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.report.model_figures import ModelFigures, model_figures
from pytest_tfgrpo.production.sinks.alerts.alert_state import AlertState, alert_state
from pytest_tfgrpo.production.sinks.prometheus.counting import count_missed, count_on, label
from pytest_tfgrpo.production.sinks.prometheus.families import (
    ALERT_CALLS,
    BENCHMARK_SCORE,
    CLOSED,
    ERROR_RATE,
    FAMILIES,
    HELD,
    LAST_TRAJECTORY,
    REWARD_MEAN,
    TRAFFIC,
    MetricFamily,
)
from pytest_tfgrpo.production.sinks.prometheus.totals import MetricHistogram, MetricTotals, totals_of
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import TTL_S, Lease, lease_state

LEASE = "metrics"
EVERY_S = 15.0
"""Between two looks; the usual time between two scrapes."""


class MetricSample(NamedTuple):
    """A value of a metric, or a histogram."""

    labels: tuple[str, ...]
    value: float | MetricHistogram


MetricSamples = Mapping[MetricFamily, Sequence[MetricSample]]
"""By metric, in the order of the table."""


class LoopMetrics:
    """A role of the loop, for one thread; any may read `samples`."""

    def __init__(
        self,
        bus: Bus,
        view: LoopView,
        owner: str,
        *,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` names this process alone."""
        self._bus, self._view, self._clock = bus, view, clock
        self._rows, self._deployments = bus.table(STATE), Deployments(bus)
        self._lease = Lease(bus, LEASE, owner, ttl_s=ttl_s, clock=clock)
        self._totals: MetricTotals | None = None
        """What this process counted; None where it does not count."""
        self._look_at = float("-inf")
        self._known: tuple[MetricSamples, float] | None = None

    def step(self) -> int:
        """Count what is new, once in a while; return how many pages that were. Raises BusError."""
        held = self._lease.hold()
        if not held:
            self._totals = None
        if self._clock() < self._look_at:
            return 0
        self._view.catch_up(self._bus)
        pages = self._count() if held else 0
        totals = self._totals or totals_of(lease_state(self._rows, LEASE))
        self._known = (self._samples(totals), self._clock())
        self._look_at = self._clock() + EVERY_S
        return pages

    def close(self) -> None:
        """Let another service count at once."""
        self._lease.release()

    def samples(self) -> tuple[MetricSamples, float] | None:
        """Return the values of the newest look, and their age in seconds; None before the first one."""
        known = self._known
        return None if known is None else (known[0], self._clock() - known[1])

    def _count(self) -> int:
        if self._totals is None:
            self._totals = count_missed(self._bus, totals_of(self._lease.state))
        pages = 0
        for totals in count_on(self._bus, self._view, self._totals):
            if self._lease.publish([], totals.encode()) is None:
                self._totals = None  # another process has counted it
                break
            self._totals, pages = totals, pages + 1
        return pages

    def _samples(self, totals: MetricTotals) -> MetricSamples:
        try:
            serving: Serving | None = self._deployments.serving()
        except StoreError:
            serving = None  # the deployment reports it
        figures = model_figures(self._view, serving or Serving())
        made = [*_counted(totals, alert_state(self._rows)), *_models(figures, totals), *_served(serving)]
        if totals.newest:
            made.append((LAST_TRAJECTORY, MetricSample((), totals.newest)))
        return {family: [sample for of, sample in made if of is family] for family in FAMILIES}


def _counted(totals: MetricTotals, alerts: AlertState) -> Iterator[tuple[MetricFamily, MetricSample]]:
    """Yield the counters and histograms; those whose labels are known beforehand are there from the start."""
    for family in FAMILIES:
        if family.kind == "histogram":
            empty = MetricHistogram(counts=(0,) * (len(family.buckets) + 1))
            yield family, MetricSample((), totals.histograms.get(family.name, empty))
        elif family.kind == "counter":
            values = {one.labels: one.value for one in totals.counters.get(family.name, ())}
            if family is ALERT_CALLS:
                values = {("ok",): alerts.ok, ("failed",): alerts.failed}
            start = [()] if not family.labels else [(value,) for value in CLOSED.get(family.name, ())]
            for labels in sorted({*start, *values}):
                yield family, MetricSample(labels, float(values.get(labels, 0)))


def _models(
    figures: Sequence[ModelFigures], totals: MetricTotals
) -> Iterator[tuple[MetricFamily, MetricSample]]:
    for one in {label(one.version): one for one in reversed(figures)}.values():
        version = label(one.version)
        for family, value in ((REWARD_MEAN, one.reward_mean), (ERROR_RATE, one.error_rate)):
            if value is not None:
                yield family, MetricSample((version,), value)
        for task, score in totals.scores.get(version, {}).items():
            yield BENCHMARK_SCORE, MetricSample((version, task), score)


def _served(serving: Serving | None) -> Iterator[tuple[MetricFamily, MetricSample]]:
    if serving is None:
        return
    ramp = serving.ramp
    share = 0.0 if ramp is None else ramp.share
    yield TRAFFIC, MetricSample((serving.live,), 100.0 * (1.0 - share))
    if ramp is not None:
        yield TRAFFIC, MetricSample((ramp.version,), 100.0 * share)
    yield HELD, MetricSample((), float("held" in serving.states.values()))
