"""Whatever a program prints, a reader answers, or raises what an attempt expects of it."""

import json

from pytest_tfgrpo.actors.events.registry import EVENTS


def test_many_events_become_as_many_frames() -> None:
    text = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "x"}]}}
    tool = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
    used = {"type": "assistant", "message": {"id": "m", "content": [tool]}}
    closing = json.dumps({"type": "result", "subtype": "success", "result": "x"})
    lines = [json.dumps(text), json.dumps(used)] * 50_000
    value = EVENTS["claude"]("\n".join([*lines, closing]).encode())
    assert isinstance(value, dict)
    assert len(value["frames"]) == 50_001
