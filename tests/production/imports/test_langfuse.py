"""Rows of Langfuse become spans that the GenAI dialect reads; scores become evaluations."""

import io
import json

import pytest

from pytest_tfgrpo.production.imports.langfuse import read_langfuse
from pytest_tfgrpo.telemetry.traces.dialects.genai import read_genai
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import NO_SPAN
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace

TRACE, AGENT, TURN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "b7ad6b7169203332"
ROW = {
    "id": TURN, "trace_id": TRACE, "parent_observation_id": AGENT, "type": "GENERATION", "name": "ask",
    "start_time": "2024-05-29 13:46:19.963000", "end_time": "2024-05-29 13:46:20.000000",
    "level": "DEFAULT", "status_message": "",
    "input": '[{"role":"system","content":"Be brief."},{"role":"user","content":"Which orders are late?"}]',
    "output": '{"role":"assistant","content":"Orders 17 and 23."}',
    "provided_model_name": "small-model", "model_parameters": '{"temperature":0.7}',
    "usage_details": {"input": 20, "output": 5, "total": 25},
    "cost_details": {"input": 0.001, "output": 0.001},
    "total_cost": 0.002, "user_id": "u1", "session_id": "chat-17", "environment": "production",
    "metadata": {"tfgrpo.policy_version": "v1", "attributes": '{"tfgrpo.task_key":"late"}', "else": "x"},
}  # fmt: skip
SCORE = {
    "id": "s1", "trace_id": TRACE, "observation_id": None, "timestamp": "2024-05-29 14:00:00.000000",
    "name": "helpful", "value": 0.75, "data_type": "NUMERIC", "comment": "short", "string_value": None,
}  # fmt: skip


def read(*rows, scales=None):
    lines = "\n".join(map(json.dumps, rows))
    return list(read_langfuse(io.BytesIO(lines.encode()), "rows.jsonl", scales or {}))


def test_a_row_that_is_no_json_is_refused_and_the_next_is_read():
    found = list(read_langfuse(io.BytesIO(b"{\n[7]\n" + json.dumps(ROW).encode()), "f"))
    assert [getattr(one, "reason", None) for one in found] == [
        RefusedTrace.NOT_JSON, RefusedTrace.MALFORMED, None
    ]  # fmt: skip


def test_texts_that_only_begin_as_json_stay_texts():
    for text in ("[see the list]", "{" * 5000, '{"a": 1'):
        (span,) = read({**ROW, "type": "TOOL", "input": text, "output": text})
        assert span.attributes["gen_ai.tool.call.result"] == text


def in_api_spelling(row):
    def capitals(name):
        first, *rest = name.split("_")
        return "".join([first, *(part.capitalize() for part in rest)])

    renamed = {"provided_model_name": "model"}
    return {renamed.get(name) or capitals(name): value for name, value in row.items()}


def test_a_generation_is_a_turn_with_model_tokens_cost_and_identity():
    (span,) = read(ROW)
    assert (span.key, span.parent, span.failed) == ((TRACE, TURN), AGENT, False)
    assert (span.start_ns, span.end_ns) == (1716990379963000000, 1716990380000000000)
    step = read_genai(span).step
    assert (step.kind, step.name) == ("turn", "small-model")
    assert (step.asked, step.answered) == ("Which orders are late?", "Orders 17 and 23.")
    assert {key: span.attributes[key] for key in sorted(span.attributes) if "messages" not in key} == {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model",
        "gen_ai.request.temperature": 0.7, "gen_ai.usage.cost": 0.002, "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 5, "gen_ai.usage.total_tokens": 25, "session.id": "chat-17",
        "tfgrpo.policy_version": "v1", "tfgrpo.task_key": "late", "user.id": "u1",
    }  # fmt: skip
    assert span.resource == {"deployment.environment.name": "production"}


def test_the_spelling_of_the_api_says_the_same():
    times = {"start_time": "2024-05-29T13:46:19.963Z", "end_time": "2024-05-29T13:46:20Z"}
    assert read(in_api_spelling(ROW | times)) == read(ROW)
    assert read(in_api_spelling(SCORE)) == read(SCORE)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("Which orders?", "Which orders?"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Which?"}]}]}, "Which?"),
        ({"question": "Which?"}, '{"question": "Which?"}'),
        ([{"content": "no role"}], '[{"content": "no role"}]'),
        ([1, None], "[1, null]"),
        ("", ""),
        (None, ""),
    ],
)
def test_input_of_any_form_is_read(given, asked):
    for said in (given, json.dumps(given) if isinstance(given, list | dict) else given):
        (span,) = read(ROW | {"input": said})
        assert read_genai(span).step.asked == asked


@pytest.mark.parametrize(
    ("output", "messages"),
    [
        ({"content": "17"}, [{"content": "17", "role": "assistant"}]),
        ({"role": "tool", "content": "17"}, [{"role": "tool", "content": "17"}]),
        (
            {"role": "assistant", "tool_calls": [{"id": "c"}]},
            [{"role": "assistant", "tool_calls": [{"id": "c"}]}],
        ),
        (
            {"role": "assistant", "parts": [{"type": "text", "content": "17"}]},
            [{"role": "assistant", "parts": [{"type": "text", "content": "17"}]}],
        ),
        (
            {"role": "assistant", "content": [3]},
            [{"role": "assistant", "content": '{"role": "assistant", "content": [3]}'}],
        ),
        ({"answer": "ö"}, [{"role": "assistant", "content": '{"answer": "ö"}'}]),
        (
            {"choices": [{"message": {"role": "assistant", "content": n}} for n in ("17", "23")]},
            [{"role": "assistant", "content": n} for n in ("17", "23")],
        ),
    ],
)
def test_output_of_any_form_becomes_messages(output, messages):
    (span,) = read(ROW | {"output": output})
    assert json.loads(span.attributes["gen_ai.output.messages"]) == messages


@pytest.mark.parametrize(
    ("further", "name", "value"),
    [
        ({"usage_details": None, "usage": {"input": 7}}, "gen_ai.usage.input_tokens", 7),
        ({"usage_details": {"input": "7"}}, "gen_ai.usage.input_tokens", 7),
        ({"usage_details": {"input": -7}}, "gen_ai.usage.input_tokens", None),
        ({"usage_details": {"input": True}}, "gen_ai.usage.input_tokens", None),
        ({"cost_details": {"total": 0.5}}, "gen_ai.usage.cost", 0.5),
        ({"cost_details": {"total": 0}}, "gen_ai.usage.cost", 0),
        ({"cost_details": {}, "total_cost": 0}, "gen_ai.usage.cost", None),
        ({"cost_details": {}, "total_cost": 0.25}, "gen_ai.usage.cost", 0.25),
        ({"type": "generation"}, "gen_ai.operation.name", "chat"),
        ({"type": "TOOL", "name": "orders"}, "gen_ai.tool.name", "orders"),
    ],
)
def test_what_a_row_says_of_its_model_is_kept_where_it_is_known(further, name, value):
    (span,) = read(ROW | further)
    assert span.attributes.get(name) == value


def test_release_and_marks_of_the_resource_are_of_the_resource():
    metadata = {"resourceAttributes": {"tfgrpo.policy_version": "v2", "host": "x"}}
    (span,) = read(ROW | {"release": "1.4", "metadata": metadata})
    assert span.resource == {
        "deployment.environment.name": "production",
        "service.version": "1.4",
        "tfgrpo.policy_version": "v2",
    }


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("2024-05-29 13:46:18", 0.0), ("", 0.0), ("2024-05-29T15:46:21.963+02:00", 2.0)],
)
def test_an_end_is_never_before_the_start_and_may_have_a_zone(said, seconds):
    (span,) = read(ROW | {"end_time": said})
    assert span.end_ns - span.start_ns == seconds * 1e9


def test_a_score_of_the_api_has_other_names_for_its_time_and_a_type_by_default():
    row = {key: value for key, value in SCORE.items() if key not in ("timestamp", "data_type")}
    (span,) = read(row | {"createdAt": "2024-05-29T14:00:00Z", "user_id": "u1", "session_id": "chat-17"})
    assert span == read(SCORE | {"user_id": "u1", "session_id": "chat-17"})[0]
    assert span.attributes == {"session.id": "chat-17", "user.id": "u1"}


def test_equal_ids_of_two_traces_are_two_spans():
    first, second = read(ROW | {"id": "one"}, ROW | {"id": "one", "trace_id": "1" * 32})
    assert first.key[1] != second.key[1]
    score, span = read(SCORE | {"id": "one"}, ROW | {"id": "one"})
    assert score.key != span.key


def test_the_answer_of_a_completion_is_its_message():
    (span,) = read(ROW | {"output": {"choices": [{"message": {"role": "assistant", "content": "17"}}]}})
    assert read_genai(span).step.answered == "17"


def test_a_tool_has_arguments_and_a_result_and_a_failed_one_its_message():
    tool = ROW | {"type": "TOOL", "name": "orders", "input": '{"late":true}', "output": "Order 17"}
    step = read_genai(read(tool)[0]).step
    assert (step.kind, step.name, step.asked, step.answered) == (
        "tool",
        "orders",
        '{"late":true}',
        "Order 17",
    )
    (span,) = read(tool | {"level": "ERROR", "status_message": "no database"})
    assert read_genai(span).step.error == "no database"


def test_an_agent_is_an_agent_and_what_has_no_step_keeps_its_place():
    agent = ROW | {"id": AGENT, "type": "AGENT", "name": "support", "parent_observation_id": ""}
    (span,) = read(agent)
    assert (span.parent, read_genai(span).step.kind, read_genai(span).step.name) == ("", "agent", "support")
    (span,) = read(ROW | {"type": "RETRIEVER", "end_time": None})
    assert read_genai(span).step is None
    assert (span.parent, span.end_ns) == (AGENT, span.start_ns)


def test_ids_that_are_none_of_opentelemetry_are_hashed_alike_in_rows_and_scores():
    rows = {"trace_id": "my trace", "id": "one", "parent_observation_id": ""}
    first, second, score = read(
        ROW | rows,
        ROW | rows | {"id": "two", "parent_observation_id": "one"},
        SCORE | {"trace_id": "my trace", "observation_id": "two"},
    )
    assert len({first.key[0], second.key[0], score.key[0]}) == 1
    assert (len(first.key[0]), len(first.key[1])) == (32, 16)
    assert (second.parent, score.parent) == (first.key[1], second.key[1])


def test_a_score_is_an_evaluation_of_its_trace_or_observation():
    whole, part = read(SCORE, SCORE | {"id": "s2", "observation_id": TURN})
    (event,) = whole.events
    assert (event.name, event.at_ns) == ("gen_ai.evaluation.result", whole.end_ns)
    assert event.attributes == {
        "gen_ai.evaluation.name": "helpful",
        "gen_ai.evaluation.score.value": 0.75,
        "gen_ai.evaluation.explanation": "short",
    }
    assert (whole.parent, part.parent) == (NO_SPAN, TURN)  # not a root, which would end the trace
    assert whole.key != part.key


@pytest.mark.parametrize(
    ("further", "said"),
    [
        ({"data_type": "BOOLEAN", "value": 1}, {"score.value": 1.0}),
        ({"data_type": "CATEGORICAL", "value": 2, "string_value": "good"}, {"score.label": "good"}),
        ({"data_type": "TEXT", "value": 0, "string_value": "well done"}, {"score.label": "well done"}),
        ({"name": "stars", "value": 4}, {"score.value": 0.75}),
        ({"name": "stars", "value": 1}, {"score.value": 0.0}),
        ({"name": "stars", "value": 5}, {"score.value": 1.0}),
    ],
)
def test_a_score_counts_by_its_type_and_its_scale(further, said):
    (span,) = read(SCORE | {"comment": None} | further, scales={"stars": (1.0, 5.0)})
    found = dict(span.events[0].attributes)
    del found["gen_ai.evaluation.name"]
    assert found == {f"gen_ai.evaluation.{key}": value for key, value in said.items()}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (SCORE | {"value": 4}, RefusedTrace.OUTCOME_OUT_OF_RANGE),
        (SCORE | {"value": 10**400}, RefusedTrace.OUTCOME_OUT_OF_RANGE),
        (SCORE | {"value": "4"}, RefusedTrace.OUTCOME_NOT_A_NUMBER),
        (SCORE | {"trace_id": None, "session_id": "chat-17"}, RefusedTrace.BAD_ID),
        (SCORE | {"data_type": "CATEGORICAL"}, RefusedTrace.MALFORMED),
        (ROW | {"start_time": "yesterday"}, RefusedTrace.MALFORMED),
        (ROW | {"start_time": "1970-01-01 00:00:00"}, RefusedTrace.MALFORMED),
        (ROW | {"start_time": "0001-01-01T00:00:00+14:00"}, RefusedTrace.MALFORMED),
        (ROW | {"trace_id": ""}, RefusedTrace.BAD_ID),
        (ROW | {"id": 7}, RefusedTrace.BAD_ID),
        ({"id": TRACE, "timestamp": "2024-05-29 13:46:19", "name": "a trace"}, RefusedTrace.MALFORMED),
        ([ROW], RefusedTrace.MALFORMED),
        (None, RefusedTrace.MALFORMED),
    ],
)
def test_a_row_that_is_not_used_is_refused_with_its_place(row, reason):
    first, second = read(ROW, row)
    assert first.place == "rows.jsonl:1"
    assert second == RefusedSpan(reason, "rows.jsonl:2")


def test_an_id_of_zeros_is_none_of_a_trace():
    (span,) = read(ROW | {"trace_id": "0" * 32, "id": "0" * 16})
    assert [set(part) != {"0"} for part in span.key] == [True, True]
    assert [len(part) for part in span.key] == [32, 16]


def test_hostile_rows_are_refused_or_kept_but_never_raise():
    deep = json.loads("[" * 500 + "]" * 500)
    for key in ROW:
        for value in (None, True, -1, 1e308, [], {}, "\x00\ud800", deep, [[1]], {"a": {"b": []}}):
            (found,) = read(ROW | {key: value})
            if not isinstance(found, RefusedSpan):
                read_genai(found)
    for key in SCORE:
        for value in (None, True, -1, 1e308, [], {}, "\x00\ud800", deep):
            read(SCORE | {key: value})


@pytest.mark.parametrize("missing", ["id", "name"])
def test_a_score_without_its_name_or_id_is_refused(missing):
    for empty in (None, ""):
        assert read({**SCORE, missing: empty}) == [RefusedSpan(RefusedTrace.MALFORMED, "rows.jsonl:1")]
