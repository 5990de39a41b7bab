"""What a scrape answers, in Prometheus' text format.

The one file that imports ``prometheus_client``, inside a factory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.service.answers import HttpAnswer, json_answer
from pytest_tfgrpo.production.sinks.prometheus.metrics import EVERY_S, MetricSamples
from pytest_tfgrpo.production.sinks.prometheus.totals import MetricHistogram

if TYPE_CHECKING:
    from prometheus_client import Metric

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STALE_S = 20 * EVERY_S
"""Age from which on figures are not answered: a Prometheus that sees an error knows more."""
ReadSamples: TypeAlias = Callable[[], tuple[MetricSamples, float] | None]
"""Returns values and their age in seconds; None before there are any."""


def metrics_page(read: ReadSamples) -> Callable[[], HttpAnswer]:
    """Return what answers a scrape; raises SettingError where the extra ``serve`` is incomplete."""
    try:
        from prometheus_client import Metric, generate_latest
    except ImportError as error:
        raise SettingError(
            "the service needs prometheus-client; install it with: pip install 'pytest-tfgrpo[serve]'"
        ) from error

    class Values:
        """Hands samples to the library."""

        def __init__(self, samples: MetricSamples) -> None:
            self._samples = samples

        def collect(self) -> Iterator[Metric]:
            for family, samples in self._samples.items():
                metric = Metric(family.name.removesuffix("_total"), family.about, family.kind)
                for labels, value in samples:
                    named = dict(zip(family.labels, labels, strict=True))
                    if not isinstance(value, MetricHistogram):
                        metric.add_sample(family.name, named, value)
                        continue
                    bounds = [*(f"{float(bound)}" for bound in family.buckets), "+Inf"]
                    for bound, count in zip(bounds, accumulate(value.counts), strict=True):
                        metric.add_sample(f"{family.name}_bucket", {"le": bound}, count)
                    metric.add_sample(f"{family.name}_count", {}, sum(value.counts))
                    metric.add_sample(f"{family.name}_sum", {}, value.total)
                yield metric

    def page() -> HttpAnswer:
        known = read()
        if known is None or known[1] > STALE_S:
            age = "are not counted yet" if known is None else f"are {known[1]:.0f} s old"
            return json_answer(503, {"error": f"the metrics {age}; see the errors of the service"})
        return HttpAnswer(200, generate_latest(Values(known[0])), TEXT_TYPE)

    return page
