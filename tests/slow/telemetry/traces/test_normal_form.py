"""A large trace in many orders and parts."""

import json
import random
from typing import Any

from support.otlp_spans import agent, line, span

from pytest_tfgrpo.core.events import EventRefusal
from pytest_tfgrpo.production.assembly.trajectories import trajectory_event
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp import read_otlp


def spans(chance: random.Random) -> list[dict[str, Any]]:
    """Return 1,000 spans: agents within agents, turns and tools, each below one of the 40 before it."""
    made = [span(1, parent=None)]
    for number in range(2, 1001):
        parent = chance.randrange(max(1, number - 40), number)
        said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}])
        turn = {"gen_ai.usage.total_tokens": number, "gen_ai.input.messages": said}
        made.append(chance.choice((
            agent(number, parent=parent, attributes={"gen_ai.agent.name": f"agent {number}"}),
            span(number, "chat", parent=parent, attributes=turn),
            span(number, "chat", parent=parent, attributes=turn),
            span(number, "execute_tool", parent=parent, attributes={"gen_ai.tool.name": f"t{number % 5}"}),
            span(number, parent=parent),
        )))  # fmt: skip
    return made


def test_a_large_trace_is_the_same_bytes_in_any_order_and_parts() -> None:
    chance = random.Random(5)
    made, found = spans(chance), set()
    for _ in range(100):
        chance.shuffle(made)
        forest, start = SpanForest(read_span), 0
        while start < len(made):
            end = start + chance.randint(1, 200)
            forest.take(read_otlp(line(*made[start:end]).encode(), form="json", place="a"))
            start = end
        events = [trajectory_event(run) for run in forest.runs(whole_trace=True)]
        assert not any(isinstance(event, EventRefusal) for event in events)
        found.add(json.dumps([event.data for event in events if not isinstance(event, EventRefusal)]))
    assert (len(found), len(events) > 100) == (1, True)
