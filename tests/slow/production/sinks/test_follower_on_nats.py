"""The tests of ``production/sinks/test_follower.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.sinks.test_follower", "place", "bus") | {"place": place})
