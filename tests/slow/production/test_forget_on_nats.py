"""The tests of a bus of any kind in ``production/test_forget.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.test_forget", "place", "bus") | {"place": place})
