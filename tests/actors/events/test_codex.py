"""Codex' stream: items, tokens, and whose fault it is when there is no answer."""

import json
from typing import Any

import pytest

from pytest_tfgrpo.actors.events.codex import read_codex
from pytest_tfgrpo.actors.output import read_trajectory
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError, RolloutFault
from pytest_tfgrpo.core.records import Frame, Trajectory, Usage

START = ({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"})
DONE = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 900,
        "cached_input_tokens": 800,
        "output_tokens": 60,
        "reasoning_output_tokens": 25,
    },
}


def item(id_: str, kind: str, event: str = "completed", **details: Any) -> dict[str, Any]:
    return {"type": f"item.{event}", "item": {"id": id_, "type": kind, **details}}


def command(id_: str, line: str, event: str = "completed", **more: Any) -> dict[str, Any]:
    told = {"command": line, "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    return item(id_, "command_execution", event, **{**told, **more})


def message(id_: str, text: str) -> dict[str, Any]:
    return item(id_, "agent_message", text=text)


def stream(*events: Any) -> bytes:
    return b"".join((e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n" for e in events)


def read(*events: Any) -> Trajectory:
    value = read_codex(stream(*START, *events))
    return read_trajectory(value, answer_max_bytes=10_000, elapsed_ms=1.0, model="command")


def fault(*events: Any) -> RolloutFault:
    with pytest.raises((AgentFailure, ProviderError)) as caught:
        read_codex(stream(*events))
    return caught.value


def test_a_stream_becomes_messages_and_tools_in_order() -> None:
    trajectory = read(
        item("0", "reasoning", text="hm"),
        *(item("n", kind, text="hm") for kind in ("plan", "error")),
        message("1", "I look."),
        command("2", "ls", "started"),
        command("2", "ls", aggregated_output="a.py\n", exit_code=0, status="completed"),
        item("3", "file_change", changes=[{"path": "a.py", "kind": "update"}], status="completed"),
        item("4", "todo_list", items=[]),
        message("5", "Done."),
        DONE,
    )
    assert trajectory.answer == "Done."
    assert [(f.kind, f.name, f.input, f.output, f.error) for f in trajectory.frames] == [
        ("model", "codex", None, "I look.", None),
        ("tool", "command_execution", {"command": "ls"}, "a.py\n", None),
        ("tool", "file_change", {"changes": [{"path": "a.py", "kind": "update"}]}, "", None),
        ("model", "codex", None, "Done.", None),
    ]


def test_the_threads_tokens_are_on_the_last_message_and_its_cost_is_unknown() -> None:
    trajectory = read(message("0", "I look."), message("1", "Done."), DONE)
    assert [f.tokens for f in trajectory.frames] == [0, 960]
    assert trajectory.frames[1].usage == Usage(prompt=900, completion=60, reasoning=25, cached=800)
    assert trajectory.cost_usd is None


def test_tokens_of_a_later_turn_hold_those_of_the_earlier() -> None:
    first = {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}}
    second = {"type": "turn.completed", "usage": {"input_tokens": 30, "output_tokens": 3}}
    assert read(message("0", "a"), first, message("1", "b"), second).tokens == 33


@pytest.mark.parametrize(
    ("ended", "name", "output", "error"),
    [
        (command("0", "x", aggregated_output="no", exit_code=2, status="failed"),
         "command_execution", "no", "it ended with status 2"),
        (command("0", "x", exit_code=-9), "command_execution", "", "it ended with status -9"),
        (command("0", "x", status="declined"), "command_execution", "", "it was declined"),
        (item("0", "file_change", changes=[], status="failed"), "file_change", "", "it was failed"),
        (item("0", "mcp_tool_call", server="docs", tool="search", arguments={"q": 1}, status="completed",
              result={"content": [{"type": "text", "text": "found"}]}), "docs.search", "found", None),
        (item("0", "mcp_tool_call", server="docs", tool="search", status="failed",
              error={"message": "no such page"}), "docs.search", "", "no such page"),
        (item("0", "web_search", query="q", action={}), "web_search", "", None),
        (item("0", "tool_of_tomorrow", size=1), "tool_of_tomorrow", "", None),
    ],
)  # fmt: skip
def test_each_tool_says_what_came_of_it(
    ended: dict[str, Any], name: str, output: str, error: str | None
) -> None:
    tool = read(ended, message("1", "Done."), DONE).frames[0]
    assert (tool.kind, tool.name, tool.output, tool.error) == ("tool", name, output, error)


def test_tools_used_at_once_are_joined_by_id() -> None:
    trajectory = read(
        command("a", "one", "started"),
        command("b", "two", "started"),
        command("b", "two", aggregated_output="2", exit_code=0),
        command("a", "one", "updated"),
        command("a", "one", aggregated_output="1", exit_code=0),
        message("c", "Done."),
        DONE,
    )
    assert [(f.input, f.output, f.error) for f in trajectory.frames[:2]] == [
        ({"command": "one"}, "1", None),
        ({"command": "two"}, "2", None),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("You've hit your usage limit. Try again later.", "rate_limit"),
        ("unexpected status 401 Unauthorized", "auth"),
        ("stream disconnected before completion", "provider"),
    ],
)
def test_a_turn_that_failed_is_not_the_agents_fault(text: str, code: str) -> None:
    failed = {"type": "turn.failed", "error": {"message": text}}
    notice = {"type": "error", "message": "Reconnecting... 1/5"}
    caught = fault(*START, message("0", "I look."), notice, failed)
    assert (type(caught), caught.code) == (ProviderError, code)
    assert text in str(caught), "the last word, and not a notice before it"
    assert len(caught.frames) == 1


def test_a_conversation_that_grew_too_long_is_the_agents_failure() -> None:
    text = "Codex ran out of room in the model's context window. Start a new thread."
    caught = fault(*START, {"type": "turn.failed", "error": {"message": text}})
    assert (type(caught), caught.code) == (AgentFailure, "context")


def test_a_retry_on_the_way_is_no_fault() -> None:
    retry = {"type": "error", "message": "Reconnecting... 1/5"}
    assert read(retry, message("0", "Done."), DONE, retry).answer == "Done."


def test_an_interrupted_stream_keeps_what_was_done() -> None:
    caught = fault(*START, message("0", "I look."), command("1", "sleep 600", "started"))
    assert (type(caught), caught.code) == (AgentFailure, "no_answer")
    assert caught.frames[1] == Frame(
        kind="tool",
        name="command_execution",
        input={"command": "sleep 600"},
        cost_usd=0.0,
        error="the stream does not say how it ended",
    )


def test_a_broken_line_is_garbage_and_keeps_what_was_done() -> None:
    caught = fault(*START, message("0", "a"), b'{"type": "turn.comp')
    assert (type(caught), caught.code) == (AgentFailure, "garbage")
    assert [f.output for f in caught.frames] == ["a"]


def test_an_end_without_a_message_is_no_answer() -> None:
    caught = fault(*START, command("0", "x", exit_code=0), DONE)
    assert (type(caught), caught.code) == (AgentFailure, "no_answer")
    assert sum(f.tokens for f in caught.frames) == 960


def test_a_program_that_prints_no_event_was_not_set_up() -> None:
    caught = fault(b"OpenAI Codex\nuser\n")
    assert (type(caught), caught.code) == (ProviderError, "spawn")


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({"input_tokens": 9, "output_tokens": 6}, Usage(prompt=9, completion=6)),
        ({"input_tokens": 0, "output_tokens": 0}, Usage(prompt=0, completion=0)),
        (
            {
                "input_tokens": 9,
                "output_tokens": 6,
                "cached_input_tokens": 0,
                "reasoning_output_tokens": None,
            },
            Usage(prompt=9, completion=6),
        ),
        (
            {"input_tokens": 9, "output_tokens": 6, "cached_input_tokens": 8, "reasoning_output_tokens": 5},
            Usage(prompt=9, completion=6, cached=8, reasoning=5),
        ),
        ({"input_tokens": 9, "output_tokens": 6, "cached_input_tokens": "8"}, None),
        ({"input_tokens": 9}, None),
        (None, None),
    ],
)
def test_tokens_that_are_not_told_are_none_and_parts_that_are_not_are_0(
    usage: Any, told: Usage | None
) -> None:
    found = read(message("1", "Done."), {"type": "turn.completed", "usage": usage})
    assert [frame.usage for frame in found.frames] == [told]


@pytest.mark.parametrize(
    ("event", "unknown"),
    [({"type": "news"}, 1), ({}, 1), ({"type": "item.completed"}, 1), (START[0], 0), (START[1], 0)],
)
def test_events_of_an_unknown_shape_are_counted(event: dict[str, Any], unknown: int) -> None:
    assert read(event, message("1", "Done."), event, DONE).answer == "Done."
    known = 1 + 2 * (1 - unknown)
    told = f"the stream ended without the event 'turn.completed' after {known} events"
    assert str(fault(START[0], event, event)) == told + " and 2 of unknown types" * unknown
