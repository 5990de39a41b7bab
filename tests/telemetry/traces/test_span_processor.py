"""Runs of agents in progress, where garbage collection starts and ends spans in the middle of a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer, use_span
from support.abandoned import abandon, repeat_among_collections

from pytest_tfgrpo.telemetry.traces import span_processor
from pytest_tfgrpo.telemetry.traces.span_processor import open_span_processor
from pytest_tfgrpo.telemetry.traces.turns import AgentRun

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "toy"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


class Taken:
    """What a processor hands on."""

    def __init__(self) -> None:
        self.runs: list[AgentRun] = []
        self.failures: list[str] = []
        processor = open_span_processor(
            take=lambda run, _: self.runs.append(run),
            around=lambda: None,
            failed=lambda _, error: self.failures.append(str(error)),
        )
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(processor)
        self.tracer: Tracer = provider.get_tracer("toy")

    def begin(self, attributes: dict[str, Any] = AGENT) -> Callable[[], None]:
        """Start a span, and return what ends it."""
        return self.tracer.start_span("stream", attributes=attributes).end

    def serve(self) -> None:
        """Run an agent with one turn."""
        with self.tracer.start_as_current_span("agent", attributes=AGENT):
            self.tracer.start_span("chat", attributes=CHAT).end()


@pytest.fixture
def taken() -> Taken:
    return Taken()


def test_agents_that_garbage_collection_ends_are_each_taken_once(taken: Taken) -> None:
    def step() -> None:
        abandon(taken.begin)
        taken.serve()

    repeat_among_collections(step, times=200, places=100)
    assert taken.failures == []
    assert len({run.key for run in taken.runs}) == len(taken.runs) == 400
    assert sorted(len(run.steps) for run in taken.runs) == [0] * 200 + [1] * 200


def test_turns_that_garbage_collection_ends_belong_to_the_agent_around_them(taken: Taken) -> None:
    with taken.tracer.start_as_current_span("agent", attributes=AGENT) as agent:

        def step() -> None:
            with use_span(agent):
                abandon(lambda: taken.begin(CHAT))
                taken.begin(CHAT)()

        repeat_among_collections(step, times=200, places=100)
    assert taken.failures == []
    assert [len(run.steps) for run in taken.runs] == [400]


def test_the_oldest_open_spans_are_forgotten_whatever_ends_meanwhile(
    taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_processor, "MOST_OPEN", 4)
    left = []

    def step() -> None:
        left.append(taken.tracer.start_span("stays open", attributes=AGENT))
        abandon(taken.begin)
        taken.serve()

    repeat_among_collections(step, times=200, places=100)
    assert taken.failures == []
    served = [run for run in taken.runs if run.steps]
    assert len(served) == 200
    before = len(taken.runs)
    for span in left:
        span.end()
    assert len(taken.runs) - before <= 4
