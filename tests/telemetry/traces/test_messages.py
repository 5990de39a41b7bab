"""What tools said, and what models thought, in the spellings there are."""

import pytest

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.messages import (
    answers_in,
    content,
    conversation,
    langchain_result,
    parsed,
    said_by_tool,
)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (" 4\n", "4"),
        (None, ""),
        (0, "0"),
        ({"content": "4"}, "4"),
        ({"content": " 4", "role": "tool", "type": "tool_result"}, "4"),
        ({"content": {"n": 4}}, '{"n": 4}'),
        ({"content": "4", "more": 1}, '{"content": "4", "more": 1}'),
        ({"role": "tool"}, '{"role": "tool"}'),
        ({"type": "tool", "data": {"tool_call_id": "1", "content": "4"}}, "4"),
        ({"type": "tool", "data": {"content": "4"}}, '{"type": "tool", "data": {"content": "4"}}'),
        ({"type": "tool", "data": ["tool_call_id"]}, '{"type": "tool", "data": ["tool_call_id"]}'),
        ({"type": "ai", "data": {"tool_call_id": "1"}}, '{"type": "ai", "data": {"tool_call_id": "1"}}'),
    ],
)
def test_a_result_of_a_tool_is_its_text_or_json(found: Json, said: str) -> None:
    assert said_by_tool(found) == said


def test_only_a_whole_message_is_a_result_as_langchain_writes_it() -> None:
    data = {"tool_call_id": "1"}
    assert langchain_result({"type": "tool", "data": data}) == data
    assert langchain_result({"type": "tool", "data": data, "id": 1}) is None


def said(role: str, *parts: Json, **more: Json) -> dict[str, Json]:
    return {"role": role, "parts": [*parts], **more}


def test_of_a_stream_the_whole_is_the_answer_and_thoughts_are_apart() -> None:
    parts: list[Json] = [
        said("assistant", "It is "),
        said("assistant", "noon."),
        said("assistant", "It is noon."),
    ]
    found = conversation([{"role": "user", "content": "When?"}], parts)
    assert (found.asked, found.answered) == ("When?", "It is noon.")
    assert conversation([], parts[:2]).answered == "It is\nnoon."
    thought: Json = {"type": "thinking", "thinking": " It asks for the time. "}
    blank: Json = {"type": "reasoning", "content": "  "}
    found = conversation([], [said("assistant", thought, blank, "Noon.", reasoning_content="Hm.")])
    assert (found.answered, found.thoughts) == ("Noon.", ("Hm.", "It asks for the time."))


def test_calls_are_those_since_the_user_spoke_and_results_find_theirs() -> None:
    def call(id_: str, name: str) -> Json:
        return {"type": "tool_call", "id": id_, "name": name, "arguments": {"b": 1, "a": 2}}

    def result(id_: str, text: str, **more: Json) -> Json:
        return {"type": "tool_call_response", "id": id_, "response": text, **more}

    before = [said("user", "Hi"), said("assistant", call("c0", "early")), said("user", "Do it.")]
    since = [
        said("assistant", call("c1", "f"), call("c2", "g")),
        said("tool", result("c2", "two", is_error=True), result("c1", "one"), result("c9", "nobody's")),
    ]
    found = conversation([*before, *since], [said("assistant", call("c2", "g"), call("c3", "h"))])
    assert [(one.id, one.name, one.result, one.failed) for one in found.calls] == [
        ("c1", "f", "one", False),
        ("c2", "g", "two", True),
        ("c9", "", "nobody's", False),
        ("c3", "h", None, False),
    ]
    assert (found.answers, found.calls[0].arguments) == (1, '{"a":2,"b":1}')


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1}\n ', {"a": 1}),
        ('{"a": 1} b', '{"a": 1} b'),
        ('["a", NaN, 1e999]', ["a", "NaN", "1e999"]),
        ("{a", "{a"),
        ("[" * 100_000, "[" * 100_000),
        ("7", "7"),
        (7, 7),
        ("", ""),
    ],
)
def test_an_attribute_is_json_where_it_is_a_whole_list_or_object(given: Json, found: Json) -> None:
    assert parsed(given) == found


@pytest.mark.parametrize(
    ("found", "said_"),
    [
        (" a ", "a"),
        (["a", "", {"text": "b"}, {"type": "image", "text": "c"}, {"content": "d"}], "a\nb\nd"),
        ({"content": " a"}, "a"),
        ({"type": "output_text", "text": "a"}, "a"),
        (None, ""),
        (7, "7"),
    ],
)
def test_the_text_of_a_message_is_its_own_or_that_of_its_parts(found: Json, said_: str) -> None:
    assert content(found) == said_


@pytest.mark.parametrize(
    ("found", "count"),
    [
        ({"output": [{"type": "function_call"}, {"role": "assistant"}, {"type": "message"}]}, 2),
        ({"choices": [{"message": {"role": "assistant"}}, {"text": "x"}, 7]}, 1),
        ([{"choices": [{"message": {"role": "assistant"}}]}, {"output": None}], 1),
        ([{"choices": [{"message": {"role": "assistant"}}]}, 7], 0),
        ("text", 0),
    ],
)
def test_a_whole_answer_of_openai_holds_its_messages(found: Json, count: int) -> None:
    assert len(answers_in(found)) == count
