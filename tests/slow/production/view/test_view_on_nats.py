"""The tests of a bus of any kind in ``production/view/test_view.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.view.test_view", "place", "bus") | {"place": place})
