"""What is read: a server's completion, whatever it holds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fake_model
from support.reached import reached, reaches

from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.llm.replies.provider_faults import ProviderFault
from pytest_tfgrpo.llm.replies.response import (
    Malformed,
    RawCompletion,
    complaint_of,
    parse_body,
    read_answer,
    read_usage,
)


def answer(finish: Any = "stop", **message: Any) -> RawCompletion:
    return read_answer(fake_model.completion({"role": "assistant", **message}, finish))


def test_a_text_is_read() -> None:
    found = answer(content="42")
    assert (found.text, found.tool_calls, found.finish, found.model) == ("42", (), "stop", "fake-model-1")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "4"}, {"type": "output_text", "text": "2"}], "42"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "42"}], "42"),
        ([], ""),
        ("half \ud800 pair", "half \ufffd pair"),
        ("whole \U0001f600 pair", "whole \U0001f600 pair"),
    ],
)
def test_a_content_may_be_text_parts_or_nothing(content: Any, text: str) -> None:
    assert answer(content=content).text == text


def test_hidden_reasoning_is_no_part_of_the_answer() -> None:
    assert answer(content="42", reasoning_content="six times seven", reasoning="...").text == "42"


@pytest.mark.parametrize(
    "message",
    [
        {"content": "<think>hm</think>42"},
        {"content": "42", "reasoning_content": "hm"},
        {"content": "42", "reasoning": "hm"},
        {"content": "42", "thinking": "hm"},
        {"content": "42", "thought": {"text": "hm"}},
        {"content": "42", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"content": "42", "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "x"}]},
        {"content": "<think>hm</think>42", "reasoning_content": "hm"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "42"}]},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "42"},
            ]
        },
        {"content": [{"type": "thought", "text": "hm"}, {"type": "text", "text": "42"}]},
        {"content": [{"type": "redacted_thinking", "text": "hm"}, {"type": "text", "text": "42"}]},
        {"content": [{"type": "reasoning", "summary": [{"text": "hm"}]}, {"type": "text", "text": "42"}]},
        {"content": [{"type": "text", "text": "<think>h"}, {"type": "text", "text": "m</think>42"}]},
    ],
)
def test_thoughts_are_kept_apart_from_the_answer(message: Any) -> None:
    found = answer(**message)
    assert (found.text, found.thoughts, found.why_empty) == ("42", "hm", "")


@pytest.mark.parametrize(
    ("message", "finish", "why"),
    [
        ({"content": "<think>hm"}, "stop", "its thoughts begin with <think> and never end"),
        ({"content": "", "reasoning_content": "hm"}, "stop", "it returned thoughts alone"),
        ({"content": None}, "MALFORMED_FUNCTION_CALL", "finish_reason 'MALFORMED_FUNCTION_CALL'"),
        (
            {"content": "Ro"},
            "malformed_function_call",
            "finish_reason 'malformed_function_call' after 'Ro'",
        ),
        ({"content": None}, "stop", ""),
    ],
)
def test_an_empty_answer_says_what_is_known_of_it(message: Any, finish: str, why: str) -> None:
    found = answer(finish, **message)
    assert (found.text, found.why_empty) == ("", why)


@pytest.mark.parametrize(
    ("content", "native", "why"),
    [
        (None, "BLOCKED_BY_US", "finish_reason 'BLOCKED_BY_US'"),
        (None, "end_turn", ""),
        ("Ro", "Malformed-Function-Call", "finish_reason 'Malformed-Function-Call' after 'Ro'"),
    ],
)
def test_the_reason_of_the_provider_behind_a_router_says_why_an_answer_is_empty(
    content: str | None, native: str, why: str
) -> None:
    choice = {
        "message": {"role": "assistant", "content": content}, "finish_reason": "stop",
        "native_finish_reason": native,
    }  # fmt: skip
    found = read_answer({"choices": [choice]})
    assert (found.text, found.why_empty) == ("", why)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "stop"),
        (None, "stop"),
        ("eos", "stop"),
        ("something new", "stop"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("content-filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "stop"),
        *((reason, "length") for reason in ("max_tokens", "max_output_tokens", "max_length")),
        *((reason, "length") for reason in ("token_limit", "context_length")),
        ("model_context_window_exceeded", "length"),
        *((reason, "content_filter") for reason in ("content_filtered", "blocklist", "prohibited_content")),
        *((reason, "content_filter") for reason in ("SPII", "IMAGE_SAFETY", "moderation")),
        ("guardrail_intervened", "content_filter"),
        ("refusal", "refusal"),
    ],
)
def test_why_the_model_stopped(reason: str | None, finish: str) -> None:
    assert answer(reason, content="42").finish == finish


def test_a_refusal_may_be_a_part_of_the_content() -> None:
    parts = [{"type": "refusal", "refusal": "No."}, {"type": "refusal"}, {"type": "odd", "refusal": "x"}]
    assert answer(content=parts).text == "No."


def test_a_refusal_is_its_text() -> None:
    found = answer(content=None, refusal="I can't help with that.")
    assert (found.text, found.finish) == ("I can't help with that.", "refusal")
    found = answer(content="So far.", refusal="I can't help with that.")
    assert (found.text, found.finish) == ("So far.", "refusal")


def test_tool_calls_are_read_as_written_and_each_gets_an_id() -> None:
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "a", "function": {"name": "f", "arguments": "{broken"}},
        {"function": {"name": "g", "arguments": {"x": 1}}},
        {"id": None, "function": {"name": "h"}},
    ]
    found = answer("stop", content=None, tool_calls=calls)
    assert found.finish == "tool_calls"
    assert [(c.name, c.arguments) for c in found.tool_calls] == [
        ("f", '{"x": 1}'),
        ("f", "{broken"),
        ("g", '{"x": 1}'),
        ("h", ""),
    ]
    assert len({c.id for c in found.tool_calls}) == 4


def test_names_of_a_server_are_sound_and_bounded() -> None:
    call = {"id": "i\ud800" + "d" * 300, "function": {"name": "f\ud800", "arguments": "\ud800"}}
    body = fake_model.completion({"role": "assistant", "content": None, "tool_calls": [call]}, "stop")
    found = read_answer({**body, "model": "m\ud800" + "o" * 300})
    assert found.model == "m\ufffd" + "o" * 198
    (made,) = found.tool_calls
    assert (made.id, made.name, made.arguments) == ("i\ufffd" + "d" * 198, "f\ufffd", "\ufffd")


def test_the_older_form_of_a_call_is_a_call() -> None:
    found = answer("function_call", content=None, function_call={"name": "f", "arguments": '{"x": 1}'})
    assert found.finish == "tool_calls"
    assert [(c.id, c.name, c.arguments) for c in found.tool_calls] == [("call_0", "f", '{"x": 1}')]


def test_of_both_forms_of_a_call_the_newer_one_counts() -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("f", "g")]
    older = {"name": "f", "arguments": "{}"}
    found = answer("tool_calls", content=None, tool_calls=calls, function_call=older)
    assert [(c.id, c.name) for c in found.tool_calls] == [("f", "f"), ("g", "g")]


def test_a_lone_call_needs_no_list_and_an_empty_one_is_none() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    found = answer("tool_calls", content=None, tool_calls=call)
    assert [(c.id, c.name) for c in found.tool_calls] == [("a", "f")]
    for empty in (
        {"function_call": {}},
        {"function_call": {"name": "", "arguments": ""}},
        {"tool_calls": {}},
    ):
        found = answer("stop", content="Rome", **empty)
        assert (found.text, found.tool_calls, found.finish) == ("Rome", (), "stop")


def test_calls_cut_by_the_limit_are_a_truncated_answer() -> None:
    calls = [{"id": "a", "function": {"name": "f", "arguments": '{"x'}}]
    assert answer("length", content=None, tool_calls=calls).finish == "length"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "no choices"),
        ({"choices": {}}, "no choices"),
        ({"choices": []}, "empty choices"),
        ({"choices": [None]}, "has no message"),
        ({"choices": [{"text": "old protocol"}]}, "has no message"),
        ({"choices": [{"message": {"content": 42}}]}, "neither text nor a list"),
        ({"choices": [{"message": {"content": ["x"]}}]}, "is not an object"),
        ({"choices": [{"message": {"content": [{"type": "text"}]}}]}, "text None"),
        ({"choices": [{"message": {"content": "x"}, "finish_reason": 7}]}, "finish_reason 7"),
        ({"choices": [{"message": {"tool_calls": "f()"}}]}, "not a list"),
        ({"choices": [{"message": {"tool_calls": [{}]}}]}, "names no function"),
        ({"choices": [{"message": {"tool_calls": [{"function": {"name": 1}}]}}]}, "names no function"),
        ({"choices": [{"message": {"tool_calls": [{}] * 1000}}]}, "1000 tool calls"),
    ],
)
def test_what_is_no_completion_is_refused(body: dict[str, Any], said: str) -> None:
    with pytest.raises(Malformed, match=said):
        read_answer(body)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"[1]", "not an object"),
        (b'{"a": NaN}', "NaN is not a valid JSON number"),
        (b'{"a": -Infinity}', "not a valid JSON number"),
        (b'{"a": 1, "a": 2}', "a key occurs twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": ' * 200_000, "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        parse_body(data)


def test_a_body_may_begin_with_the_mark_of_its_bytes() -> None:
    assert parse_body(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"error": {"message": "no", "code": "c", "type": "t"}}, ("no", "c t")),
        ({"error": {"message": "no", "code": 7, "type": "t"}}, ("no", "t")),
        ({"error": {"detail": "no"}}, ("no", "")),
        ({"error": {"error": "no"}}, ("no", "")),
        ({"detail": [{"msg": "é"}]}, ('[{"msg": "é"}]', "")),
        ({"error": "no", "code": "c"}, ("no", "")),
        ({"error": ["no"]}, ("", "")),
        (["no"], ("", "")),
    ],
)
def test_a_complaint_is_found_in_the_usual_shapes(body: Any, complaint: tuple[str, str]) -> None:
    assert complaint_of(body) == complaint


MEMBERS = (
    *("choices", "message", "content", "type", "text", "refusal", "error", "finish_reason", "id"),
    *("tool_calls", "function", "name", "arguments", "usage", "prompt_tokens", "completion_tokens"),
    *(
        "total_tokens",
        "completion_tokens_details",
        "reasoning_tokens",
        "prompt_tokens_details",
        "cached_tokens",
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5),
    max_leaves=40,
)


COUNTS = st.integers(0, 50)
USAGES = st.fixed_dictionaries(
    {"prompt_tokens": COUNTS, "completion_tokens": COUNTS},
    optional={
        "total_tokens": st.integers(0, 150),
        "completion_tokens_details": st.fixed_dictionaries({"reasoning_tokens": COUNTS}),
        "prompt_tokens_details": st.fixed_dictionaries({"cached_tokens": COUNTS}),
    },
)
CALLS = st.fixed_dictionaries(
    {
        "function": st.fixed_dictionaries(
            {"name": st.text("ab", min_size=1), "arguments": st.just("{}") | JSON}
        )
    },
    optional={"id": st.text(max_size=3)},
)
MESSAGES = st.fixed_dictionaries(
    {"content": st.text(max_size=5)}, optional={"tool_calls": st.lists(CALLS, max_size=2)}
)


@reaches("an answer", "tool calls", "a usage", "malformed")
@given(JSON, JSON | USAGES, JSON | MESSAGES)
def test_any_json_is_an_answer_or_malformed(whole: Any, choice: Any, message: Any) -> None:
    for body in (whole, {"choices": [choice]}, {"choices": [{"message": message}], "usage": choice}):
        try:
            parsed = parse_body(json.dumps(body).encode())
            reached("a usage", read_usage(parsed, 1000, 1000) is not None)
            found = read_answer(parsed)
        except (Malformed, ProviderFault):
            reached("malformed")
            continue
        reached("an answer")
        reached("tool calls", found.tool_calls)
        found.text.encode()
        assert all(isinstance(call.arguments, str) for call in found.tool_calls)


@pytest.mark.parametrize(
    ("figures", "usage"),
    [
        (fake_model.usage(100, 20), Usage(prompt=100, completion=20)),
        ({"prompt_tokens": 100, "completion_tokens": 20}, Usage(prompt=100, completion=20)),
        (
            fake_model.usage(100, 20, reasoning=15, cached=64),
            Usage(prompt=100, completion=20, reasoning=15, cached=64),
        ),
        (
            {**fake_model.usage(100, 20), "completion_tokens_details": None, "prompt_tokens_details": {}},
            Usage(prompt=100, completion=20),
        ),
        ({**fake_model.usage(100, 20), "cost": 0.1, "queue_time": 3}, Usage(prompt=100, completion=20)),
        (
            {**fake_model.usage(100, 20), "total_tokens": 420},
            Usage(prompt=100, completion=320, reasoning=300),
        ),
        (
            {**fake_model.usage(100, 20, reasoning=300), "total_tokens": 420},
            Usage(prompt=100, completion=320, reasoning=300),
        ),
        ({**fake_model.usage(100, 20, reasoning=300), "total_tokens": 500}, None),
        ({**fake_model.usage(100, 20), "total_tokens": 119}, None),
        ({**fake_model.usage(100, 20), "total_tokens": "120"}, None),
        (fake_model.usage(100, 20, reasoning=21), None),
        (fake_model.usage(100, 20, cached=101), None),
        (fake_model.usage(100, 20, cached=-1), None),
        (fake_model.usage(100, 5000), None),
        (fake_model.usage(100, 3000), Usage(prompt=100, completion=3000)),
        (fake_model.usage(100, 3001), None),
        (fake_model.usage(100_000, 20), None),
        (fake_model.usage(12_000, 20), Usage(prompt=12_000, completion=20)),
        (fake_model.usage(12_001, 20), None),
        (fake_model.usage(0, 0), Usage(prompt=0, completion=0)),
        *((figures, None) for figures in fake_model.WRONG_USAGE),
    ],
)
def test_token_counts_are_believed_when_they_can_be_true(figures: Any, usage: Usage | None) -> None:
    assert read_usage({"usage": figures}, most_prompt=1000, most_completion=1000) == usage
