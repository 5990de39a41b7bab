"""The tests of ``production/deployment/test_deployments.py``, on NATS."""

from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.deployment.test_deployments", "place", "bus") | {"place": place})
