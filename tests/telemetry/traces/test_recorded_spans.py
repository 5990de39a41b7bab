"""Spans of one toy agent, as frameworks wrote them: the scripts ``record_*.py`` have recorded them."""

import random

import pytest
from support.traces.recorded_spans import FILES, lines_of, runs_of

from pytest_tfgrpo.telemetry.traces.dialects.genai import read_genai
from pytest_tfgrpo.telemetry.traces.turns import RefusedTrace

GENAI = ("pydantic-ai.jsonl", "strands-latest.jsonl", "strands.jsonl")
OPENAI = (
    "openai-v2.jsonl",
    "openinference-alone.jsonl",
    "openinference.jsonl",
    "traceloop.jsonl",
    "langfuse.jsonl",
)
ALONE = OPENAI[:2]
"""Spans of the model's calls alone."""
QUESTION, ANSWER = "What is the weather in Paris?", "It is sunny in Paris."


def test_there_is_a_recording_of_each_framework() -> None:
    assert sorted([*GENAI, *OPENAI]) == FILES


@pytest.mark.parametrize("name", GENAI)
def test_each_framework_of_the_conventions_gives_the_same_trace_of_the_toy_agent(name: str) -> None:
    (good, bad), forest = runs_of(*lines_of(name), dialect=read_genai, whole_trace=False)
    assert (good.agent.name, good.agent.error, good.prompt, good.reply) == ("toy", None, QUESTION, ANSWER)
    assert [(s.kind, s.name, s.error, s.asked, "" if s.error else s.answered) for s in good.steps] == [
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
def test_each_dialect_gives_the_same_run_of_the_toy_agent(name: str) -> None:
    (good, bad), forest = runs_of(*lines_of(name))
    assert (good.closed, good.agent.error, good.prompt, good.reply) == (True, None, QUESTION, ANSWER)
    assert [(s.kind, s.name.removesuffix("-1"), s.asked, s.error or s.answered) for s in good.steps] == [
        ("turn", "toy-model", QUESTION, ""),
        ("tool", "weather", '{"city":"Atlantis"}', "no such city: Atlantis"),
        ("turn", "toy-model", QUESTION, ""),
        ("tool", "weather", '{"city":"Paris"}', "sunny"),
        ("turn", "toy-model", QUESTION, ANSWER),
    ]
    assert (good.agent.name, good.key[1] == "") == (("toy", True) if name in ALONE else ("toy", False))
    assert "the model is down" in str(bad.agent.error)
    assert (bad.reply, [step.kind for step in bad.steps], bad.model) == ("", ["turn"], "toy-model")
    assert forest.refused == []


@pytest.mark.parametrize("name", OPENAI)
def test_each_dialect_says_whose_run_it_was_and_what_it_took(name: str) -> None:
    (good, _), _ = runs_of(*lines_of(name))
    assert (good.session, good.user) == ("s-1", "u-1")
    assert (good.model, good.temperature, good.tokens) == ("toy-model-1", 0.5, 45)


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
