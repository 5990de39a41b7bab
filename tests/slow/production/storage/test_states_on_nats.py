"""The tests of a bus of any kind in ``production/storage/test_states.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.storage.test_states", "place", "bus") | {"place": place})
