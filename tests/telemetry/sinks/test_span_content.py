"""What of prompts, answers and tools goes into spans, and what stays out of them."""

import json
from typing import Any

import pytest
from support.builders import make_frame, make_rollout

from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.telemetry.sinks import span_content
from pytest_tfgrpo.telemetry.sinks.span_content import SpanContent


@pytest.fixture(autouse=True)
def readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write attributes as pairs, not as protobuf."""
    monkeypatch.setattr(span_content, "attribute", lambda key, value: (key, value))


def pairs(found: Any) -> dict[str, Any]:
    return {key.removeprefix("gen_ai."): json.loads(text) for key, text in found}


def message(role: str, text: str, **more: Any) -> list[Any]:
    return [{"role": role, "parts": [{"type": "text", "content": text}], **more}]


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        (None, "", {}),
        (None, "3", {"output.messages": message("assistant", "3", finish_reason="stop")}),
        (Prompt(system="", user=""), "", {"input.messages": message("user", "")}),
        (
            Prompt(system="Be brief.", user="How many?"),
            "3",
            {
                "system_instructions": [{"type": "text", "content": "Be brief."}],
                "input.messages": message("user", "How many?"),
                "output.messages": message("assistant", "3", finish_reason="stop"),
            },
        ),
    ],
)
def test_a_rollout_has_what_it_was_asked_once_and_what_it_answered(
    prompt: Prompt | None, answer: str, expected: Any
) -> None:
    content = SpanContent(on=True, text_max=None)
    rollout = make_rollout(0, 1.0, answer=answer)
    if prompt is not None:
        content.keep("other", Prompt(system="x", user="x"))
        content.keep(rollout.rollout_id, prompt)
    assert pairs(content.of_rollout(rollout)) == expected
    assert "input.messages" not in pairs(content.of_rollout(rollout))


@pytest.mark.parametrize(
    ("asked", "answer", "finish", "expected"),
    [
        (None, "", "", {}),
        ("", "", "", {"input.messages": message("user", "")}),
        (
            "Hi",
            "3",
            "",
            {
                "input.messages": message("user", "Hi"),
                "output.messages": message("assistant", "3", finish_reason="stop"),
            },
        ),
        (
            [{"n": 0}],
            "3",
            "length",
            {
                "input.messages": message("user", '[{"n": 0}]'),
                "output.messages": message("assistant", "3", finish_reason="length"),
            },
        ),
    ],
)
def test_a_call_has_what_is_known_of_it(asked: Any, answer: str, finish: str, expected: Any) -> None:
    assert pairs(SpanContent(on=True, text_max=None).of_call(asked, answer, finish)) == expected


def test_messages_to_a_model_are_redacted_by_the_names_of_their_keys() -> None:
    found = pairs(SpanContent(on=True, text_max=None).of_call([{"token": "hunter22-x"}], "", ""))
    assert "hunter22" not in str(found)


SECRET = "sk-" + "a1B2" * 12


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        (None, "null"),
        (0, "0"),
        ({"n": [1, "x", {"m": None}]}, '{"n": [1, "x", {"m": null}]}'),
        ({"a": SECRET, "b": [SECRET]}, None),
        ({"password": "hunter2hunter2"}, None),
    ],
)
def test_arguments_and_result_of_a_tool_are_redacted(sent: Any, written: str | None) -> None:
    found = dict(SpanContent(on=True, text_max=None).of_tool(make_frame(input=sent, output=f"3 {SECRET}")))
    assert SECRET not in str(found)
    assert "hunter2" not in str(found)
    assert found["gen_ai.tool.call.result"].startswith("3 ")
    if written is not None:
        assert found["gen_ai.tool.call.arguments"] == written


def test_without_content_no_prompt_is_kept() -> None:
    content = SpanContent(on=False, text_max=None)
    rollout = make_rollout(0, 1.0, answer="3")
    content.keep(rollout.rollout_id, Prompt(system="x", user="x"))
    assert content.text("x") == ""
    assert [key for key, _ in content.of_rollout(rollout)] == ["gen_ai.output.messages"]  # type: ignore[str-bytes-safe, misc]


@pytest.mark.parametrize(
    ("text_max", "shown"), [(None, "abcdef"), (0, ""), (3, "abc"), (6, "abcdef"), (9, "abcdef")]
)
def test_a_text_is_cut_at_its_limit(text_max: int | None, shown: str) -> None:
    content = SpanContent(on=True, text_max=text_max)
    assert content.text("abcdef") == shown
    found: Any = dict(content.of_tool(make_frame(input="abcd", output="abcdef")))
    assert found == {
        "gen_ai.tool.call.arguments": '"abcd"'[: len(shown) if text_max is not None else None],
        "gen_ai.tool.call.result": shown,
    }


@pytest.mark.parametrize("text_max", [12, 24, 40])
def test_a_cut_leaves_no_half_of_a_secret(text_max: int) -> None:
    secret = "wJ4lrX7tnF9MIk3MDENG"
    content = SpanContent(on=True, text_max=text_max)
    sent = json.dumps([content.text(f"key {secret}"), content.text(f"key {secret} and more")])
    found: Any = dict(content.of_tool(make_frame(input={"a": secret}, output=secret)))
    assert secret[:6] not in sent + str(found)
