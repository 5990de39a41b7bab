"""Whatever a program prints, a reader answers, or raises what an attempt expects of it."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.actors.events.registry import EVENTS
from pytest_tfgrpo.actors.output import read_trajectory
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.settings import BY_NAME

USAGE = {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 5}
SOUND: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "system", "subtype": "init"},
        {
            "type": "assistant",
            "message": {
                "id": "m1",
                "model": "opus",
                "usage": USAGE,
                "stop_reason": "tool_use",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                    {"type": "server_tool_use", "id": "t2", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "t2", "content": [{"type": "x"}]},
                ],
            },
        },
        {
            "type": "user",
            "message": {
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no"}],
                    }
                ]
            },
        },
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "Done.",
            "total_cost_usd": 0.1,
            "duration_api_ms": 7,
            "usage": USAGE,
            "modelUsage": {"opus": {"inputTokens": 9, "outputTokens": 9, "cacheReadInputTokens": 3}},
        },
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.started", "item": {"id": "0", "type": "command_execution", "command": "ls"}},
        {
            "type": "item.completed",
            "item": {
                "id": "0",
                "type": "command_execution",
                "command": "ls",
                "aggregated_output": "a",
                "exit_code": 1,
                "status": "failed",
            },
        },
        {
            "type": "item.completed",
            "item": {
                "id": "1",
                "type": "mcp_tool_call",
                "server": "s",
                "tool": "t",
                "arguments": {},
                "result": {"content": []},
                "error": None,
            },
        },
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {**USAGE, "cached_input_tokens": 1}},
    ],
}
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [10**12, 10**30, "\ud800", "m1", "t1", "0", "text", "refusal", "result", "turn.failed"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return the containers in `value`, each with the key or index of something in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [pair for key in keys for pair in [(value, key), *places(value[key])]]


@st.composite
def spoilt(draw: st.DrawFn, sound: list[dict[str, Any]]) -> bytes:
    """Draw a sound stream in which something is replaced, left out, put in, or out of order."""
    events: list[Any] = copy.deepcopy(sound)
    for _ in range(draw(st.integers(0, 3))):
        found = places(events)
        if found:
            container, key = draw(st.sampled_from(found))
            if draw(st.booleans()):
                container[key] = draw(ODD)
            elif isinstance(container, dict) or len(container) > 1:
                del container[key]
    if draw(st.integers(0, 3)) == 0:
        events = draw(st.permutations(events))
    lines = [json.dumps(event).encode() for event in events]
    if draw(st.integers(0, 7)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.binary(max_size=20)))
    stream = b"\n".join(lines)
    return stream[: draw(st.integers(0, len(stream)))] if draw(st.integers(0, 7)) == 0 else stream


def test_each_choice_of_the_setting_has_a_reader() -> None:
    for name in EVENTS:
        assert BY_NAME["command_output"].parse(name) == name
    with pytest.raises(ValueError, match=", ".join(EVENTS)):
        BY_NAME["command_output"].parse("telepathy")


@pytest.mark.parametrize("name", sorted(SOUND))
def test_the_sound_stream_is_answered(name: str) -> None:
    value = EVENTS[name]("\n".join(map(json.dumps, SOUND[name])).encode())
    assert isinstance(value, dict)
    assert value["answer"] == "Done."


@pytest.mark.parametrize("name", sorted(SOUND))
@given(data=st.data())
def test_no_stream_makes_a_reader_raise_anything_else(name: str, data: st.DataObject) -> None:
    stream = data.draw(spoilt(SOUND[name]))
    try:
        value = EVENTS[name](stream)
        frames = read_trajectory(value, answer_max_bytes=1000, elapsed_ms=1.0, model="m").frames
    except (AgentFailure, ProviderError) as fault:
        frames = fault.frames
    for frame in frames:
        json.dumps(frame.input, allow_nan=False, ensure_ascii=False).encode()
        f"{frame.name}{frame.output}{frame.error}".encode()
        assert 0 <= frame.tokens <= 10**12
        assert frame.tokens == (frame.usage.total if frame.usage else 0)
