"""The users of a NATS server, as text; a server with them is in the slow tests."""

from __future__ import annotations

import re

from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.production.trust.nats_users import CONSUMER, SERVICE, USERS


def test_each_password_is_a_variable_and_each_inbox_is_its_own() -> None:
    text = tfgrpo("loop", "nats-config")
    names = ["service", "agent", "rewards", "trainer", "deployer", "reader"]
    assert re.findall(r"user: (\w+), password: (\S+),", text) == [
        (n, f"$LOOP_NATS_{n.upper()}") for n in names
    ]
    assert re.findall(r'subscribe: { allow: \["(.*)"\] }', text) == [f"_INBOX_{name}.>" for name in names]


def test_nobody_removes_from_the_audit_or_reads_a_stream_that_it_may_fill() -> None:
    text = tfgrpo("loop", "nats-config")
    assert f"STREAM.MSG.DELETE.{AUDIT}" not in text
    assert not re.search(r"STREAM\.(DELETE|PURGE|UPDATE)", text)
    by_name = {user.name: user for user in (SERVICE, *USERS)}
    assert not [one for one in by_name["agent"].allowed() if "CONSUMER" in one]
    read = [one.split(".")[4] for one in by_name["rewards"].allowed() if "CONSUMER.CREATE" in one]
    assert read == ["RL_TRAJECTORIES"]


def test_who_reads_training_requests_without_taking_them_leaves_those_of_the_service_alone() -> None:
    denied = {user.name: [one.split("CONSUMER.")[1] for one in user.denied()] for user in (SERVICE, *USERS)}
    kept = [f"{word}.RL_TRAINING.{CONSUMER}" for word in ("MSG.NEXT", "DELETE")]
    readers = {user.name for user in (SERVICE, *USERS) if "RL_TRAINING" in user.reads and not user.requests}
    assert readers
    assert denied == {name: kept if name in readers else [] for name in denied}
