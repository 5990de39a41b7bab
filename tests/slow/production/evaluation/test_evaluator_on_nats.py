"""The tests of a bus of any kind in ``production/evaluation/test_evaluator.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.evaluation.test_evaluator", "place", "bus") | {"place": place})
