"""Calls that a model wrote into its text."""

import json
from typing import Any

import pytest
from support import fake_model
from support.growth import growth

from pytest_tfgrpo.llm.replies.response import RawCompletion, read_answer
from pytest_tfgrpo.llm.replies.written_calls import begins_call, read_written_calls

TOOLS = ("look",)
CALL = '{"name": "look", "arguments": {"q": "Rome", "n": 2}}'


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"<tool_calls>[{CALL}]</tool_calls>",
        f"<|tool_call|>[{CALL}]",
        f"<function_call>{CALL}</function_call>",
        f"[TOOL_CALLS][{CALL}]",
        '[TOOL_CALLS]look[ARGS]{"q": "Rome", "n": 2}',
        f"<|python_tag|>{CALL.replace('arguments', 'parameters')}",
        '<function=look>{"q": "Rome", "n": 2}</function>',
        "<tool_call>\n<function=look>\n<parameter=q>\nRome\n</parameter>\n<parameter=n>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>look\n<arg_key>q</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>n</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>"
        '{"q": "Rome", "n": 2}<|tool_call_end|><|tool_calls_section_end|>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{"q": "Rome", "n": 2}'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"q": "Rome", "n": 2}',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n'
        '<｜DSML｜parameter name="q" string="true">Rome</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="n" string="false">2</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        '<minimax:tool_call>\n<invoke name="look">\n<parameter name="q">Rome</parameter>\n'
        '<parameter name="n">2</parameter>\n</invoke>\n</minimax:tool_call>',
        f"functools[{CALL}]",
        f"<|action_start|><|plugin|>{CALL}<|action_end|>",
        CALL,
        CALL.replace("arguments", "parameters"),
        f"[{CALL}]",
    ],
)
def test_the_usual_forms_are_read(text: str) -> None:
    found = read_written_calls(text, TOOLS)
    assert found.text == ""
    ((name, arguments),) = [(call.name, json.loads(call.arguments)) for call in found.calls]
    assert (name, arguments) == ("look", {"q": "Rome", "n": 2})


def test_an_argument_that_is_marked_as_text_stays_text() -> None:
    tag = "｜DSML｜"
    text = f'<{tag}invoke name="look"><{tag}parameter name="q" string="true">7</{tag}parameter></{tag}invoke>'
    (call,) = read_written_calls(f"<{tag}function_calls>{text}</{tag}function_calls>", TOOLS).calls
    assert json.loads(call.arguments) == {"q": "7"}


@pytest.mark.parametrize(
    "text", ["<|action_start|><|interpreter|>look()", "functools[look]", "<｜DSML｜function_calls>look at it"]
)
def test_what_begins_as_a_call_and_cannot_be_read_is_known_as_one(text: str) -> None:
    assert read_written_calls(text, TOOLS) == (text, ())
    assert begins_call(text)
    assert not begins_call("use functools[x]")


def test_several_calls_and_the_text_before_them() -> None:
    found = read_written_calls(
        f"I look.\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>\n", TOOLS
    )
    assert found.text == "I look."
    assert [call.id for call in found.calls] == ["call_0", "call_1"]


def test_broken_arguments_are_a_call_that_its_tool_refuses() -> None:
    (call,) = read_written_calls('<tool_call>{"name": "look", "arguments": {"q": }</tool_call>', TOOLS).calls
    assert call.name == "look"
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(call.arguments)


@pytest.mark.parametrize(
    "text",
    [
        "Rome",
        f"Write `<tool_call>{CALL}</tool_call>` for it.",
        f"```\n<tool_call>{CALL}</tool_call>",
        f"<tool_call>{CALL}</tool_call>\nIt is Rome.",
        '{"name": "Rome", "arguments": {}}',
        '{"name": "look", "arguments": {}, "city": "Rome"}',
        '{"name": "look"}',
        '["look"]',
        "<tool_call>look at this</tool_call>",
        "<function=",
    ],
)
def test_anything_else_stays_text(text: str) -> None:
    assert read_written_calls(text, TOOLS) == (text, ())


def test_a_model_without_tools_has_written_an_answer() -> None:
    text = f"<tool_call>{CALL}</tool_call>"
    assert read_written_calls(text, ()) == (text, ())


def answer(text: str) -> RawCompletion:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    return read_answer(fake_model.completion(message, "stop"), tools=TOOLS)


def test_a_call_behind_thoughts_or_one_that_ends_them() -> None:
    behind = answer(f"<think>hm</think>\n<tool_call>{CALL}</tool_call>")
    within = answer(f"<think>hm\n<tool_call>{CALL}</tool_call>")
    for found in (behind, within):
        assert (found.text, found.thoughts, found.finish) == ("", "hm", "tool_calls")
        assert [call.name for call in found.tool_calls] == ["look"]


def test_what_begins_a_call_is_known_as_one() -> None:
    assert begins_call("\n<tool_call>look at this</tool_call>")
    assert not begins_call("I <tool_call>")


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        ("", "<tool_call>"),
        ("", "<function=a>"),
        ("", "[TOOL_CALLS]a{"),
        ("", "<|tool_call_begin|>a<|tool_call_argument_begin|>"),
        ("", "{"),
        ("<function=a>", "<parameter=b>"),
        ("<minimax:tool_call>", "<invoke name=a>"),
        ("<minimax:tool_call><invoke name=a>", "<parameter name=b>"),
        ("<tool_call>a", "<arg_key>b</arg_key><arg_value>"),
        ("<|channel|>", " to=a"),
    ],
)
def test_the_time_for_a_hostile_reply_grows_with_its_length(start: str, piece: str) -> None:
    assert growth(lambda size: read_written_calls(start + piece * size, TOOLS), 60) < 64
