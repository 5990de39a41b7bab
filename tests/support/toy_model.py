"""The model of the toy agents, as an answer of the fake server."""

from __future__ import annotations

from typing import Any

from pytest_tfgrpo.core.records import Frame
from support.fake_model import Body, Reply, calls
from support.span_recorder import ANSWER, CALLS, QUESTION

TOLD: list[tuple[Any, ...]] = [
    ("model", "toy-model", QUESTION, "", None),
    ("tool", "weather", {"city": "Atlantis"}, "no such city: Atlantis", None),
    ("model", "toy-model", QUESTION, "", None),
    ("tool", "weather", {"city": "Paris"}, "sunny", None),
    ("model", "toy-model", QUESTION, ANSWER, None),
]
"""What `told` returns of a rollout in which a toy agent used the tool."""


def weather_model(request: Body, attempt: int) -> Reply | str:
    """Look up two cities, one after the other, then answer."""
    turn = sum(message["role"] == "assistant" for message in request["messages"])
    if turn == len(CALLS):
        return ANSWER
    reply = calls(("weather", {"city": CALLS[turn]}))
    assert isinstance(reply.body, dict)
    made: Any = reply.body["choices"][0]["message"]["tool_calls"][0]
    made["id"] = f"call-{turn}"
    return reply


def told(frames: tuple[Frame, ...]) -> list[tuple[Any, ...]]:
    """Return what frames say, without their times."""
    return [(frame.kind, frame.name, frame.input, frame.output, frame.error) for frame in frames]
