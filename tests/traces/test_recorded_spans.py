"""Spans of one toy agent, as frameworks wrote them: ``record_spans.py`` has recorded them."""

import random
from io import BytesIO
from pathlib import Path

import pytest

from pytest_tfgrpo.traces.genai import read_genai
from pytest_tfgrpo.traces.otlp_lines import read_otlp_lines
from pytest_tfgrpo.traces.turns import AgentRun, RefusedTrace, SpanForest

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(path.name for path in RECORDED.glob("*.jsonl"))
QUESTION, ANSWER = "What is the weather in Paris?", "It is sunny in Paris."


def runs_of(*lines: bytes) -> tuple[list[AgentRun], SpanForest]:
    forest = SpanForest(read_genai)
    forest.take(read_otlp_lines(BytesIO(b"".join(lines)), "spans.jsonl"))
    return forest.runs(), forest


def lines_of(name: str) -> list[bytes]:
    return (RECORDED / name).read_bytes().splitlines(keepends=True)


def test_there_is_a_recording_of_each_framework() -> None:
    assert FILES == ["pydantic-ai.jsonl", "strands-latest.jsonl", "strands.jsonl"]


@pytest.mark.parametrize("name", FILES)
def test_each_framework_gives_the_same_trace_of_the_toy_agent(name: str) -> None:
    (good, bad), forest = runs_of(*lines_of(name))
    assert (good.agent.name, good.agent.error, good.prompt, good.reply) == ("toy", None, QUESTION, ANSWER)
    assert [(s.kind, s.name, s.error, s.asked, s.answered) for s in good.steps] == [
        ("turn", "toy-model", None, QUESTION, ""),
        ("tool", "weather", "no such city: Atlantis", '{"city":"Atlantis"}', ""),
        ("turn", "toy-model", None, QUESTION, ""),
        ("tool", "weather", None, '{"city":"Paris"}', "sunny"),
        ("turn", "toy-model", None, QUESTION, ANSWER),
    ]
    assert (bad.agent.error, bad.prompt, bad.reply) == ("the model is down", QUESTION, "")
    assert [(step.kind, step.error) for step in bad.steps] == [("turn", "the model is down")]
    assert forest.refused == []


@pytest.mark.parametrize("name", FILES)
def test_spans_that_come_in_another_order_and_twice_give_the_same_runs(name: str) -> None:
    lines = lines_of(name)
    mixed = [*lines, *lines]
    random.Random(name).shuffle(mixed)
    found, forest = runs_of(*mixed)
    expected, _ = runs_of(*lines)
    without_places = [(run.key, run.agent, run.steps, run.marks) for run in found]
    assert without_places == [(run.key, run.agent, run.steps, run.marks) for run in expected]
    assert [one.reason for one in forest.refused] == [RefusedTrace.DUPLICATE] * len(lines)
