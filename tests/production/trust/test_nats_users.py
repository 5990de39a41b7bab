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


def test_each_part_publishes_and_writes_what_it_says_of_itself() -> None:
    known = {user.name: (user.publishes, dict(user.writes)) for user in USERS}
    audit, dead = "agent.rl.audit.v1", "agent.rl.dead.v1"
    assert known == {
        "agent": (("agent.rl.trajectory.v1", "agent.rl.feedback.v1"), {}),
        "rewards": (("agent.rl.reward.v1", "agent.rl.feedback.v1"), {}),
        "trainer": (("agent.rl.training.>", dead, audit), {"state": ("training.>",), "training": (">",)}),
        "deployer": (("agent.rl.model.deployed.v1", audit), {"state": ("serving", "policy.>")}),
        "reader": ((audit,), {}),
    }


def test_who_writes_to_the_audit_reads_it_and_who_takes_requests_has_their_queue() -> None:
    by_name = {user.name: user.allowed() for user in (SERVICE, *USERS)}
    for name, allowed in by_name.items():
        writes = "agent.rl.audit.v1" in allowed or name == "service"
        assert (f"$JS.API.CONSUMER.CREATE.{AUDIT}" in allowed) is writes
    queue = f"RL_TRAINING.{CONSUMER}"
    taken = [f"$JS.API.CONSUMER.{word}.{queue}" for word in ("DURABLE.CREATE", "INFO")] + [
        f"$JS.ACK.{queue}.>"
    ]
    for name, allowed in by_name.items():
        assert [one in allowed for one in taken] == [name in ("service", "trainer")] * 3
    for stream in ("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS", "RL_DEPLOYMENTS"):
        assert f"$JS.API.CONSUMER.CREATE.{stream}" in by_name["trainer"]
    for name, buckets in (("deployer", ["state"]), ("trainer", ["state", "training"]), ("reader", [])):
        found = [one.split("KV_tfgrpo_")[1] for one in by_name[name] if "MSG.DELETE" in one]
        assert found == buckets


def test_only_the_service_makes_streams_and_buckets_and_removes_events() -> None:
    service, *others = tfgrpo("loop", "nats-config").split("user: ")[1:]
    for bucket in ("state", "training"):
        assert f"STREAM.CREATE.KV_tfgrpo_{bucket}" in service
    assert "STREAM.CREATE.RL_TRAJECTORIES" in service
    assert "STREAM.MSG.DELETE.RL_TRAJECTORIES" in service
    assert not [one for one in others if "STREAM.CREATE" in one or "MSG.DELETE.RL_" in one]
