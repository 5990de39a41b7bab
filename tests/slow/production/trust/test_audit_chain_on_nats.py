"""The tests of the chain in ``trust/test_audit_chain.py``, on NATS."""

from support.bus_places import bus
from support.bus_places import on_nats as place
from support.twins import same_tests

globals().update(same_tests("production.trust.test_audit_chain", "bus") | {"place": place, "bus": bus})
