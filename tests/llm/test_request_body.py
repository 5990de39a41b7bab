"""What is sent: a request as servers of the protocol read it."""

import base64
import json
from typing import Any

import pytest
from support import fake_model
from support.fake_model import check_request

from pytest_tfgrpo.llm.endpoints import Endpoint
from pytest_tfgrpo.llm.protocol import Image, Message, Request, ToolCall, ToolSpec
from pytest_tfgrpo.llm.request_body import ASK_SCHEMA, PER_IMAGE_TOKENS, body_of, most_prompt_tokens

SYSTEM = Message(role="system", content="Be brief.")
USER = Message(role="user", content="How many?")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOL = ToolSpec(name="count", description="counts", parameters={"type": "object", "properties": {}})


def body(*messages: Message, endpoint: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return the body as a strict server reads it."""
    asked = Request(messages=messages or (USER,), temperature=0.25, **fields)
    sent = json.loads(body_of(asked, "m", Endpoint(**(endpoint or {})), "max_tokens", 77))
    check_request(sent, frozenset({"chat_template_kwargs"}))
    assert isinstance(sent, dict)
    return sent


def test_a_plain_request_says_model_messages_temperature_and_limit() -> None:
    assert body(SYSTEM, USER) == {
        "model": "m",
        "max_tokens": 77,
        "temperature": 0.25,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How many?"}],
    }


def test_the_limit_goes_by_the_name_that_the_server_knows() -> None:
    asked = Request(messages=(USER,), temperature=0)
    sent = json.loads(body_of(asked, "m", Endpoint(), "max_completion_tokens", 5))
    assert (sent["max_completion_tokens"], "max_tokens" in sent) == (5, False)


def test_a_seed_is_sent_as_31_bits_where_the_server_takes_one() -> None:
    assert body(seed=2**62 + 5)["seed"] == 5
    assert "seed" not in body(seed=5, endpoint={"seed": False})
    assert "seed" not in body()


def test_a_model_that_refuses_a_temperature_is_sent_none() -> None:
    assert "temperature" not in body(endpoint={"temperature": False})


def test_reasoning_effort_and_further_members_are_sent() -> None:
    fields = {"reasoning_effort": "high", "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
    sent = body(endpoint=fields)
    assert sent["reasoning_effort"] == "high"
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("kind", ["raw", "processed", "unknown"])
def test_log_probabilities_are_asked_for_where_the_endpoint_says_what_they_are(kind: str) -> None:
    sent = body(logprobs=True, endpoint={"logprobs": kind})
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 1)
    own = body(logprobs=True, endpoint={"logprobs": kind, "extra_body": {"top_logprobs": 0}})
    assert (own["logprobs"], own["top_logprobs"]) == (True, 0)


def test_no_log_probabilities_are_asked_for_otherwise() -> None:
    assert body(logprobs=True) == body() == body(endpoint={"logprobs": "raw"})


def test_system_messages_go_by_the_name_that_the_model_knows() -> None:
    roles = [m["role"] for m in body(SYSTEM, USER, endpoint={"system_role": "developer"})["messages"]]
    assert roles == ["developer", "user"]


def test_for_a_model_without_system_role_they_open_the_next_message_of_the_user() -> None:
    sent = body(SYSTEM, SYSTEM, USER, SYSTEM, endpoint={"system_role": "user"})["messages"]
    assert sent == [
        {"role": "user", "content": "Be brief.\n\nBe brief.\n\nHow many?"},
        {"role": "user", "content": "Be brief."},
    ]


def test_tools_and_their_calls_are_written_as_functions() -> None:
    call = ToolCall(id="c1", name="count", arguments='{"of": "x"}')
    said = Message(role="assistant", content="", tool_calls=(call,))
    sent = body(USER, said, Message(role="tool", content="3", tool_call_id="c1"), tools=(TOOL,))
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {"name": "count", "description": "counts", "parameters": dict(TOOL.parameters)},
        }
    ]
    assert sent["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"of": "x"}'}}
            ],
        },
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
    ]


@pytest.mark.parametrize("broken", ['{"of": "x', "", "[1]", "NaN", "[" * 100_000])
def test_broken_arguments_are_sent_back_as_an_object_that_servers_can_parse(broken: str) -> None:
    said = Message(role="assistant", content="", tool_calls=(ToolCall(id="c", name="f", arguments=broken),))
    sent = body(USER, said, Message(role="tool", content="malformed", tool_call_id="c"))
    arguments = json.loads(sent["messages"][1]["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"malformed_arguments": broken}


def test_pictures_are_sent_as_data() -> None:
    picture = Image(media_type="image/png", data=b"\x89PNG...")
    sent = body(Message(role="user", content="What is this?", images=(picture,)))
    assert sent["messages"][0]["content"] == [
        {"type": "text", "text": "What is this?"},
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{base64.b64encode(picture.data).decode()}"},
        },
    ]


def test_a_schema_is_enforced_where_the_server_can() -> None:
    sent = body(schema=SCHEMA)
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA},
    }
    assert sent["messages"][-1]["content"] == "How many?"


@pytest.mark.parametrize(
    ("change", "strict"),
    [
        ({"required": ["n"], "additionalProperties": False}, True),
        ({"required": ["n"]}, False),
        ({"additionalProperties": False}, False),
        ({"required": ["n"], "additionalProperties": False, "properties": {"n": {"type": "object"}}}, False),
    ],
)
def test_it_is_strict_where_every_object_is_closed(change: dict[str, Any], strict: bool) -> None:
    sent = body(schema={**SCHEMA, **change})
    assert sent["response_format"]["json_schema"].get("strict", False) is strict


@pytest.mark.parametrize(("structured", "wanted"), [("json_object", {"type": "json_object"}), ("none", None)])
def test_elsewhere_a_schema_is_asked_for_in_words(structured: str, wanted: Any) -> None:
    sent = body(schema=SCHEMA, endpoint={"structured": structured})
    assert sent.get("response_format") == wanted
    asked = sent["messages"][-1]["content"]
    assert asked.startswith("How many?\n\nAnswer with one JSON value")
    assert asked.endswith(json.dumps(SCHEMA, separators=(",", ":")))


def test_the_words_find_a_place_beside_pictures_and_without_any_message_of_the_user() -> None:
    picture = Message(role="user", content="", images=(Image(media_type="image/png", data=b"x"),))
    beside = body(picture, schema=SCHEMA, endpoint={"structured": "none"})["messages"][-1]["content"]
    assert [part["type"] for part in beside] == ["image_url", "text"]
    alone = body(SYSTEM, schema=SCHEMA, endpoint={"structured": "none"})["messages"]
    assert [message["role"] for message in alone] == ["system", "user"]
    said = Message(role="assistant", content="Yes?")
    folded = body(SYSTEM, said, USER, endpoint={"system_role": "user"})["messages"]
    assert [message["role"] for message in folded] == ["user", "assistant", "user"]


def test_no_text_is_too_strange_to_send() -> None:
    sent = body(Message(role="user", content="half \ud800 of a pair, \x00, é"))
    assert sent["messages"][0]["content"] == "half ? of a pair, \x00, é"


def test_the_bound_is_at_least_every_byte_that_is_sent() -> None:
    picture = Image(media_type="image/png", data=b"x" * 100_000)
    call = ToolCall(id="c", name="count", arguments='{"of": "' + "y" * 500 + '"}')
    asked = Request(
        messages=(
            Message(role="system", content="é" * 1000),
            Message(role="user", content="x" * 1000, images=(picture, picture)),
            Message(role="assistant", content="", tool_calls=(call,)),
            Message(role="tool", content="z" * 700, tool_call_id="c"),
        ),
        temperature=0,
        tools=(TOOL,) * 5,
        schema=SCHEMA,
    )
    sent = body_of(asked, "m", Endpoint(structured="none"), "max_tokens", 1)
    pictures = 2 * len(base64.b64encode(picture.data))
    assert most_prompt_tokens(asked) > len(sent) - pictures + 2 * PER_IMAGE_TOKENS - 600


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": []},
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "none"}]},
        {"messages": [{"role": "assistant", **fake_model.calls(("f", {})).body["choices"][0]["message"]}]},  # type: ignore[index]
        {"messages": [{"role": "user", "content": "x"}], "surprise": 1},
        {"messages": [{"role": "user", "content": "x"}], "temperature": 3},
    ],
)
def test_the_fake_server_refuses_what_real_ones_refuse(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError)):
        check_request({"model": "m", **wrong})


PICTURE = Image(media_type="image/png", data=b"p")
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,cA=="}}


@pytest.mark.parametrize(
    ("messages", "written"),
    [
        ((SYSTEM,), [("user", "Be brief.")]),
        ((SYSTEM, SYSTEM), [("user", "Be brief.\n\nBe brief.")]),
        ((SYSTEM, USER), [("user", "Be brief.\n\nHow many?")]),
        ((USER, SYSTEM), [("user", "How many?"), ("user", "Be brief.")]),
        (
            (USER, SYSTEM, USER, USER),
            [("user", "How many?"), ("user", "Be brief.\n\nHow many?"), ("user", "How many?")],
        ),
        (
            (SYSTEM, Message(role="assistant", content="3"), USER),
            [("user", "Be brief."), ("assistant", "3"), ("user", "How many?")],
        ),
        (
            (SYSTEM, Message(role="user", content="How many?", images=(PICTURE,))),
            [("user", [{"type": "text", "text": "Be brief.\n\nHow many?"}, SHOWN])],
        ),
        ((Message(role="user", content="", images=(PICTURE, PICTURE)),), [("user", [SHOWN, SHOWN])]),
    ],
)
def test_what_the_system_says_is_said_by_the_user_with_all_that_its_message_has(
    messages: tuple[Message, ...], written: list[Any]
) -> None:
    sent = body(*messages, endpoint={"system_role": "user"})
    assert [(message["role"], message["content"]) for message in sent["messages"]] == written


@pytest.mark.parametrize("structured", ["json_object", "none"])
@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        ((USER,), [("user", "How many?\n\n{}")]),
        ((USER, Message(role="assistant", content="3")), [("user", "How many?\n\n{}"), ("assistant", "3")]),
        (
            (USER, Message(role="assistant", content="3"), USER),
            [("user", "How many?"), ("assistant", "3"), ("user", "How many?\n\n{}")],
        ),
        ((SYSTEM,), [("system", "Be brief."), ("user", "{}")]),
        (
            (Message(role="user", content="", images=(PICTURE,)),),
            [("user", [SHOWN, {"type": "text", "text": "{}"}])],
        ),
    ],
)
def test_a_schema_that_is_not_enforced_is_asked_for_at_the_end_of_the_users_last_message(
    structured: str, messages: tuple[Message, ...], asked: list[Any]
) -> None:
    sent = body(*messages, endpoint={"structured": structured}, schema=SCHEMA)
    words = ASK_SCHEMA + json.dumps(SCHEMA, separators=(",", ":"))
    expected = json.loads(json.dumps(asked).replace("{}", json.dumps(words)[1:-1]))
    found = [[message["role"], message["content"]] for message in sent["messages"]]
    assert json.dumps(found).replace(": ", ":").replace(", ", ",") == json.dumps(expected).replace(
        ": ", ":"
    ).replace(", ", ",")
    assert ("response_format" in sent) is (structured == "json_object")


def _closed(*names: str, required: Any = None, **more: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return (
        schema
        | {"additionalProperties": False, "required": [*(names if required is None else required)]}
        | more
    )


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (_closed("a", "b"), True),
        (_closed(), True),
        (_closed("a", "b", required=["a"]), False),
        (_closed("a", required=["a", "b"]), False),
        (_closed("a", additionalProperties=True), False),
        ({"type": "object", "properties": {}, "required": []}, False),
        ({"type": "object", "additionalProperties": False}, True),
        ({"properties": {"a": {}}, "additionalProperties": False, "required": ["a"]}, True),
        ({"properties": {"a": {}}}, False),
        ({"type": "array", "items": _closed("a")}, True),
        ({"type": "array", "items": _closed("a", required=[])}, False),
        ({"anyOf": [_closed("a"), {"type": "object"}]}, False),
        ({"anyOf": [_closed("a"), _closed("b")]}, True),
    ],
)
def test_a_schema_is_strict_where_every_object_is_closed(schema: dict[str, Any], strict: bool) -> None:
    sent = body(endpoint={"structured": "json_schema"}, schema=schema)
    wanted = {"name": "answer", "schema": schema} | ({"strict": True} if strict else {})
    assert sent["response_format"] == {"type": "json_schema", "json_schema": wanted}


def test_the_most_tokens_of_a_call_grow_with_its_name_and_twice_with_its_arguments() -> None:
    def most(name: str, arguments: str) -> int:
        call = ToolCall(id="1", name=name, arguments=arguments)
        asked = Message(role="assistant", content="", tool_calls=(call,))
        return most_prompt_tokens(Request(messages=(USER, asked), temperature=0.0))

    assert most("counting", "{}") == most("count", "{}") + 3
    assert most("count", '{"ä":1}') == most("count", "{}") + 2 * 6
