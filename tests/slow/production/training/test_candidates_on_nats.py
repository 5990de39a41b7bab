"""The tests of a bus of any kind in ``production/training/candidates/test_candidates.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(
    same_tests("production.training.candidates.test_candidates", "place", "bus") | {"place": place}
)
