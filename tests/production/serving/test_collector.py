"""What passes the proxy becomes trajectories, through the door, with the version that was served."""

import gzip
import json
import time
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.assemblers import Clock, assembler, drain, rest
from support.intake import audits, stored
from support.serving import LIVE, REFUND, FakeAnswer, FakeUpstream, LocalProxy, choice_of

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.serving import collector as collecting
from pytest_tfgrpo.production.serving.chat_spans import ChatExchange
from pytest_tfgrpo.production.serving.collector import ChatCollector
from pytest_tfgrpo.production.serving.upstream import UpstreamFault

ASKED = {"role": "user", "content": "May I get a refund? I am bob@example.com"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "orders", "arguments": '{"late": true}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "Order 17"}
SESSION = {"x-session-id": "chat-17"}


def answer(message: dict[str, Any], **changes: Any) -> FakeAnswer:
    value = {"id": "c1", "model": "m-1", "choices": [{"index": 0, "message": message}], "usage": {
        "prompt_tokens": 10, "completion_tokens": 5}}  # fmt: skip
    return FakeAnswer(chunks=[json.dumps(value).encode()], **changes)


def streamed(*deltas: dict[str, Any], cut: bool = False) -> FakeAnswer:
    events = [{"id": "c1", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks: list[bytes | UpstreamFault] = [
        b"data: " + json.dumps(event).encode() + b"\n\n" for event in events
    ]
    chunks.append(UpstreamFault("closed", late=False) if cut else b"data: [DONE]\n\n")
    return FakeAnswer(chunks=chunks, headers=(("content-type", "text/event-stream"),))


def done(**changes: Any) -> FakeAnswer:
    return answer({"role": "assistant", "content": "Yes."}, **changes)


class Collected:
    """A proxy that collects, and what becomes of it on the bus."""

    def __init__(self, bus: Bus, intake: Intake, clock: Clock) -> None:
        self.upstream = FakeUpstream()
        self.exchanges: list[ChatExchange] = []
        self.proxy = LocalProxy(self.upstream, choice_of(LIVE, REFUND), self.exchanges.append)
        self._bus, self._intake, self._clock = bus, intake, clock

    def trajectories(self) -> list[Any]:
        """Publish what passed, and return what is made of it."""
        ChatCollector(lambda: self._intake, print).publish(self.exchanges)
        worker = assembler(self._bus, self._clock)
        drain(worker)
        rest(worker, self._clock)
        return [json.loads(event.data) for event in self._bus.replay("RL_TRAJECTORIES")]


@pytest.fixture
def collected(local: Bus, clock: Clock, intake: Intake) -> Collected:
    return Collected(local, intake, clock)


@pytest.fixture
def bus(local: Bus) -> Bus:
    return local


def test_a_run_with_tools_is_one_trajectory_with_the_version_served(collected: Collected) -> None:
    collected.upstream.answers = [answer(CALLED), done()]
    first = collected.proxy.chat(ASKED, headers=SESSION, user="bob-1234567")
    second = collected.proxy.chat(ASKED, CALLED, RESULT, headers=SESSION, user="bob-1234567")
    (found,) = collected.trajectories()
    assert (
        first.header("x-tfgrpo-trajectory") == second.header("x-tfgrpo-trajectory") == found["trajectory_id"]
    )
    assert (found["session_id"], found["agent_id"]) == ("chat-17", "proxied")
    assert found["metadata"]["policy_version"] == "v2"
    assert len(found["metadata"]["lessons"]) == 1
    assert (found["metadata"]["model"], found["metadata"]["total_tokens"]) == ("m-1", 30)
    assert found["metadata"]["user_ref"].startswith("u")
    assert [turn["action"]["type"] for turn in found["turns"]] == ["tool_call", "response"]
    assert found["turns"][0]["action"]["tool_args"] == {"late": True}
    assert found["turns"][1]["action"]["raw_response"] == "Yes."
    assert found["turns"][1]["observation"]["content"] == "Order 17"
    assert "bob" not in json.dumps(found)
    assert "<experiences" not in json.dumps(found)


def test_a_streamed_answer_is_put_together(collected: Collected) -> None:
    parts = [{"function": {"arguments": part}, "index": 0} for part in ('{"late"', ": true}")]
    first = {**CALL, "index": 0, "function": {"name": "orders", "arguments": ""}}
    deltas = [{"tool_calls": [one]} for one in (first, *parts)]
    collected.upstream.answers = [streamed(*deltas), streamed({"content": "Y"}, {"content": "es."})]
    for messages in ([ASKED], [ASKED, CALLED, RESULT]):
        collected.proxy.chat(*messages, headers=SESSION, stream=True)
    (found,) = collected.trajectories()
    assert found["turns"][0]["action"]["tool_args"] == {"late": True}
    assert found["turns"][1]["action"]["raw_response"] == "Yes."


def test_each_question_of_a_conversation_is_a_run_of_its_own(collected: Collected) -> None:
    collected.upstream.answers = [done(), answer({"role": "assistant", "content": "Bye."})]
    collected.proxy.chat(ASKED, headers=SESSION)
    collected.proxy.chat(
        ASKED,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Thanks"},
        headers=SESSION,
    )
    found = collected.trajectories()
    assert [one["turns"][0]["observation"]["content"] for one in found][1] == "Thanks"
    assert {one["session_id"] for one in found} == {"chat-17"}
    assert len({one["trajectory_id"] for one in found}) == 2


def test_the_same_question_of_two_clients_without_a_name_is_two_runs(collected: Collected) -> None:
    for number in (1, 2):
        call = {**CALL, "id": f"call_{number}"}
        collected.upstream.answers.append(answer({**CALLED, "tool_calls": [call]}))
        collected.proxy.chat(ASKED)
    for number in (2, 1):
        call, result = {**CALL, "id": f"call_{number}"}, {**RESULT, "tool_call_id": f"call_{number}"}
        collected.upstream.answers.append(answer({"role": "assistant", "content": f"Answer {number}"}))
        collected.proxy.chat(ASKED, {**CALLED, "tool_calls": [call]}, result)
    found = collected.trajectories()
    assert sorted(one["turns"][-1]["action"]["raw_response"] for one in found) == ["Answer 1", "Answer 2"]
    assert all(len(one["turns"]) == 2 for one in found)


def test_a_failure_that_the_client_repeats_is_part_of_one_run_that_did_not_fail(collected: Collected) -> None:
    limited = FakeAnswer(chunks=[b'{"error": {"message": "slow down"}}'], status=429)
    collected.upstream.answers = [limited, UpstreamFault("refused", late=False), done()]
    for _ in range(3):
        collected.proxy.chat(ASKED, headers=SESSION)
    (found,) = collected.trajectories()
    assert found["outcome"]["task_status"] == "unknown"
    assert found["turns"][-1]["action"]["raw_response"] == "Yes."


def test_the_same_question_later_is_another_run(collected: Collected) -> None:
    collected.upstream.answers = [UpstreamFault("refused", late=False), done(), done()]
    runs = [collected.proxy.chat(ASKED, headers=SESSION).header("x-tfgrpo-trajectory") for _ in range(3)]
    assert runs[1] != runs[2]
    assert [one["trajectory_id"] for one in collected.trajectories()] == runs[1:]


def test_a_user_who_stops_an_answer_has_one(collected: Collected) -> None:
    answered = streamed({"content": "Your refund"})
    answered.waits = True
    collected.upstream.answers = [answered]
    body = json.dumps({"messages": [ASKED], "stream": True}).encode()
    collected.proxy.send("POST", "/v1/chat/completions", [body], SESSION, leaves=True)
    (found,) = collected.trajectories()
    assert (found["outcome"]["task_status"], found["turns"][0]["result"]["error"]) == ("unknown", None)
    assert found["turns"][0]["action"]["raw_response"] == "Your refund"


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (FakeAnswer(chunks=[b'{"error": {"message": "slow down"}}'], status=429), "HTTP 429: slow down"),
        (UpstreamFault("refused", late=False), "refused"),
        (streamed({"content": "Ye"}, cut=True), "the answer was cut: closed"),
        (FakeAnswer(chunks=[b"<html>"]), "HTTP 200"),
    ],
)
def test_a_failure_that_nobody_repeats_is_a_run_that_failed(
    collected: Collected, failure: Any, said: str
) -> None:
    collected.upstream.answers = [failure]
    try:
        collected.proxy.chat(ASKED, headers=SESSION)
    except Exception:
        assert "cut" in said
    (found,) = collected.trajectories()
    assert (found["outcome"]["task_status"], found["metadata"]["policy_version"]) == ("failed", "v2")
    assert found["turns"][-1]["result"]["error"] == said


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_request_that_reached_no_model_is_no_run(collected: Collected, status: int) -> None:
    collected.upstream.answers = [FakeAnswer(status=status)]
    collected.proxy.chat(ASKED, headers=SESSION)
    assert collected.trajectories() == []


def test_nothing_is_kept_of_who_opted_out(collected: Collected, bus: Bus, opt_outs: OptOuts) -> None:
    opt_outs.add(session="chat-17")
    collected.proxy.chat(ASKED, headers=SESSION)
    collected.proxy.chat(ASKED, metadata={"tfgrpo.opt_out": "true"})
    assert collected.trajectories() == []
    assert sorted(audits(bus)) == [("trace", "attribute"), ("trace", "session")]


def test_what_the_client_notes_reaches_the_trajectory(collected: Collected) -> None:
    collected.upstream.answers = [done()]
    collected.proxy.chat(ASKED, metadata={"session_id": "s", "tfgrpo.task_key": "refunds", "other": "x"})
    (found,) = collected.trajectories()
    assert (found["session_id"], found["task_context"]["task_key"]) == ("s", "refunds")


def test_a_packed_answer_is_read_and_no_encoding_asked_for_that_cannot_be(collected: Collected) -> None:
    body = gzip.compress(b"".join(part for part in done().chunks if isinstance(part, bytes)))
    collected.upstream.answers = [FakeAnswer(chunks=[body], headers=(("content-encoding", "gzip"),))]
    reply = collected.proxy.chat(ASKED, headers={"accept-encoding": "gzip, br, zstd"})
    assert reply.body == body
    collected.proxy.chat(ASKED, headers={"accept-encoding": "br, zstd"})
    sent = [one.headers for one in collected.upstream.requests]
    assert sent == [[("accept-encoding", "gzip")], [("accept-encoding", "identity")]]
    found = collected.trajectories()[0]
    assert found["turns"][0]["action"]["raw_response"] == "Yes."


def test_pictures_stay_out(collected: Collected) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    collected.proxy.chat({"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]})
    (found,) = collected.trajectories()
    assert found["turns"][0]["observation"]["content"] == "What is it?"


def exchange(collected: Collected) -> ChatExchange:
    collected.proxy.chat(ASKED, headers=SESSION)
    return collected.exchanges[-1]


def test_what_finds_no_room_is_dropped_and_counted(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = exchange(collected)
    for bound, value in (("MOST_EXCHANGES", 2), ("MOST_BYTES", 2 * len(one.chat.text + "{}"))):
        with monkeypatch.context() as bounded:
            bounded.setattr(collecting, bound, value)
            waiting = ChatCollector(lambda: pytest.fail("not yet"), print)
            for _ in range(3):
                waiting.add(one)
        assert waiting.dropped == 1


def test_one_that_cannot_be_read_does_not_stop_the_others(collected: Collected, bus: Bus) -> None:
    reports: list[str] = []
    collected.upstream.answers = [done(), done()]
    good, bad = exchange(collected), exchange(collected)
    object.__setattr__(bad, "answer", None)
    collector = ChatCollector(lambda: collected._intake, reports.append)
    collector.publish([bad, good])
    assert (collector.published, collector.dropped, len(reports)) == (1, 1, 1)
    assert {trace for trace, _ in stored(bus)} == {good.run.trace}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
MESSAGE = st.dictionaries(
    st.sampled_from(FIELDS), JSON | st.sampled_from(["user", "tool", "assistant", "system"])
)
REQUEST = st.dictionaries(
    st.sampled_from(["model", "user", "metadata", "temperature", "stream", "safety_identifier", "tools"]),
    JSON | st.just({"session_id": "\ud83d", "tfgrpo.lessons": [1]}),
)
CHOICE = st.fixed_dictionaries(
    {"index": st.just(0) | JSON, "message": MESSAGE | JSON, "delta": MESSAGE | JSON}
)
ANSWER = st.dictionaries(st.sampled_from(["id", "model", "usage", "error"]), JSON)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    REQUEST,
    st.lists(MESSAGE, min_size=1, max_size=3),
    ANSWER,
    st.lists(CHOICE | JSON, max_size=2),
    st.booleans(),
)
def test_whatever_passes_is_no_error_of_the_proxy_and_is_kept(
    collected: Collected, fields: Any, messages: Any, beside: Any, choices: Any, stream: bool
) -> None:
    said = json.dumps({**beside, "choices": choices})
    text = f"data: {said}\n\n".encode() if stream else said.encode()
    collected.upstream.answers = [FakeAnswer(chunks=[text])]
    before = len(collected.exchanges)
    reply = collected.proxy.chat(*messages, **fields)
    assert (reply.status, reply.body) == (200, text)
    reports: list[str] = []
    collector = ChatCollector(lambda: collected._intake, reports.append)
    collector.publish(collected.exchanges[before:])
    assert (collector.published, reports) == (1, [])


def test_calls_of_tools_that_are_no_list_cost_no_trajectory(collected: Collected) -> None:
    collected.upstream.answers = [streamed({"tool_calls": 5}, {"content": "Yes."})]
    collected.proxy.chat(ASKED, stream=True)
    (found,) = collected.trajectories()
    assert "Yes." in json.dumps(found)


def test_the_thread_publishes_once_the_bus_is_back(collected: Collected, bus: Bus) -> None:
    tries: list[int] = []
    reports: list[str] = []

    def intake() -> Intake:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the disk is away")
        return collected._intake

    collected.upstream.answers = [done()]
    publishing = ChatCollector(intake, reports.append)
    publishing.add(exchange(collected))
    publishing.start()
    publishing.close()
    assert (publishing.published, publishing.dropped, len(tries)) == (1, 0, 2)
    assert "the disk is away" in reports[0]
    assert len({trace for trace, _ in stored(bus)}) == 1


def test_the_wait_grows_with_each_failure_in_a_row_and_what_was_published_leaves_room(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True, True, False, True, False])
    waits: list[int] = []

    class Bumpy:
        def spans(self, spans: object) -> None:
            if next(failures):
                raise BusError("away")

    def wait(before: int) -> float:
        waits.append(before)
        return 0.0

    collected.upstream.answers = [done(), done()]
    first, second = exchange(collected), exchange(collected)
    monkeypatch.setattr(collecting, "MOST_BYTES", 3 * collecting._size(first) // 2)
    monkeypatch.setattr(collecting, "_GATHER_S", 0.0)
    monkeypatch.setattr(collecting, "backoff_s", wait)
    collector = ChatCollector(lambda: cast("Intake", Bumpy()), lambda _: None)
    collector.start()
    for count, one in enumerate((first, second), 1):
        collector.add(one)
        while collector.published < count or collector._waiting:
            time.sleep(0.001)
    collector.close()
    assert (waits, collector.dropped) == ([1, 2, 1], 0)
