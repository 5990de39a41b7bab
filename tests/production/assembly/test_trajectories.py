"""What a trajectory says of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from support import ROOT as CHECKOUT
from support.loop_spans import AGENT, BORN_NS, ROOT, a_span, agent_trace, message, span_id, trace_id

from pytest_tfgrpo.core.events import EventRefusal, derived_id
from pytest_tfgrpo.production.assembly.outcome_events import NO_COMPONENT, component_of, feedback_event
from pytest_tfgrpo.production.assembly.trajectories import (
    time_of,
    trajectory_digest,
    trajectory_event,
    trajectory_event_id,
    trajectory_of,
)
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


@pytest.mark.parametrize(
    ("note", "value", "at", "kept"),
    [
        *(("domain", one, "task_context.domain", one) for one in ("coding", "research", "data_analysis")),
        ("complexity_score", "0.5", "task_context.complexity_score", 0.5),
        ("task_id", " t-1 ", "task_context.task_id", "t-1"),
        ("task_key", "k" * 256, "task_context.task_key", "k" * 256),
        *(
            ("task_status", one, "outcome.task_status", one)
            for one in ("completed_successfully", "partial_completion", "failed", "unknown")
        ),
        *(("subordinate_profile", one, "subordinate_profile", one) for one in ("researcher", "rl-trainer")),
        *(
            ("user_feedback.type", one, "outcome.user_feedback", {"type": one})
            for one in ("thumbs_up", "thumbs_down")
        ),
        ("user_feedback.rating", 1, "outcome.user_feedback", {"type": "rating", "rating": 1.0}),
        ("user_feedback.rating", 5, "outcome.user_feedback", {"type": "rating", "rating": 5.0}),
        ("outcome.correction_requested", "TRUE", "outcome.correction_requested", True),
        ("outcome.task_abandoned", "False", "outcome.task_abandoned", False),
        ("outcome.security.critical_issues", "3", "outcome.security.critical_issues", 3),
        ("outcome.security.critical_issues", 2**53 - 1, "outcome.security.critical_issues", 2**53 - 1),
        ("outcome.linter.score", 0, "outcome.linter.score", 0.0),
        ("policy_version", 7, "metadata.policy_version", "7"),
        ("lessons", '["a,b", "c"]', "metadata.lessons", ["a,b", "c"]),
        ("lessons", ["l"] * 1000, "metadata.lessons", ["l"] * 1000),
    ],
)
def test_each_note_is_kept_in_its_place(note: str, value: Any, at: str, kept: Any) -> None:
    found: Any = noted(**{note: value})
    for part in at.split("."):
        found = found[part]
    assert found == kept


@pytest.mark.parametrize(
    ("note", "value"),
    [
        ("complexity_score", 1.01),
        ("user_feedback.rating", 0.9),
        ("user_feedback.rating", 5.1),
        ("outcome.linter.score", 10.1),
        ("task_key", "k" * 257),
        ("outcome.security.critical_issues", 2**53),
        ("outcome.security.critical_issues", -1),
        ("lessons", ["l"] * 1001),
        ("subordinate_profile", "clown"),
    ],
)
def test_a_note_beyond_its_bounds_is_named_and_not_kept(note: str, value: Any) -> None:
    found = noted(**{note: value})
    assert found["metadata"]["unusable_notes"] == [note]
    assert {"subordinate_profile", "lessons"}.isdisjoint({*found, *found["metadata"]})
    assert found["outcome"] == {"task_status": "unknown"}
    assert found["task_context"].keys() == {"domain", "instructions"}


def test_a_note_with_its_whole_name_goes_before_the_short_one() -> None:
    found = noted(
        completion=0.25, outcome__completion=0.75, outcome__tests__passed=4, outcome__tests__total=4
    )
    assert found["outcome"]["completion"] == 0.75
    assert found["outcome"]["tests"] == {"passed": 4, "total": 4}


def test_the_metadata_say_which_model_how_warm_for_how_much_and_for_whom() -> None:
    used = {
        "gen_ai.request.temperature": 0.5,
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.cost": 0.25,
    }
    chat = a_span(1, 3, "chat", parent=AGENT, attributes=used)
    run = run_of(chat, a_span(1, AGENT, "invoke_agent", lasts=9, attributes={"user.id": "u-1"}))
    metadata = trajectory_of(run)["metadata"]
    assert metadata == {
        "model": "m",
        "temperature": 0.5,
        "total_tokens": 42,
        "total_cost_usd": 0.25,
        "user_ref": "u-1",
        "trace_id": trace_id(1),
        "span_id": span_id(AGENT),
    }


def test_a_run_without_session_name_or_question_has_those_of_its_trace_and_kind() -> None:
    found = made(replace(a_span(1, AGENT, "invoke_agent", at=3, lasts=2), name=""))
    assert (found["session_id"], found["agent_id"]) == (trace_id(1), "agent")
    assert found["task_context"] == {"domain": "general"}
    assert found["start_timestamp"] == found["turns"][0]["timestamp"] == time_of(BORN_NS + 3 * 10**9)
    assert found["end_timestamp"] == time_of(BORN_NS + 5 * 10**9)


def test_what_a_tool_failed_with_is_seen_and_what_the_model_said_beside_the_call_is_kept() -> None:
    said = {"gen_ai.output.messages": message("assistant", "let me look")}
    failed = {"gen_ai.tool.name": "look", "error.type": "TimeoutError"}
    found = made(
        a_span(1, 3, "chat", parent=AGENT, attributes=said),
        a_span(1, 4, "execute_tool", parent=AGENT, attributes=failed, failed=True, lasts=-1),
        a_span(1, 7, "chat", parent=AGENT),
        a_span(1, AGENT, "invoke_agent", lasts=9),
    )
    call, answer = found["turns"]
    assert call["action"]["raw_response"] == "let me look"
    assert call["result"] == {
        "success": False,
        "output": None,
        "error": "TimeoutError",
        "execution_time_ms": 0.0,
    }
    assert answer["observation"] == {"type": "tool_result", "content": "TimeoutError"}


def test_answers_of_a_model_one_after_the_other_are_turns_of_their_own() -> None:
    chats = [
        a_span(
            1, n, "chat", parent=AGENT, attributes={"gen_ai.output.messages": message("assistant", f"{n}")}
        )
        for n in (3, 4, 5)
    ]
    found = made(*chats, a_span(1, AGENT, "invoke_agent", lasts=9))
    assert [turn["action"]["raw_response"] for turn in found["turns"]] == ["3", "4", "5"]


def test_what_an_agent_and_a_tool_gave_is_a_result_of_tools() -> None:
    def tool(number: int, result: str) -> TraceSpan:
        given = {"gen_ai.tool.name": "ask", "gen_ai.tool.call.result": result}
        return a_span(1, number, "execute_tool", parent=AGENT, lasts=2, attributes=given)

    forest = SpanForest(read_span)
    forest.take([
        a_span(1, 3, "chat", parent=AGENT),
        tool(4, "of an agent"),
        a_span(1, 14, "invoke_agent", parent=4, at=5),
        tool(7, "x" * 9000),
        a_span(1, 10, "chat", parent=AGENT),
        a_span(1, AGENT, "invoke_agent", lasts=20),
    ])  # fmt: skip
    outer, _ = (trajectory_of(run) for run in forest.runs(whole_trace=True))
    seen = outer["turns"][-1]["observation"]
    assert seen["type"] == "tool_result"
    assert seen["content"].startswith("of an agent\nxxx")
    assert len(seen["content"].encode()) <= 4096


@pytest.mark.parametrize(
    ("at_ns", "text"),
    [
        (-5, "1970-01-01T00:00:00.000Z"),
        (1_999_999, "1970-01-01T00:00:00.001Z"),
        (BORN_NS + 2_000_000, "2027-01-15T08:00:00.002Z"),
        (10**30, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_cut_to_the_millisecond(at_ns: int, text: str) -> None:
    assert time_of(at_ns) == text


def test_two_revisions_that_say_the_same_have_one_digest_and_different_events() -> None:
    first, again, other = trajectory_of(run_of(*agent_trace(1))), made(*agent_trace(1)), made(*agent_trace(2))
    again["metadata"]["revision"] = 2
    assert trajectory_digest(first) == trajectory_digest(again) != trajectory_digest(other)
    key = first["trajectory_id"]
    events = [trajectory_event_id(key), *(trajectory_event_id(key, n) for n in (1, 2, 3))]
    assert events[0] == events[1] == derived_id("trajectory", key)
    assert len({*events}) == 3


def test_arguments_are_kept_as_json_where_they_are_json() -> None:
    def arguments(text: str) -> Any:
        given = {"gen_ai.tool.name": "look", "gen_ai.tool.call.arguments": text}
        tool = a_span(1, 4, "execute_tool", parent=AGENT, attributes=given)
        found = made(a_span(1, 3, "chat", parent=AGENT), tool, a_span(1, AGENT, "invoke_agent", lasts=9))
        return found["turns"][0]["action"]["tool_args"]

    given = ['{"n":1}', "[1,2]", "7", '{"n":', "plain"]
    assert list(map(arguments, given)) == [{"n": 1}, [1, 2], "7", '{"n":', "plain"]


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


def test_feedback_says_what_the_evaluation_says_and_each_one_has_its_own_id() -> None:
    first: dict[str, Any] = {"name": "Tone", "at_ns": BORN_NS, "value": 0.5, "label": "fair", "place": "1"}

    def said(**changed: Any) -> Any:
        event = feedback_event(TraceOutcome(**{**first, **changed}), derived_id("a"), "chat-17")
        assert not isinstance(event, EventRefusal), event
        return event

    found = said(explanation="why").data
    assert (found["session_id"], found["source"], found["score"]) == ("chat-17", "evaluation", 0.5)
    assert (found["text"], found["metadata"]) == ("why", {"label": "fair"})
    label = said(value=None, explanation="why").data
    assert (label["type"], label["text"], label["metadata"]) == ("label", "fair", {"explanation": "why"})
    changes: list[dict[str, Any]] = [
        {}, {"name": "Style"}, {"at_ns": BORN_NS + 1}, {"value": 0.25}, {"label": "good"}
    ]  # fmt: skip
    assert len({said(**one).data["feedback_id"] for one in changes}) == len(changes)
    assert len({said(**one).id for one in changes}) == len(changes)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (-0.01, "outcome_out_of_range"),
        (1.01, "outcome_out_of_range"),
        (True, "outcome_not_a_number"),
        (None, "outcome_not_a_number"),
        ("0.5", "outcome_not_a_number"),
    ],
)
def test_a_score_is_a_number_from_0_to_1(value: Any, code: str) -> None:
    refused = feedback_event(TraceOutcome(name="n", at_ns=BORN_NS, value=value, place="1"), derived_id("a"))
    assert isinstance(refused, EventRefusal)
    assert refused.message.startswith(f"{code}: the score of 'n' is {value!r}, not a number from 0 to 1")


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
