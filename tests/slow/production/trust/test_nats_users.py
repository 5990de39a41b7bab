"""A server with the users of ``tfgrpo loop nats-config``: each does what is its own, and nothing else."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.buses import event
from support.loop_events import publish, trajectory
from support.nats_server import NatsServer
from support.tools import tfgrpo

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.nats import link as nats_link
from pytest_tfgrpo.production.bus.nats.bus import NatsBus, open_nats
from pytest_tfgrpo.production.bus.nats.link import NatsLink
from pytest_tfgrpo.production.bus.streams import AUDIT, STREAMS
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request_intake import CONSUMER
from pytest_tfgrpo.production.training.triggers.training_triggers import new_request
from pytest_tfgrpo.production.trust.audit_chain import verify_audit
from pytest_tfgrpo.production.trust.audit_records import note
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE

NAMES = ("service", "agent", "rewards", "trainer", "deployer", "reader")
AT = DeployDecision(at="2026-01-01T00:00:00Z", by="ada", reason="x")
GOOD = DeployCandidate(version="v2", benchmark_passed=True, safety_checks_passed=True)
Open = Callable[[str], NatsBus]

EVENTS = {
    "agent.rl.spans.v1": {"service"},
    "agent.rl.trajectory.v1": {"service", "agent"},
    "agent.rl.feedback.v1": {"service", "agent", "rewards"},
    "agent.rl.reward.v1": {"service", "rewards"},
    "agent.rl.training.request.v1": {"service", "trainer"},
    "agent.rl.training.status.v1": {"service", "trainer"},
    "agent.rl.model.deployed.v1": {"service", "deployer"},
    "agent.rl.dead.v1": {"service", "trainer"},
    "agent.rl.audit.v1": {"service", "trainer", "deployer", "reader"},
}
READS = {
    "RL_SPANS": {"service", "reader"},
    "RL_TRAJECTORIES": {"service", "rewards", "trainer", "reader"},
    "RL_FEEDBACK": {"service", "trainer", "reader"},
    "RL_REWARDS": {"service", "trainer", "reader"},
    "RL_TRAINING": {"service", "trainer", "reader"},
    "RL_DEPLOYMENTS": {"service", "trainer", "deployer", "reader"},
    "RL_DEAD": {"service", "reader"},
    "RL_AUDIT": {"service", "trainer", "deployer", "reader"},
    "KV_tfgrpo_state": {"service", "trainer", "deployer", "reader"},
    "KV_tfgrpo_training": {"service", "trainer", "deployer", "reader"},
}
ROWS = {
    "$KV.tfgrpo_state.serving": {"service", "deployer"},
    "$KV.tfgrpo_state.policy.v2": {"service", "deployer"},
    "$KV.tfgrpo_state.optout.user.u-1": {"service"},
    "$KV.tfgrpo_state.lease.evaluator": {"service"},
    "$KV.tfgrpo_state.training.1": {"service", "trainer"},
    "$KV.tfgrpo_training.job.1": {"service", "trainer"},
    "$KV.another.row": set[str](),
    "$JS.API.STREAM.MSG.DELETE.KV_tfgrpo_state": {"service", "trainer", "deployer"},
    "$JS.API.STREAM.MSG.DELETE.KV_tfgrpo_training": {"service", "trainer"},
}
QUEUE = {
    f"$JS.API.CONSUMER.{word}.RL_TRAINING.{CONSUMER}": {"service", "trainer"}
    for word in ("DURABLE.CREATE", "INFO", "MSG.NEXT", "DELETE")
} | {f"$JS.ACK.RL_TRAINING.{CONSUMER}.1.1.1.1.1": {"service", "trainer"}}
NOBODY = [
    "other.subject",
    "_INBOX_reader.x",
    "$SYS.REQ.SERVER.PING",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.MSG.DELETE.RL_AUDIT",
    *(
        f"$JS.API.STREAM.{word}.{name}"
        for word in ("DELETE", "PURGE", "UPDATE", "SNAPSHOT")
        for name in (AUDIT, "RL_TRAJECTORIES", "KV_tfgrpo_state")
    ),
]
PUBLISHERS = (
    EVENTS
    | {f"$JS.API.CONSUMER.CREATE.{stream}": who for stream, who in READS.items()}
    | {f"$JS.API.CONSUMER.MSG.NEXT.{stream}.x": who for stream, who in READS.items()}
    | {f"$JS.API.STREAM.MSG.DELETE.{spec.name}": {"service"} for spec in STREAMS if spec.name != AUDIT}
    | {f"$JS.API.STREAM.CREATE.{spec.name}": {"service"} for spec in STREAMS}
    | ROWS
    | QUEUE
    | {subject: set[str]() for subject in NOBODY}
)
"""Who may publish what; a subject that somebody may not is refused to all others."""


def options_of(name: str, passwords: dict[str, str]) -> dict[str, object]:
    """Return what a user needs in ``[bus] options``."""
    return {"user": name, "password": passwords[name], "inbox_prefix": f"_INBOX_{name}"}


@pytest.fixture(scope="module")
def passwords() -> dict[str, str]:
    return {name: f"12{secrets.token_hex(12)}" for name in NAMES}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, passwords: dict[str, str]) -> Iterator[NatsServer]:
    folder = tmp_path_factory.mktemp("nats")
    (folder / "users.conf").write_text(tfgrpo("loop", "nats-config"))
    with pytest.MonkeyPatch.context() as patch:
        for name, password in passwords.items():
            patch.setenv(f"LOOP_NATS_{name.upper()}", f"'{password}'")
        server = NatsServer(folder, "-c", str(folder / "users.conf"))
        server.start()
    yield server
    server.close()


@pytest.fixture
def opened(server: NatsServer, passwords: dict[str, str]) -> Iterator[Open]:
    """Return a function that opens the bus as a user; the service has made the streams."""
    with ExitStack() as closing:

        def open_as(name: str) -> NatsBus:
            bus = open_nats(server.url, options=options_of(name, passwords), patience_s=100)
            closing.callback(bus.close)
            return bus

        service = open_as("service")
        for table in (STATE, "training"):
            service.table(table)
        yield open_as


def test_the_service_does_all_but_change_the_audit(opened: Open) -> None:
    bus = opened("service")
    for subject in EVENTS:
        bus.publish([event(hash(subject), b'{"action": "a", "what": "b"}', subject)])
    for spec in STREAMS:
        assert list(bus.replay(spec.name))
    assert bus.delete("RL_TRAJECTORIES", [event(hash("agent.rl.trajectory.v1")).id]) == 1
    table = bus.table(STATE)
    assert table.put("optout.user.u-1", b"{}", 0)
    table.remove("optout.user.u-1", table.get("optout.user.u-1")[1])
    assert table.list("optout.") == {}


def test_an_agent_publishes_runs_and_follows_what_is_served(opened: Open) -> None:
    bus = opened("agent")
    assert bus.publish([event(1), event(2, subject="agent.rl.feedback.v1")])
    assert Deployments(bus).serving().live


def test_what_judges_reads_runs_and_publishes_rewards(opened: Open) -> None:
    opened("agent").publish([event(1)])
    bus = opened("rewards")
    assert list(bus.replay("RL_TRAJECTORIES"))
    assert bus.publish([event(3, subject="agent.rl.reward.v1")])


def test_a_trainer_takes_requests_and_says_how_jobs_go(opened: Open) -> None:
    bus = opened("trainer")
    request = new_request("manual", "normal", base_model="m", sample_size=None, job_id=event(7).id)
    jobs = TrainingJobs(bus, "me")
    assert jobs.submit(request) == ""
    assert [job.id for job in jobs.listed()] == [request.id]
    queue = bus.consumer("RL_TRAINING", CONSUMER)
    found = queue.fetch(10, 10.0)
    queue.ack(found[:1])
    queue.bury(found[1:], "schema", "x")
    assert found
    assert queue.lag() == 0
    note(bus, "export", "evidence", actor="ada")
    assert verify_audit(bus).broken is None


def test_a_deployer_moves_versions(opened: Open) -> None:
    bus = opened("deployer")
    bus.table(STATE).put("policy.v2", b"{}", bus.table(STATE).get("policy.v2")[1])
    deployments = Deployments(bus)
    assert deployments.start(GOOD, DeployCandidate(version="v1"), AT).ramp is not None
    deployments.roll_back("v2", AT)
    assert [*bus.replay("RL_DEPLOYMENTS")]
    assert verify_audit(bus).count >= 2


def test_a_reader_reads_all_and_leaves_a_record(opened: Open, tmp_path: Path) -> None:
    for name in ("service", "reader"):
        bus = opened(name)
        if name == "service":
            publish(bus, [trajectory("a")])
        with closing(LoopView(tmp_path / f"{name}.db")) as view:
            view.catch_up(bus)
            assert queries.stored(view)["RL_TRAJECTORIES"] >= 1
    for spec in STREAMS:
        assert isinstance(list(bus.replay(spec.name)), list)
    note(bus, "read", "trajectory", actor="ada", ref="x")
    assert verify_audit(bus).broken is None


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_its_own_is_refused_to_a_user(
    opened: Open, server: NatsServer, passwords: dict[str, str], name: str
) -> None:
    service = opened("service")
    before = {spec.name: service.last(spec.name) for spec in STREAMS}
    refused = [subject for subject, who in PUBLISHERS.items() if name not in who]
    inboxes = [f"_INBOX_{other}.>" for other in NAMES if other != name]
    hears = ["_INBOX.>", ">", "agent.rl.>", "agent.rl.trajectory.v1", "$KV.>", "$JS.ADVISORY.>", *inboxes]

    said: list[str] = []

    async def note_error(error: Exception) -> None:
        said.append(str(error).lower())

    async def try_all(link: NatsLink) -> None:
        for subject in refused:
            await link.client.publish(subject, b"{}")
        for subject in hears:
            await link.client.subscribe(subject)
        await link.client.flush()
        await asyncio.sleep(0.2)

    link = NatsLink(server.url, {**options_of(name, passwords), "error_cb": note_error}, 10)
    link.run(try_all(link))
    link.close()
    wanted = [f'publish to "{one}"'.lower() for one in refused] + [
        f'subscription to "{one}"'.lower() for one in hears
    ]
    assert [one for one in wanted if not any(one in text for text in said)] == []
    assert {spec.name: service.last(spec.name) for spec in STREAMS} == before


def test_who_may_read_can_have_the_server_copy_what_it_reads(
    opened: Open, server: NatsServer, passwords: dict[str, str]
) -> None:
    """JetStream does not check where a consumer delivers; ``docs/loop-trust.md`` says so."""
    service, wish = opened("service"), {"deliver_policy": "all", "ack_policy": "none"}
    service.publish([event(20)])
    body = {"stream_name": "RL_TRAJECTORIES", "config": {**wish, "deliver_subject": "agent.rl.reward.v1"}}
    before = service.last("RL_REWARDS")
    link = NatsLink(server.url, options_of("reader", passwords), 10)
    link.run(link.api("CONSUMER.CREATE.RL_TRAJECTORIES", body))
    link.close()
    until = time.monotonic() + 30
    while service.last("RL_REWARDS") == before and time.monotonic() < until:
        time.sleep(0.05)
    assert service.last("RL_REWARDS") > before


def test_a_wrong_password_or_none_is_no_user(
    server: NatsServer, passwords: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_link, "_CONNECT_S", 1.5)
    for options in ({}, {"user": "reader", "password": passwords["agent"]}, {"user": "eve", "password": "x"}):
        with pytest.raises(BusError, match=r"(?i)authorization"):
            open_nats(server.url, options=options, patience_s=1)


def test_the_server_does_not_start_without_a_password(tmp_path: Path) -> None:
    config = tmp_path / "users.conf"
    config.write_text(tfgrpo("loop", "nats-config"))
    with pytest.raises(AssertionError):
        NatsServer(tmp_path, "-c", str(config)).start()
