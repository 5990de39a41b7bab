"""What is asked of a NATS server and made of its answers, beside a link that has no server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import BusError, RevisionConflict
from pytest_tfgrpo.production.bus.nats import link as links
from pytest_tfgrpo.production.bus.nats import table as tables
from pytest_tfgrpo.production.bus.nats.consumer import NatsConsumer, event_of
from pytest_tfgrpo.production.bus.nats.link import NatsLink, NatsRefusal, _public, _windows
from pytest_tfgrpo.production.bus.nats.scan import NatsScan
from pytest_tfgrpo.production.bus.nats.streams import bucket_config, differing, provide, stream_config
from pytest_tfgrpo.production.bus.nats.table import NatsTable, NatsWatch, erase
from pytest_tfgrpo.production.bus.protocol import MAX_DELIVERIES, MAX_PENDING
from pytest_tfgrpo.production.bus.streams import StreamSpec
from pytest_tfgrpo.storage.event_store import BusEvent

ID = "00000000-0000-4000-8000-000000000001"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class Message:
    """A message as the client gives it."""

    number: int = 7
    delivered: int | None = 2
    headers: Mapping[str, str] | None = None
    subject: str = "s"
    data: bytes = b"x"
    consumer: int = 1
    pending: int = 0

    @property
    def reply(self) -> str:
        return f"receipt {self.number}"

    @property
    def metadata(self) -> Any:
        sequence = SimpleNamespace(stream=self.number, consumer=self.consumer)
        return SimpleNamespace(
            sequence=sequence, timestamp=AT, num_delivered=self.delivered, num_pending=self.pending
        )


@dataclass
class FakeLink:
    """Answers what it was told to, and remembers what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    pulled: list[tuple[list[Message], bool]] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    pulls: list[tuple[int, float]] = field(default_factory=list)
    settled: list[tuple[list[str], bytes]] = field(default_factory=list)
    breaks: int = 0
    where: str = "host:4222"

    def run(self, todo: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(todo)

    async def api(self, subject: str, wish: Any = None) -> Any:
        self.asked.append((subject, wish))
        answer = self.answers.get(subject, {})
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pull(self, stream: str, consumer: str, batch: int, wait_s: float, max_bytes: int) -> Any:
        self.pulls.append((batch, wait_s))
        return self.pulled.pop(0) if self.pulled else ([], True)

    async def settle(self, receipts: Sequence[str], word: bytes) -> None:
        self.settled.append((list(receipts), word))

    async def patiently(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        return await attempt()


def refusal(code: int) -> NatsRefusal:
    return NatsRefusal(f"refused {code}", code)


@pytest.fixture
def link() -> FakeLink:
    return FakeLink()


def consumer(link: FakeLink, letters: list[BusEvent] | None = None) -> NatsConsumer:
    async def publish(events: Sequence[BusEvent]) -> None:
        (letters if letters is not None else []).extend(events)

    return NatsConsumer(link, "S", "one", 1.5, publish)  # type: ignore[arg-type]


def test_a_message_is_an_event_with_its_id_and_time_or_with_those_of_its_place() -> None:
    told = event_of(Message(headers={"Nats-Msg-Id": ID.upper(), "Tfgrpo-Time": "noon"}), "S", consumed=True)
    assert told == BusEvent(
        id=ID, subject="s", time="noon", data=b"x", sequence=7, attempts=2, arrived=AT.timestamp()
    )
    assert told.receipt == "receipt 7"
    foreign = event_of(Message(headers={"Nats-Msg-Id": "7"}), "S", consumed=False)
    assert (foreign.attempts, foreign.receipt, foreign.time) == (0, "", "2026-01-02T03:04:05+00:00")
    assert foreign.id == event_of(Message(), "S", consumed=False).id
    assert foreign.id != event_of(Message(), "T", consumed=False).id
    assert foreign.id != event_of(Message(8), "S", consumed=False).id
    assert event_of(Message(delivered=None), "S", consumed=True).attempts == 0


def test_a_consumer_asks_for_all_there_is_and_waits_for_the_first_of_more(link: FakeLink) -> None:
    one = consumer(link)
    (subject, wish), *_ = link.asked
    assert (subject, wish["stream_name"]) == ("CONSUMER.DURABLE.CREATE.S.one", "S")
    assert wish["config"]["ack_wait"] == 1_500_000_000
    assert wish["config"]["max_ack_pending"] == MAX_PENDING
    assert (wish["config"]["max_deliver"], wish["config"]["deliver_policy"]) == (-1, "all")
    link.pulled = [([Message(1), Message(2)], True)]
    assert [event.sequence for event in one.fetch(5, 0.0)] == [1, 2]
    assert link.pulls == [(5, 0.0)]
    link.pulls, link.pulled = [], [([], True), ([Message(3)], True), ([Message(4)], True)]
    assert [event.sequence for event in one.fetch(5, 60.0)] == [3, 4]
    assert [batch for batch, _ in link.pulls] == [5, 1, 4]
    assert link.pulls[1][1] > 1.0
    assert link.pulls[2][1] == 0.0
    link.pulls, link.pulled = [], [([], True), ([Message(5)], True)]
    assert [event.sequence for event in one.fetch(1, 60.0)] == [5]
    assert [batch for batch, _ in link.pulls] == [1, 1]
    assert one.fetch(1, 0.0) == []


def test_what_was_delivered_too_often_becomes_a_dead_letter(link: FakeLink) -> None:
    letters: list[BusEvent] = []
    one = consumer(link, letters)
    link.pulled = [([Message(1, MAX_DELIVERIES), Message(2, MAX_DELIVERIES + 1)], True)]
    assert [event.sequence for event in one.fetch(5, 0.0)] == [1]
    (letter,) = letters
    said = json.loads(letter.data.partition(b"\n")[0])
    assert (said["stream"], said["consumer"], said["attempts"]) == ("S", "one", MAX_DELIVERIES)
    assert link.settled == [(["receipt 2"], b"+TERM")]


def test_events_are_settled_with_the_words_of_the_server(link: FakeLink) -> None:
    letters: list[BusEvent] = []
    one = consumer(link, letters)
    events = [event_of(Message(n), "S", consumed=True) for n in (1, 2)]
    one.ack(events)
    one.nak(events[:1])
    one.nak(events[1:], 0.25)
    one.bury(events, "bad", "it is bad")
    assert link.settled == [
        (["receipt 1", "receipt 2"], b"+ACK"),
        (["receipt 1"], b"-NAK"),
        (["receipt 2"], b'-NAK {"delay": 250000000}'),
        (["receipt 1", "receipt 2"], b"+TERM"),
    ]
    assert [json.loads(letter.data.partition(b"\n")[0])["code"] for letter in letters] == ["bad", "bad"]
    link.answers["CONSUMER.INFO.S.one"] = {"num_pending": 3, "num_ack_pending": 4}
    assert one.lag() == 7


SPEC = StreamSpec(name="S", subjects=("b", "a"), max_age_s=2.5, max_count=None)


def test_a_stream_is_compared_key_by_key_and_its_subjects_in_any_order() -> None:
    wanted = stream_config(SPEC)
    assert wanted["subjects"] == ["a", "b"]
    assert (wanted["max_age"], wanted["max_msgs"]) == (2_500_000_000, -1)
    assert stream_config(replace(SPEC, max_count=9))["max_msgs"] == 9
    assert differing(wanted, {**wanted, "subjects": wanted["subjects"][::-1], "more": 1}) == []
    without = {key: value for key, value in wanted.items() if value is not False}
    assert differing(wanted, without) == []
    assert differing(wanted, {**wanted, "max_age": 10**9, "storage": "memory"}) == [
        "S has storage 'memory', not 'file'",
        "S has max_age 1 s, not 2.5 s",
    ]
    assert differing(wanted, {**wanted, "sources": [{"name": "T"}]}) == ["S copies another stream"]
    assert differing(wanted, {**wanted, "mirror": {"name": "T"}}) == ["S copies another stream"]
    assert differing(wanted, {**wanted, "duplicate_window": 10**9, "max_msgs": 5}) == [
        "S has max_msgs 5, not -1",
        "S has duplicate_window 1 s, not 3600 s",
    ]
    training = replace(SPEC, subjects=("t.a", "t.b"), pattern="t.>")
    assert stream_config(training)["subjects"] == ["t.>"]
    rows = bucket_config("state")
    assert (rows["max_age"], rows["max_msgs"], rows["allow_rollup_hdrs"]) == (0, -1, True)
    assert (rows["name"], rows["subjects"], rows["max_msgs_per_subject"]) == ("KV_state", ["$KV.state.>"], 2)


def test_streams_that_are_missing_are_made_unless_another_one_differs(link: FakeLink) -> None:
    there, new = stream_config(SPEC), stream_config(replace(SPEC, name="NEW"))
    link.answers = {
        "STREAM.INFO.S": {"config": there},
        "STREAM.INFO.NEW": refusal(10059),
        "STREAM.CREATE.NEW": refusal(10058),
    }
    asyncio.run(provide(link, [there, new]))  # type: ignore[arg-type]
    assert link.asked[-1] == ("STREAM.CREATE.NEW", new), "another process was faster"
    link.answers["STREAM.CREATE.NEW"] = refusal(10047)
    with pytest.raises(BusError, match="the stream NEW cannot be made: refused 10047"):
        asyncio.run(provide(link, [there, new]))  # type: ignore[arg-type]
    link.answers["STREAM.INFO.S"] = {"config": {**there, "max_msgs": 5}}
    link.asked.clear()
    with pytest.raises(
        BusError, match=r"NATS at host:4222 has streams that differ.*S has max_msgs 5, not -1"
    ):
        asyncio.run(provide(link, [new, there]))  # type: ignore[arg-type]
    assert [subject for subject, _ in link.asked] == ["STREAM.INFO.NEW", "STREAM.INFO.S"]
    link.answers["STREAM.INFO.S"] = refusal(503)
    with pytest.raises(NatsRefusal):
        asyncio.run(provide(link, [there]))  # type: ignore[arg-type]


def test_a_reader_goes_on_after_the_last_message_when_its_connection_comes_back(link: FakeLink) -> None:
    link.answers["CONSUMER.CREATE.S"] = {"name": "r", "num_pending": 2}
    scan = NatsScan(link, "S", {"deliver_policy": "by_start_time", "opt_start_time": "noon"})  # type: ignore[arg-type]
    link.pulled = [([Message(5, consumer=1, pending=1), Message(9, consumer=2)], True)]
    assert [message.number for message in asyncio.run(scan.more())] == [5, 9]
    assert (scan.seen, scan.left) == (9, 0)
    assert link.asked[0][1]["config"]["opt_start_time"] == "noon"
    link.breaks = 1
    link.pulled = [([Message(10, consumer=1), Message(12, consumer=3)], True)]
    assert [message.number for message in asyncio.run(scan.more())] == [10], "11 was lost on the way"
    config = link.asked[1][1]["config"]
    assert (config["deliver_policy"], config["opt_start_seq"]) == ("by_start_sequence", 10)
    assert "opt_start_time" not in config
    link.pulled = [([Message(11, consumer=1)], True)]
    assert [message.number for message in asyncio.run(scan.more())] == [11]
    assert link.asked[2][1]["config"]["opt_start_seq"] == 11
    link.pulled = [([], False)]
    with pytest.raises(TimeoutError, match="no answer about S"):
        asyncio.run(scan.more())
    asyncio.run(scan.close())
    assert len(link.asked) == 3, "the server has no reader any more"


def test_a_reader_at_the_end_waits_for_one_message(link: FakeLink) -> None:
    link.answers["CONSUMER.CREATE.S"] = {"name": "r", "num_pending": 0}
    scan = NatsScan(link, "S", {"deliver_policy": "all"})  # type: ignore[arg-type]
    assert asyncio.run(scan.more(5.0)) == []
    assert asyncio.run(scan.more()) == []
    assert link.pulls == [(1, 5.0), (1000, 0.0)]
    asyncio.run(scan.close())
    assert link.asked[-1][0] == "CONSUMER.DELETE.S.r"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([], []), ([1, 1], [2]), ([1] * 5, [3, 2]), ([6, 4, 1], [2, 1]), ([11, 11], [1, 1]), ([5, 6], [1, 1])],
)
def test_what_is_sent_at_once_has_a_number_and_a_size(
    sizes: list[int], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_WINDOW", 3)
    monkeypatch.setattr(links, "_WINDOW_BYTES", 10)
    messages: Any = [SimpleNamespace(data=b"x" * size, n=n) for n, size in enumerate(sizes)]
    parts = _windows(messages)
    assert [len(part) for part in parts] == expected
    assert [one for part in parts for one in part] == messages


def test_data_has_room_for_headers_below_the_server_s_limit() -> None:
    fake: Any = SimpleNamespace(client=SimpleNamespace(max_payload=1512))
    NatsLink.check_size(fake, 1000, "an event")
    with pytest.raises(BusError, match="an event has 1,001 bytes, and the server takes 1,512 with headers"):
        NatsLink.check_size(fake, 1001, "an event")


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        ("host", "host:4222"),
        ("host:1", "host:1"),
        ("nats://user:secret@host:2", "host:2"),
        ("tls://h", "h:4222"),
    ],
)
def test_of_a_server_s_address_only_the_place_is_shown(server: str, shown: str) -> None:
    assert _public(server) == shown
    for wrong, why in (("nats://u:secret@host:x", "no valid port"), ("nats://", "has no host")):
        with pytest.raises(BusError, match=why) as caught:
            _public(wrong)
        assert "secret" not in str(caught.value)


# -- tables


@dataclass
class Rows(FakeLink):
    """A bucket of the server: its last message by subject, and what was erased."""

    last: dict[str, tuple[int, bytes, str]] = field(default_factory=dict)
    erased: list[int] = field(default_factory=list)
    next: int = 1
    refused: int = 0

    async def api(self, subject: str, wish: Any = None) -> Any:
        if subject.startswith("STREAM.MSG.GET") and "last_by_subj" in wish:
            if wish["last_by_subj"] not in self.last:
                raise refusal(10037)
            number, data, headers = self.last[wish["last_by_subj"]]
            return {
                "message": {
                    "seq": number,
                    "data": base64.b64encode(data).decode(),
                    "hdrs": base64.b64encode(headers.encode()).decode(),
                }
            }
        if subject.startswith("STREAM.MSG.DELETE"):
            self.erased.append(wish["seq"])
        if subject.startswith("STREAM.INFO"):
            raise refusal(10059)
        return {}

    async def store(self, messages: Sequence[Any]) -> list[int]:
        (message,) = messages
        if self.refused:
            raise refusal(self.refused)
        before = self.last.get(message.subject, (0,))[0]
        assert message.headers["Nats-Expected-Last-Subject-Sequence"] == str(before)
        self.last[message.subject] = (
            self.next,
            message.data,
            f"KV-Operation: {message.headers.get('KV-Operation')}",
        )
        self.next += 10
        return [self.next - 10]

    def check_size(self, size: int, what: str) -> None:
        if size > 9:
            raise BusError(f"{what} is too large")


def test_a_row_is_written_over_the_revision_that_was_read_and_the_one_before_is_erased() -> None:
    link = Rows()
    table = NatsTable(link, "state")  # type: ignore[arg-type]
    assert table.get("a") == (None, 0)
    assert table.put("a", b"one", 0) == 1
    assert table.get("a") == (b"one", 1)
    assert list(link.last) == ["$KV.tfgrpo_state.a"]
    assert link.erased == []
    assert table.put("a", b"two", 1) == 11
    assert link.erased == [1]
    with pytest.raises(
        RevisionConflict, match="the table row 'a' is at revision 11, not at 0; read it again"
    ):
        table.put("a", b"three", 0)
    table.remove("a", 11)
    assert table.get("a") == (None, 0)
    assert link.erased == [1, 11]
    table.remove("a", 0)
    assert table.put("a", b"new", 0) == 31
    assert link.erased == [1, 11, 21], "the mark of the removed one goes too"
    with pytest.raises(RevisionConflict):
        table.remove("a", 0)
    with pytest.raises(BusError, match="the table row 'b' is too large"):
        table.put("b", b"x" * 10, 0)


def test_a_write_that_the_server_refuses_is_a_conflict_only_where_another_was_faster() -> None:
    link = Rows()
    table = NatsTable(link, "state")  # type: ignore[arg-type]
    table.put("a", b"one", 0)
    for code in (10071, 10164):
        link.refused = code
        with pytest.raises(RevisionConflict, match="is at revision 1, not at 1"):
            table.put("a", b"two", 1)
    link.refused = 10077
    with pytest.raises(NatsRefusal, match="refused 10077"):
        table.put("a", b"two", 1)


def test_the_marks_of_removed_rows_are_erased_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(tables.time, "monotonic", lambda: now[0])
    link = Rows()
    table = NatsTable(link, "state")  # type: ignore[arg-type]
    for key, at in (("a", 0.0), ("b", 3600.0), ("c", 3600.5)):
        now[0] = at
        table.remove(key, table.put(key, b"x", 0))
    assert [number for number in link.erased if number in (11, 31, 51)] == [11]


def test_a_watch_shows_every_row_first_without_those_removed_and_then_what_changes(link: FakeLink) -> None:
    def row(number: int, key: str, consumer: int, pending: int, operation: str = "") -> Message:
        return Message(
            number, subject=f"$KV.b.{key}", consumer=consumer, pending=pending, data=key.encode(),
            headers={"KV-Operation": operation} if operation else None,
        )  # fmt: skip

    link.answers["CONSUMER.CREATE.KV_b"] = {"name": "r", "num_pending": 3}
    watch = NatsWatch(link, "KV_b", "$KV.b.", "x.a")  # type: ignore[arg-type]
    link.pulled = [
        ([row(1, "x.a1", 1, 3), row(2, "x.b", 2, 2), row(3, "x.a2", 3, 1, "DEL"), row(4, "x.a1", 4, 0)], True)
    ]
    assert [(one.key, one.value, one.revision) for one in watch.changes(0)] == [("x.a1", b"x.a1", 4)]
    assert link.asked[0][1]["config"]["filter_subject"] == "$KV.b.x.>"
    link.pulled = [([row(5, "x.a1", 5, 0, "PURGE")], True)]
    assert [(one.key, one.value, one.revision) for one in watch.changes(0)] == [("x.a1", None, 5)]
    assert watch.changes(0) == []


def test_what_is_gone_already_is_not_erased_again(link: FakeLink) -> None:
    link.answers = {"STREAM.MSG.DELETE.S": refusal(10057), "STREAM.MSG.GET.S": refusal(10037)}
    assert asyncio.run(erase(link, "S", [1, 2])) == 0  # type: ignore[arg-type]
    link.answers["STREAM.MSG.GET.S"] = {}
    with pytest.raises(NatsRefusal, match="refused 10057"):
        asyncio.run(erase(link, "S", [1]))  # type: ignore[arg-type]
    link.answers["STREAM.MSG.GET.S"] = refusal(503)
    with pytest.raises(NatsRefusal, match="refused 503"):
        asyncio.run(erase(link, "S", [1]))  # type: ignore[arg-type]
    link.answers.clear()
    assert asyncio.run(erase(link, "S", [1, 2])) == 2  # type: ignore[arg-type]
