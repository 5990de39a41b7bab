"""The tests of a bus of any kind in ``production/assembly/test_assembler_takeover.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.assembly.test_assembler_takeover", "place", "bus") | {"place": place})
