"""The tests of ``production/sinks/alerts/test_alert_caller.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.sinks.alerts.test_alert_caller", "place", "bus") | {"place": place})
