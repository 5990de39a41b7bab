"""What tools said, and what models thought, in the spellings there are."""

import pytest

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.messages import langchain_result, said_by_tool


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
