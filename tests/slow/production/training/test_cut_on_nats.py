"""The tests of a bus of any kind in ``production/training/dataset/test_cut.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.training.dataset.test_cut", "place", "bus") | {"place": place})
