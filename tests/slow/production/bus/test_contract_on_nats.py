"""The tests of a bus of any kind in ``bus/test_contract.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.bus.test_contract", "place", "bus") | {"place": place})
