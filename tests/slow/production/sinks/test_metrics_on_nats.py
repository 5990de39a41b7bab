"""The tests of ``production/sinks/prometheus/test_metrics.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.sinks.prometheus.test_metrics", "place", "bus") | {"place": place})
