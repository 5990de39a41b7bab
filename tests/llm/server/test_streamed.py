"""Servers that only stream."""

import json
from typing import Any

import pytest
from support import fake_model
from support.fake_model import Body, Reply
from support.model_clients import Client, connected, request

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.server.streamed import (
    BrokenStream,
    asks_for_stream,
    by_stream,
    is_stream,
    put_together,
)

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta: Body, finish: str | None = None, **more: Any) -> Body:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def stream(*chunks: Body | str, end: str = "\n\n") -> bytes:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in chunks]
    return "".join(f"data: {text}{end}" for text in texts).encode()


ANSWER = stream(
    chunk({"role": "assistant", "content": ""}, model="m"),
    chunk({"reasoning_content": "h"}),
    chunk({"reasoning_content": "m"}),
    chunk({"content": "Ro"}),
    chunk({"content": "me"}, "stop"),
    {"choices": [], "usage": USAGE},
    "[DONE]",
)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "body",
    [
        ANSWER,
        b": keep-alive\n\n" + ANSWER,
        ANSWER.replace(b"\n", b"\r\n"),
        ANSWER.replace(b"data: ", b"data:"),
        ANSWER.replace(b"data: ", b"").replace(b"\n\n", b"\n").replace(b"[DONE]", b""),
        ANSWER.replace(b"data: ", b"").replace(b"\n\n", b"\r\n").replace(b"[DONE]\r\n", b""),
    ],
)
async def test_a_stream_that_nobody_asked_for_is_read(body: bytes) -> None:
    async with connected(lambda *_: Reply(body=body)) as client:
        found = await client.complete(request())
    assert (found.text, found.thoughts, found.finish, found.model) == ("Rome", "hm", "stop", "m")
    assert found.usage is not None
    assert found.usage.total == 15


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "words",
    [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "Stream must be set to true",
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "Non-streaming is not supported",
    ],
)
async def test_a_server_that_only_streams_is_asked_by_stream_at_once_and_from_then_on(words: str) -> None:
    def answer(asked: Body, attempt: int) -> Reply:
        return Reply(body=ANSWER) if asked.get("stream") is True else fake_model.refused(400, words)

    with fake_model.FakeModel(answer, extra=["stream", "stream_options"]) as server:
        client = Client(server)
        async with client:
            texts = [(await client.complete(request(f"q{n}"))).text for n in range(2)]
    assert texts == ["Rome", "Rome"]
    assert [body.get("stream", False) for body in server.requests] == [False, True, True]
    assert client.time.waits == []


def test_an_endpoints_own_words_on_streams_neither_stand_twice_nor_turn_the_usage_off() -> None:
    own = {"stream": False, "stream_options": {"include_usage": False}}
    request_body = json.dumps({**own, "model": "m", "messages": []}).encode()
    pairs = json.loads(by_stream(request_body), object_pairs_hook=list)
    assert sorted(key for key, _ in pairs) == ["messages", "model", "stream", "stream_options"]
    asked = dict(pairs)
    assert asked["stream"] is True
    assert dict(asked["stream_options"]) == {"include_usage": True}


def test_a_server_that_cannot_stream_is_not_taken_for_one_that_only_does() -> None:
    assert not asks_for_stream("Unsupported value: 'stream' does not support true with this model.")
    assert not asks_for_stream("too many tokens")


def test_calls_come_in_pieces() -> None:
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": {"y": "é"}}},
    ]
    body = stream(*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk({}, "tool_calls"))
    calls = json.loads(put_together(body))["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        ("a", "f", '{"x": 1}'),
        ("b", "g", '{"y": "é"}'),
    ], "arguments are a text, also where a server sends an object"


def test_a_call_of_the_older_form_comes_in_pieces_too() -> None:
    pieces = [{"name": "f", "arguments": ""}, {"arguments": '{"x"'}, {"arguments": ": 1}"}]
    body = stream(*(chunk({"function_call": piece}) for piece in pieces), chunk({}, "function_call"))
    message = json.loads(put_together(body))["choices"][0]["message"]
    assert message["function_call"] == {"name": "f", "arguments": '{"x": 1}'}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (stream(chunk({"content": "Ro"})), "connection"),
        (stream(chunk({"content": "Ro"}), "{broken"), "connection"),
        (stream(chunk({"content": "Ro"}), {"error": {"code": 502, "message": "upstream"}}), "server"),
        (b'event: error\ndata: {"error": {"type": "overloaded_error", "message": "x"}}\n\n', "server"),
        (stream({"message": "slow down", "code": 429, "object": "error"}), "rate_limit"),
        (stream({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, "[DONE]"), "server"),
        (stream(chunk({"content": "Ro"}, "stop", base_resp={"status_code": 1002})), "rate_limit"),
    ],
)
async def test_a_stream_that_breaks_off_is_asked_again_and_never_an_answer(body: bytes, code: str) -> None:
    async with connected(lambda *_: Reply(body=body), retries=1) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(request())
    assert caught.value.code == code
    assert len(client.server.requests) == 2


@pytest.mark.parametrize("event", ["[1]", "[" * 100_000, '{"choices": [{"delta": "x"}]}'])
def test_a_stream_of_anything_else_is_broken(event: str) -> None:
    with pytest.raises(BrokenStream):
        put_together(stream(event, "[DONE]"))


def test_parts_come_before_the_text_and_the_last_event_needs_no_blank_line() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:"}}
    body = stream(chunk({"content": [part]}), chunk({"content": "Ro"}), chunk({"content": "me"}, "stop"))
    message = json.loads(put_together(body.rstrip(b"\n")))["choices"][0]["message"]
    assert message == {"content": [part, {"type": "text", "text": "Rome"}]}
    split = b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "a"}}]}\n\ndata: [DONE]'
    assert json.loads(put_together(split))["choices"][0]["message"] == {"content": "a"}


def test_calls_stand_in_the_order_of_their_places_however_they_come() -> None:
    calls = [{"index": n, "id": f"c{n}", "function": {"name": f"f{n}"}} for n in (2, 0, 1)]
    body = stream(*(chunk({"tool_calls": [call]}) for call in calls), chunk({}, "tool_calls"))
    found = json.loads(put_together(body))["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in found] == ["c0", "c1", "c2"]


def message_of(*chunks: Body | str) -> Any:
    return json.loads(put_together(stream(*chunks, chunk({}, "stop"))))["choices"][0]["message"]


def test_of_several_choices_the_first_is_put_together() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "Paris"}, "finish_reason": "length"}]}
    both = {"choices": [*chunk({"content": "Ro"})["choices"], *second["choices"]]}
    assert message_of(both, second, {"choices": [{"delta": {"content": "me"}}]}) == {"content": "Rome"}


@pytest.mark.parametrize("key", ["content", "reasoning_content", "reasoning", "refusal"])
def test_each_text_of_a_message_comes_in_pieces(key: str) -> None:
    assert message_of(chunk({key: "a"}), chunk({key: None}), chunk({key: "b"})) == {key: "ab"}


def test_a_whole_message_in_an_event_is_one() -> None:
    assert message_of({"choices": [{"index": 0, "message": {"content": "Rome"}}]}) == {"content": "Rome"}


def test_calls_without_places_stand_as_listed_and_keep_the_id_that_was_said() -> None:
    calls = [{"id": f"c{n}", "function": {"name": f"f{n}"}} for n in range(2)]
    more = [{"index": 0, "id": "", "function": {"arguments": "{}"}}, {"index": 1, "id": None}]
    found = message_of(chunk({"tool_calls": calls}), chunk({"tool_calls": more}))["tool_calls"]
    assert found == [
        {"id": "c0", "function": {"name": "f0", "arguments": "{}"}},
        {"id": "c1", "function": {"name": "f1", "arguments": ""}},
    ]


def test_what_follows_the_end_of_a_stream_is_no_part_of_it() -> None:
    body = stream(chunk({"content": "Ro"}), "[DONE]", chunk({"content": "me"}), "no JSON")
    assert json.loads(put_together(body))["choices"][0]["message"] == {"content": "Ro"}


def test_all_that_a_reply_says_of_itself_is_kept() -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": "eos"}]}
    said = json.loads(
        put_together(stream(chunk({"content": "a"}, id="x", model="m"), last, {"usage": USAGE}))
    )
    assert (said["id"], said["model"], said["usage"]) == ("x", "m", USAGE)
    assert said["choices"][0]["native_finish_reason"] == "eos"


@pytest.mark.parametrize(
    ("body", "streamed"),
    [
        (b"data: {}", True),
        (b"event: a", True),
        (b"id: 7", True),
        (b"retry: 9", True),
        (b": hello", True),
        (b"\xef\xbb\xbf \n data: {}", True),
        (b'{"object": "chat.completion.chunk"}\n{}', True),
        (b'\xef\xbb\xbf{"delta": 1} \r\n\r\n{}', True),
        (b'{"object": "chat.completion"}\n{}', False),
        (b'{"delta": 1}\n', False),
        (b'{"delta":\n{}}', False),
        (b"date: today", False),
    ],
)
def test_a_stream_is_known_by_how_it_begins(body: bytes, streamed: bool) -> None:
    assert is_stream(body) is streamed
