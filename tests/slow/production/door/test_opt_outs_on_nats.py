"""The tests of a bus of any kind in ``production/door/test_opt_outs.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.door.test_opt_outs", "place", "bus") | {"place": place})
