"""What passed as spans: the message of an answer, however it came, and whose it is."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from pytest_tfgrpo.production.serving import chat_spans, recording
from pytest_tfgrpo.production.serving.chat_body import read_chat
from pytest_tfgrpo.production.serving.chat_spans import ChatExchange, spans_of, unpacked
from pytest_tfgrpo.production.serving.recording import LEFT, ChatRecord, PassingChat
from pytest_tfgrpo.production.serving.run_traces import GoingRun, RunTraces
from pytest_tfgrpo.production.serving.served_version import NOTHING
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan

ASKED = {"role": "user", "content": "May I get a refund?"}


def passed(answer: bytes, fields: dict[str, Any] | None = None, **more: Any) -> list[TraceSpan]:
    """Return the spans of a request and its answer."""
    chat = read_chat(json.dumps({"messages": [ASKED], **(fields or {})}).encode())
    assert chat is not None
    run = GoingRun(trace="a" * 32, agent="b" * 16, start_ns=5)
    usual: dict[str, Any] = {
        **{"session": "", "version": "v2", "lessons": (), "domain": "", "ends_run": True},
        **{"start_ns": 7, "end_ns": 9, "status": 200},
    }
    return spans_of(ChatExchange(chat=chat, run=run, span="c" * 16, answer=answer, **{**usual, **more}))


def said(answer: bytes) -> Any:
    """Return the message that an answer amounts to."""
    return json.loads(str(passed(answer)[0].attributes["gen_ai.output.messages"]))[0]


def streamed(*choices: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: " + json.dumps({"choices": one}).encode() + b"\n\n" for one in choices)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
    ],
)
def test_a_body_is_unpacked_as_far_as_it_is_whole_and_not_too_large(
    encoding: str, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"an answer, and so on" * 9
    assert unpacked(pack(body), encoding) == body
    if encoding not in ("", "identity"):
        assert body.startswith(unpacked(pack(body)[:-9], encoding))
        assert unpacked(b"no such thing", encoding) == b""
        monkeypatch.setattr(chat_spans, "LARGEST_ANSWER", 10)
        assert unpacked(pack(body), encoding) == body[:10]
    assert unpacked(body, "br") == b""


def test_of_several_choices_the_first_is_the_answer() -> None:
    first, other = ({"index": n, "delta": {"content": text}} for n, text in enumerate(["Yes.", "No."]))
    assert said(streamed([other], [first], [other]))["content"] == "Yes."
    unnamed = {"delta": {"content": "Yes."}}
    assert said(streamed([unnamed]))["content"] == "Yes."


def test_calls_of_tools_stand_in_the_order_that_they_name() -> None:
    parts = [{"index": n, "id": f"call_{n}", "function": {"name": f"tool{n}"}} for n in (1, 0)]
    deltas = [[{"index": 0, "delta": {"tool_calls": [part]}}] for part in parts]
    assert [call["id"] for call in said(streamed(*deltas))["tool_calls"]] == ["call_0", "call_1"]


def test_a_run_lasts_from_its_first_request_and_a_call_from_its_own() -> None:
    call, run = passed(b"{}")
    assert (call.start_ns, call.end_ns, run.start_ns, run.end_ns) == (7, 9, 5, 9)
    assert (call.parent, run.parent, run.name) == (run.key[1], "", "invoke_agent")
    assert len(passed(b"{}", ends_run=False)) == 1


@pytest.mark.parametrize(
    ("fields", "user"),
    [({"user": "u", "safety_identifier": "s"}, "u"), ({"safety_identifier": "s"}, "s"), ({}, None)],
)
def test_the_user_is_whom_the_client_names_in_either_way(fields: dict[str, Any], user: str | None) -> None:
    assert [span.attributes.get("user.id") for span in passed(b"{}", fields)] == [user, user]


def test_a_question_behind_results_of_tools_begins_a_run_of_its_own() -> None:
    runs = RunTraces()
    first = runs.begin("s", [ASKED])
    called = b'{"tool_calls": [{"id": "call_1"}]}'
    assert not runs.answered("s", first, called)
    result = {"role": "tool", "tool_call_id": "call_1", "content": "Order 17"}
    assert runs.begin("s", [ASKED, {"role": "assistant"}, result]) == first
    assert runs.begin("t", [ASKED, {"role": "assistant"}, result]) != first, "of another session"
    again = {"role": "user", "content": "And now?"}
    assert runs.begin("s", [ASKED, {"role": "assistant"}, result, again]) != first


def test_of_the_runs_that_go_on_the_newest_are_remembered() -> None:
    runs = RunTraces(most=2)
    begun = [runs.begin("s", [ASKED]) for _ in range(3)]
    for n, run in enumerate(begun):
        runs.answered("s", run, b'{"tool_calls": [{"id": "call_%d"}]}' % n)
    results = [{"role": "tool", "tool_call_id": f"call_{n}"} for n in range(3)]
    found = [runs.begin("s", [ASKED, result]) for result in results]
    assert [one == run for one, run in zip(found, begun, strict=True)] == [False, True, True]


def test_parts_of_a_call_without_a_place_are_of_the_first_call() -> None:
    parts: list[Any] = [
        {"index": 0, "id": "call_0", "function": {"name": "tool", "arguments": "{"}},
        {"function": {"arguments": "}"}},
        {"index": "x", "id": 7, "function": {"arguments": 8}},
        "odd",
    ]
    (call,) = said(streamed(*[[{"delta": {"tool_calls": [part]}}] for part in parts]))["tool_calls"]
    assert call == {"type": "function", "id": "call_0", "function": {"name": "tool", "arguments": "{}"}}


def test_a_span_says_nothing_of_what_is_not_known() -> None:
    call, run = passed(b"", {"temperature": 0}, status=0, error="closed")
    assert (call.failed, call.message, run.failed) == (True, "closed", False)
    assert call.attributes["gen_ai.request.temperature"] == 0
    assert not [key for one in (call, run) for key, value in one.attributes.items() if value in (None, "")]
    assert run.attributes["gen_ai.agent.name"] == "proxied"
    assert passed(b"{}", domain="orders")[1].attributes["gen_ai.agent.name"] == "orders"


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (200, b"{}", "HTTP 200"),
        (500, b'{"error": {"message": "down"}}', "HTTP 500: down"),
        (429, b'{"error": "slow"}', "HTTP 429: slow"),
        (200, b'{"choices": [{"message": {"role": "assistant"}}]}', ""),
        (201, b'{"choices": [{"message": {"role": "assistant"}}]}', "HTTP 201"),
    ],
)
def test_an_answer_that_is_none_says_why(status: int, answer: bytes, why: str) -> None:
    call, run = passed(answer, status=status)
    assert (call.message, call.failed, run.failed) == (why, bool(why), False)


def test_of_the_parts_of_a_message_the_texts_alone_are_kept() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    parts = [picture, {"type": "text", "text": "What is it?"}, "odd"]
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": parts}]
    (kept,) = json.loads(str(passed(b"{}", {"messages": messages})[0].attributes["gen_ai.input.messages"]))
    assert kept["content"] == [parts[1]]


@pytest.mark.parametrize(
    ("status", "error", "chunks", "kept"),
    [
        (200, "", [b"{}"], [(True, "")]),
        (200, "the answer was cut: closed", [b"{}"], [(False, "the answer was cut: closed")]),
        (500, "", [b"{}"], [(False, "")]),
        (200, LEFT, [b"{}"], [(True, "")]),
        (0, LEFT, [], [(False, LEFT)]),
        (404, "", [b"{}"], []),
    ],
)
def test_a_whole_answer_ends_its_run_and_is_handed_over_once(
    status: int, error: str, chunks: list[bytes], kept: list[tuple[bool, str]]
) -> None:
    chat, added = read_chat(json.dumps({"messages": [ASKED]}).encode()), list[ChatExchange]()
    assert chat is not None
    record = ChatRecord(PassingChat(chat, {}), "v2", NOTHING, RunTraces(), added.append)
    for chunk in chunks:
        record.keep(chunk)
    for _ in range(2):
        record.end(status, "", error)
    assert [(one.ends_run, one.error) for one in added] == kept


def test_of_a_long_answer_no_more_is_kept_than_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LARGEST_ANSWER", 3)
    chat, added = read_chat(json.dumps({"messages": [ASKED]}).encode()), list[ChatExchange]()
    assert chat is not None
    record = ChatRecord(PassingChat(chat, {}), "v2", NOTHING, RunTraces(), added.append)
    for chunk in (b"ab", b"cd", b"ef"):
        record.keep(chunk)
    record.end(200, "")
    assert added[0].answer == b"abcd"
