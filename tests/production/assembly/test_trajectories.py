"""What a trajectory says of a run."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from support import ROOT as CHECKOUT
from support.loop_spans import AGENT, BORN_NS, ROOT, a_span, agent_trace, message, span_id, trace_id

from pytest_tfgrpo.core.events import EventRefusal, derived_id
from pytest_tfgrpo.production.assembly.outcome_events import NO_COMPONENT, component_of, feedback_event
from pytest_tfgrpo.production.assembly.trajectories import time_of, trajectory_event, trajectory_of
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines
from pytest_tfgrpo.telemetry.traces.turns import AgentRun, TraceOutcome, TraceSpan

RECORDED = CHECKOUT / "tests" / "telemetry" / "traces" / "recorded"
FILES = sorted(path.name for path in RECORDED.glob("*.jsonl"))


def run_of(*spans: TraceSpan) -> AgentRun:
    forest = SpanForest(read_span)
    forest.take(spans)
    (run,) = forest.runs(whole_trace=True)
    return run


def made(*spans: TraceSpan) -> dict[str, Any]:
    """Return the checked payload of the run that spans are."""
    event = trajectory_event(run_of(*spans))
    assert not isinstance(event, EventRefusal), event
    return dict(event.data)


def noted(**notes: Any) -> dict[str, Any]:
    return made(*agent_trace(1, **{name.replace("__", "."): value for name, value in notes.items()}))


@pytest.mark.parametrize("name", FILES)
def test_each_framework_gives_turns_that_are_complete(name: str) -> None:
    forest = SpanForest(read_span)
    forest.take(read_otlp_lines(BytesIO((RECORDED / name).read_bytes()), name))
    found = []
    for run in forest.runs(whole_trace=True):
        event = trajectory_event(run)
        assert not isinstance(event, EventRefusal)
        found.append(event.data)
        turns = event.data["turns"]
        assert [turn["turn_id"] for turn in turns] == list(range(1, len(turns) + 1))
        assert turns[0]["observation"]["type"] == "user_message"
    good, bad = found
    actions = [turn["action"] for turn in good["turns"]]
    assert [action["tool_name"] for action in actions] == ["weather", "weather", None]
    assert actions[-1]["raw_response"] == "It is sunny in Paris."
    assert [turn["result"]["success"] for turn in bad["turns"]][-1] is False


def test_a_call_of_a_model_and_its_tool_are_one_turn() -> None:
    found = made(*agent_trace(7))
    call, answer = found["turns"]
    assert call["observation"] == {"type": "user_message", "content": "question 7"}
    assert call["action"] == {
        "type": "tool_call", "tool_name": "look", "tool_args": {"n": 7}, "raw_response": None
    }  # fmt: skip
    assert call["result"]["execution_time_ms"] == 1000.0
    assert answer["observation"]["type"] == "tool_result"
    assert answer["action"] == {"type": "response", "tool_name": None, "raw_response": "answer 7"}
    assert answer["result"]["output"] == "answer 7"
    assert (found["metadata"]["trace_id"], found["metadata"]["span_id"]) == (trace_id(7), span_id(AGENT))
    assert found["task_context"] == {"domain": "general", "instructions": "question 7"}
    assert found["outcome"] == {"task_status": "unknown"}


def test_tools_at_the_same_time_have_not_seen_each_others_results() -> None:
    tools = [a_span(1, number, "execute_tool", parent=AGENT, at=5, lasts=3) for number in (5, 6)]
    found = made(a_span(1, 3, "chat", parent=AGENT), *tools, a_span(1, AGENT, "invoke_agent", lasts=9))
    assert ["observation" in turn for turn in found["turns"]] == [True, False]


def test_a_turn_saw_what_came_of_all_calls_since_the_turn_before_it() -> None:
    def tool(number: int, result: str) -> TraceSpan:
        given = {"gen_ai.tool.name": "look", "gen_ai.tool.call.result": result}
        return a_span(1, number, "execute_tool", parent=AGENT, attributes=given)

    asked, answer = (a_span(1, number, "chat", parent=AGENT) for number in (3, 7))
    found = made(asked, tool(4, "P=20"), tool(6, "R=25"), answer, a_span(1, AGENT, "invoke_agent", lasts=9))
    seen = [turn.get("observation", {}).get("content") for turn in found["turns"]]
    assert seen == ["", None, "P=20\nR=25"]
    silent = made(tool(4, "P=20"), tool(6, "R=25"), a_span(1, AGENT, "invoke_agent", lasts=9))
    assert [turn["observation"]["content"] for turn in silent["turns"]] == ["", "P=20"]


def test_a_call_of_which_nobody_tells_what_came_of_it_has_no_result() -> None:
    call = {"type": "tool_call", "id": "c", "name": "look", "arguments": {}}
    said = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}])}
    turns = made(a_span(1, 3, "chat", attributes=said))["turns"]
    assert ([turn["action"]["tool_name"] for turn in turns], "result" in turns[0]) == (["look"], False)


def test_an_agent_that_is_called_has_a_trajectory_which_names_that_of_its_caller() -> None:
    forest = SpanForest(read_span)
    forest.take([
        a_span(1, AGENT, "invoke_agent", lasts=20),
        a_span(1, 3, "chat", parent=AGENT),
        a_span(1, 4, "execute_tool", parent=AGENT, lasts=5,
               attributes={"gen_ai.tool.name": "ask", "gen_ai.tool.call.result": "yes"}),
        a_span(1, 5, "invoke_agent", parent=4, lasts=2, attributes={"gen_ai.agent.name": "helper"}),
        a_span(1, 6, "chat", parent=5),
        a_span(1, 9, "chat", parent=AGENT),
    ])  # fmt: skip
    outer, inner = (trajectory_of(run) for run in forest.runs(whole_trace=True))
    assert (inner["agent_id"], len(inner["turns"])) == ("helper", 1)
    assert inner["metadata"]["parent_trajectory_id"] == outer["trajectory_id"]
    assert "parent_trajectory_id" not in outer["metadata"]
    call, answer = outer["turns"]
    assert (call["action"]["type"], call["action"]["tool_name"]) == ("subordinate_call", "ask")
    assert answer["observation"] == {"type": "subordinate_response", "content": "yes"}


def test_an_agent_that_says_nothing_of_its_calls_answers_once() -> None:
    said = {
        "gen_ai.output.messages": message("assistant", "done"),
        "gen_ai.input.messages": message("user", "do"),
    }
    (turn,) = made(a_span(1, AGENT, "invoke_agent", attributes=said))["turns"]
    assert (turn["observation"]["content"], turn["action"]["raw_response"]) == ("do", "done")


def test_a_failed_agent_has_failed_unless_it_is_noted() -> None:
    failed = a_span(1, AGENT, "invoke_agent", failed=True)
    found = made(failed)
    assert found["outcome"] == {"task_status": "failed"}
    assert found["turns"][0]["result"] | {"execution_time_ms": 0} == {
        "success": False, "output": None, "error": "_OTHER", "execution_time_ms": 0
    }  # fmt: skip
    status = {"tfgrpo.outcome.task_status": "partial_completion"}
    again = made(a_span(1, AGENT, "invoke_agent", failed=True, attributes=status))
    assert again["outcome"]["task_status"] == "partial_completion"


def test_notes_are_task_outcome_and_version() -> None:
    found = noted(
        task_key="late-orders", task_id=17, domain="coding", policy_version="v1", lessons="a, b",
        subordinate_profile="developer", task_status="partial_completion", outcome__completion="0.5",
        outcome__tests__passed=3, outcome__tests__total=4.0, outcome__contains_code="true",
        outcome__linter__score=8.5, outcome__user_feedback__rating=4, outcome__safety_blocked=False,
    )  # fmt: skip
    assert found["task_context"] | {"instructions": ""} == {
        "task_key": "late-orders", "task_id": "17", "domain": "coding", "instructions": ""
    }  # fmt: skip
    assert found["outcome"] == {
        "task_status": "partial_completion", "completion": 0.5, "contains_code": True,
        "tests": {"passed": 3, "total": 4}, "linter": {"score": 8.5},
        "user_feedback": {"type": "rating", "rating": 4.0}, "safety_blocked": False,
    }  # fmt: skip
    assert (found["metadata"]["policy_version"], found["metadata"]["lessons"]) == ("v1", ["a", "b"])
    assert found["subordinate_profile"] == "developer"


def test_a_truth_value_is_no_number_and_an_object_or_too_many_are_no_lessons() -> None:
    found = noted(outcome__completion=True, outcome__linter__score=False, lessons={"a": 1})
    assert found["outcome"] == {"task_status": "unknown"}
    assert sorted(found["metadata"]["unusable_notes"]) == [
        "lessons", "outcome.completion", "outcome.linter.score"
    ]  # fmt: skip
    assert noted(lessons=[f"l{n}" for n in range(5000)])["metadata"]["unusable_notes"] == ["lessons"]
    assert noted(lessons=" a, ,b ")["metadata"]["lessons"] == ["a", "b"]
    bounds = noted(outcome__completion=1, outcome__linter__score="10", outcome__tests__passed="4",
                   outcome__tests__total=4.0)["outcome"]  # fmt: skip
    assert (bounds["completion"], bounds["linter"], bounds["tests"]) == (
        1.0, {"score": 10.0}, {"passed": 4, "total": 4}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("Answer Relevancy", "answer_relevancy"),
        ("3-gram", "n3_gram"),
        ("--", NO_COMPONENT),
        ("é", NO_COMPONENT),
    ],
)
def test_an_evaluation_names_a_component(name: str, component: str) -> None:
    assert component_of(name) == component


def test_a_note_that_cannot_be_is_left_out_and_named() -> None:
    found = noted(
        domain="cooking", outcome__completion="lots", outcome__tests__passed=5, outcome__tests__total=4,
        outcome__user_feedback__type="thumbs_up", outcome__user_feedback__rating=3, task_key="",
        outcome__linter__score=float("nan"), outcome__contains_code=1, lessons="[" * 5000,
    )  # fmt: skip
    assert found["task_context"]["domain"] == "general"
    assert found["outcome"] == {"task_status": "unknown"}
    assert found["metadata"]["unusable_notes"] == [
        "domain", "lessons", "outcome.completion", "outcome.contains_code", "outcome.linter.score",
        "outcome.tests", "outcome.user_feedback", "task_key",
    ]  # fmt: skip


@pytest.mark.parametrize("at_ns", [-1, 0, BORN_NS, 2**63, 10**30])
def test_any_time_is_one(at_ns: int) -> None:
    assert len(time_of(at_ns)) == len("2027-01-15T08:00:00.000Z")


def test_equal_spans_give_equal_bytes_in_any_order() -> None:
    spans = agent_trace(1, policy_version="v1")
    assert trajectory_of(run_of(*spans)) == trajectory_of(run_of(*reversed(spans)))
    assert run_of(*spans).closed
    assert spans[-1].key == (trace_id(1), span_id(ROOT))


def test_what_an_evaluation_does_not_say_is_not_in_its_feedback() -> None:
    def said(**more: Any) -> dict[str, Any]:
        outcome = TraceOutcome(name="N" * 500, at_ns=BORN_NS, place="1", **more)
        event = feedback_event(outcome, derived_id("a"), "")
        assert not isinstance(event, EventRefusal), event
        assert event.data["component"] == "n" * 64
        names = {"type", "score", "text", "session_id"} & event.data.keys()
        return {name: event.data[name] for name in names}

    assert said(value=1) == {"type": "score", "score": 1.0}
    assert said(value=0.0, explanation="why") == {"type": "score", "score": 0.0, "text": "why"}
    assert said(value=None, label="good") == {"type": "label", "text": "good"}
