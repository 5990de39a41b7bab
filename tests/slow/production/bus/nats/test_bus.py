"""What holds for the bus on NATS beyond the contract: its streams, its server's ends, its credentials."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.buses import REWARD, REWARDS, STREAM, NatsPlace, drain, event, events, texts
from support.nats_server import NatsServer

from pytest_tfgrpo.core.errors import BusError, RevisionConflict
from pytest_tfgrpo.production.bus.nats import link as nats_link
from pytest_tfgrpo.production.bus.nats import scan as nats_scan
from pytest_tfgrpo.production.bus.nats import table as nats_table
from pytest_tfgrpo.production.bus.nats.bus import open_nats
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsMessage
from pytest_tfgrpo.production.bus.nats.streams import differing, stream_config
from pytest_tfgrpo.production.bus.streams import DEAD, STREAMS
from pytest_tfgrpo.storage.event_store import TablePut

Start = Callable[..., NatsServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a server of the test's own."""
    with contextlib.ExitStack() as running:

        def run(*options: str) -> NatsServer:
            server = NatsServer(tmp_path, *options)
            server.start()
            running.callback(server.close)
            return server

        yield run


def by_hand(server: NatsServer, subject: str, body: dict[str, object]) -> dict[str, object]:
    """Ask JetStream's API something, as an operator does."""
    link = NatsLink(server.url, {}, 10)
    try:
        return link.run(link.api(subject, body))
    finally:
        link.close()


# streams


def test_the_streams_are_those_of_the_table() -> None:
    configs = {config["name"]: config for config in map(stream_config, STREAMS)}
    day = 86400 * 10**9
    assert [(name, c["subjects"], c["max_age"] // day, c["max_msgs"]) for name, c in configs.items()] == [
        ("RL_SPANS", ["agent.rl.spans.v1"], 1, 1_000_000),
        ("RL_TRAJECTORIES", ["agent.rl.trajectory.v1"], 30, 1_000_000),
        ("RL_FEEDBACK", ["agent.rl.feedback.v1"], 30, 1_000_000),
        ("RL_REWARDS", ["agent.rl.reward.v1"], 30, 1_000_000),
        ("RL_TRAINING", ["agent.rl.training.>"], 7, 10_000),
        ("RL_DEPLOYMENTS", ["agent.rl.model.deployed.v1"], 90, -1),
        ("RL_DEAD", ["agent.rl.dead.v1"], 30, 100_000),
        ("RL_AUDIT", ["agent.rl.audit.v1"], 365, -1),
    ]


def test_a_difference_is_said_in_words_that_an_operator_knows() -> None:
    wanted = stream_config(STREAMS[1])
    found = {**wanted, "max_age": 86400 * 10**9, "max_msgs": 5, "num_replicas": 3, "sources": [{"name": "X"}]}
    assert differing(wanted, found) == [
        "RL_TRAJECTORIES has max_age 86400 s, not 2592000 s",
        "RL_TRAJECTORIES has max_msgs 5, not 1000000",
        "RL_TRAJECTORIES copies another stream",
    ]
    assert differing(wanted, {**wanted, "num_replicas": 3, "description": "ours"}) == []


def test_a_stream_that_differs_is_an_error_and_stays_as_it_is(on_nats: NatsPlace) -> None:
    own = {"name": STREAM, "subjects": ["agent.rl.trajectory.v1", "mine"], "storage": "memory", "max_msgs": 7}
    by_hand(on_nats.server, f"STREAM.CREATE.{STREAM}", own)
    with pytest.raises(BusError) as raised:
        on_nats.open()
    message = str(raised.value)
    assert "RL_TRAJECTORIES has storage 'memory', not 'file'" in message
    assert "RL_TRAJECTORIES has max_msgs 7, not 1000000" in message
    assert "has subjects ['agent.rl.trajectory.v1', 'mine'], not ['agent.rl.trajectory.v1']" in message
    assert "duplicate_window 120 s, not 3600 s" in message
    assert message.endswith("change or remove them yourself")
    names = by_hand(on_nats.server, "STREAM.NAMES", {})["streams"]
    assert names == [STREAM]


def test_a_bucket_that_differs_is_an_error(on_nats: NatsPlace) -> None:
    bucket = {"name": "KV_tfgrpo_state", "subjects": ["$KV.tfgrpo_state.>"], "deny_delete": True}
    by_hand(on_nats.server, "STREAM.CREATE.KV_tfgrpo_state", bucket)
    with pytest.raises(BusError, match="KV_tfgrpo_state has deny_delete True, not False"):
        on_nats.open().table("state")


def test_events_of_other_programs_are_read_with_an_id_from_their_place(on_nats: NatsPlace) -> None:
    bus = on_nats.open()
    link = NatsLink(on_nats.server.url, {}, 10)
    bare = NatsMessage(subject=REWARD, data=b'{"reward_id": "test-123"}')
    strange = NatsMessage(subject=REWARD, data=b"", headers={"Nats-Msg-Id": "no uuid", "Other": "1"})
    link.run(link.store([bare, strange]))
    link.close()
    first, second = list(bus.replay(REWARDS)), list(bus.replay(REWARDS))
    assert texts(first) == ['{"reward_id": "test-123"}', ""]
    assert [e.id for e in first] == [e.id for e in second]
    assert all(uuid.UUID(e.id) for e in first)
    assert first[0].time.startswith("20")
    assert bus.delete(REWARDS, [first[0].id]) == 1


# the server's ends


@pytest.mark.faults
def test_a_server_that_is_killed_again_and_again_loses_and_doubles_nothing(start: Start) -> None:
    server = start()
    bus = open_nats(server.url, patience_s=100)
    consumer = bus.consumer(STREAM, "one")
    watch = bus.table("state").watch()
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.15):
            server.kill()
            server.start()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        revision, sent = 0, 0
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            bus.publish(events(50, start=sent))
            sent += 50
            revision = bus.table("state").put("sent", b"%d" % sent, revision)
    finally:
        stop.set()
        killer.join()
    wanted = [event(n).id for n in range(sent)]
    stored = [e.id for e in bus.replay(STREAM)]
    assert len(stored) == len(set(stored))
    assert sorted(stored) == sorted(wanted)
    assert {e.id for e in drain(consumer, 5)} == set(wanted)
    assert bus.table("state").get("sent")[0] == b"%d" % sent
    assert watch.changes(5)[-1].value == b"%d" % sent
    bus.close()


def test_a_fetch_and_a_watch_go_on_when_the_server_is_back(start: Start) -> None:
    server = start()
    bus, other = open_nats(server.url), open_nats(server.url)
    consumer, watch = bus.consumer(STREAM, "one"), bus.table("state").watch()
    assert watch.changes(0) == []

    def restart() -> None:
        time.sleep(0.1)
        server.kill()
        server.start()
        other.publish([event(1)], [TablePut(key="a", value=b"1", revision=0)])

    restarting = threading.Thread(target=restart)
    restarting.start()
    assert texts(consumer.fetch(1, 100)) == ["event 1"]
    assert [row.value for row in watch.changes(20)] == [b"1"]
    restarting.join()
    bus.close()
    other.close()


def test_a_replay_goes_on_when_the_server_is_back(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_scan, "_AT_ONCE", 50)
    server = start()
    bus = open_nats(server.url)
    bus.publish(events(300))
    replay = bus.replay(STREAM, since_time=time.time() - 60)
    got = [next(replay).sequence for _ in range(70)]
    server.kill()
    server.start()
    got += [e.sequence for e in replay]
    assert got == list(range(1, 301))
    assert list(bus.replay("RL_REWARDS")) == []
    bus.close()


def test_marks_of_removed_rows_go_after_a_while(on_nats: NatsPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    table = on_nats.open().table("state")
    for key in ("a", "b"):
        table.remove(key, table.put(key, b"1", 0))
    monkeypatch.setattr(nats_table, "_REMOVED_S", 0.0)
    table.remove("c", table.put("c", b"1", 0))
    told = by_hand(on_nats.server, "STREAM.INFO.KV_tfgrpo_state", {})
    assert told["state"]["messages"] <= 1  # type: ignore[index]
    assert table.put("a", b"2", 0)


def test_a_server_that_does_not_answer_is_an_error_and_a_repeat_stores_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    patient, bus = open_nats(server.url), open_nats(server.url, patience_s=0.3)
    patient.publish(events(1))
    consumer = bus.consumer(STREAM, "one")
    got = consumer.fetch(1, 100)
    monkeypatch.setattr(nats_link, "_ANSWER_S", 0.2)
    server.pause(True)
    silent = rf"127.0.0.1:{server.port} has not answered for 0.3 s"
    with pytest.raises(BusError, match=silent):
        bus.publish(events(3))
    with pytest.raises(BusError, match=silent):
        consumer.ack(got)
    server.pause(False)
    monkeypatch.setattr(nats_link, "_ANSWER_S", 5.0)
    assert sorted(patient.publish(events(3))) == [1, 2, 3]
    assert len(list(patient.replay(STREAM))) == 3
    bus.close()
    patient.close()


def test_a_row_whose_acknowledgement_was_lost_is_no_conflict(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start()
    bus = open_nats(server.url, patience_s=100)
    table = bus.table("state")
    first = table.put("a", b"1", 0)
    monkeypatch.setattr(nats_link, "_ANSWER_S", 0.1)
    server.pause(True)
    threading.Timer(0.5, server.pause, (False,)).start()
    second = table.put("a", b"2", first)  # sent several times
    assert table.get("a") == (b"2", second)
    with pytest.raises(RevisionConflict):
        table.put("a", b"3", first)
    bus.close()


# who may, and who is there


def test_nobody_who_answers_is_an_error_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nats")
    monkeypatch.setattr(nats_link, "_CONNECT_S", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(BusError, match=f"NATS at 127.0.0.1:{port} cannot be reached") as raised:
            open_nats(f"nats://user:hunter2@127.0.0.1:{port}")
    assert "hunter2" not in str(raised.value)


def test_credentials_are_taken_as_nats_py_takes_them(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start("--user", "loop", "--pass", "hunter2")
    for url, options in (
        (server.url.replace("//", "//loop:hunter2@"), {}),
        (server.url, {"user": "loop", "password": "hunter2"}),
    ):
        bus = open_nats(url, options=options)
        bus.publish(events(1))
        bus.close()
    monkeypatch.setattr(nats_link, "_CONNECT_S", 4.0)
    with pytest.raises(BusError, match=r"cannot be reached: .*[Aa]uthorization"):
        open_nats(server.url, options={"user": "loop", "password": "wrong"})


def test_an_option_that_nats_py_does_not_have_is_named(start: Start) -> None:
    with pytest.raises(BusError, match=r"an option for nats.connect is not one that it takes.*'colour'"):
        open_nats(start().url, options={"colour": "red"})


def test_an_event_over_the_servers_limit_is_refused_by_name(start: Start, tmp_path: Path) -> None:
    (tmp_path / "small.conf").write_text("max_payload: 4096\n")
    bus = open_nats(start("-c", str(tmp_path / "small.conf")).url)
    with pytest.raises(BusError, match=r"has 4,000 bytes, and the server takes 4,096 with headers"):
        bus.publish([event(1, bytes(4000))])
    with pytest.raises(BusError, match="the table row 'a' has 4,000 bytes"):
        bus.table("state").put("a", bytes(4000), 0)
    assert bus.publish([event(1, bytes(3500))]) == [1]
    bus.close()


def test_a_server_without_jetstream_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = NatsServer(tmp_path, jetstream=False)
    server.start()
    try:
        with pytest.raises(BusError, match="JetStream"):
            open_nats(server.url, patience_s=0.3)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [("nats://", "has no host"), ("nats://host:port", "no valid port"), ("", "has no host")],
)
def test_a_url_that_is_none_is_an_error(url: str, message: str) -> None:
    pytest.importorskip("nats")
    with pytest.raises(BusError, match=message):
        open_nats(url)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_link, "find_spec", lambda _name: None)
    with pytest.raises(BusError, match=r"pip install 'pytest-tfgrpo\[nats\]'"):
        open_nats("nats://127.0.0.1:1")


def test_a_poisonous_event_is_dead_although_its_workers_died(on_nats: NatsPlace) -> None:
    bus = on_nats.open()
    bus.publish([event(1)])
    consumer = bus.consumer(STREAM, "one", ack_wait_s=0.05)
    seen = 0
    until = time.monotonic() + 100
    while not bus.last(DEAD) and time.monotonic() < until:
        seen += len(consumer.fetch(1, 0.2))  # and never a word
    assert seen == 5
    assert consumer.lag() == 0
