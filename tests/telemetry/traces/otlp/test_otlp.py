"""Requests of OTLP/HTTP: JSON and protobuf read alike, and log records that belong to a trace."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support import ROOT
from support.otlp_spans import BORN_NS, TRACE, agent, attribute_list, line, span

from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp import otlp_json
from pytest_tfgrpo.telemetry.traces.otlp.otlp import UNDECODABLE, OtlpForm, read_otlp, read_otlp_logs
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, TraceSpan

FORMS: tuple[OtlpForm, ...] = ("json", "protobuf")
RECORDED = sorted((ROOT / "tests" / "telemetry" / "traces" / "recorded").glob("*.jsonl"))


def protobuf(request: dict[str, Any], kind: Any = ExportTraceServiceRequest) -> bytes:
    """Return a request of OTLP's JSON as protobuf."""

    def with_bytes(found: Any) -> Any:
        if isinstance(found, dict):
            ids = ("traceId", "spanId", "parentSpanId")
            return {k: hex_to_base64(v) if k in ids else with_bytes(v) for k, v in found.items()}
        return [with_bytes(one) for one in found] if isinstance(found, list) else found

    sent: bytes = ParseDict(with_bytes(request), kind()).SerializeToString()
    return sent


def hex_to_base64(text: str) -> str:
    return b64encode(bytes.fromhex(text)).decode()


def body_of(request: dict[str, Any], form: OtlpForm, kind: Any = ExportTraceServiceRequest) -> bytes:
    return json.dumps(request).encode() if form == "json" else protobuf(request, kind)


def request_of(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(line(*spans))
    if resource is not None:
        request["resourceSpans"][0]["resource"] = {"attributes": attribute_list(resource)}
    return request


def with_value(value: Any) -> dict[str, Any]:
    return span(2) | {"attributes": [{"key": "k", "value": value}]}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"intValue": "1"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_protobuf_and_json_give_the_same_spans(path: Path) -> None:
    for text in path.read_text().splitlines():
        of_logs = "resourceLogs" in text
        read, kind = (
            (read_otlp_logs, ExportLogsServiceRequest) if of_logs else (read_otlp, ExportTraceServiceRequest)
        )
        as_json = read(text.encode(), form="json", place="a")
        assert read(protobuf(json.loads(text), kind), form="protobuf", place="a") == as_json
        assert all(isinstance(one, TraceSpan) and one.resource == {"service.name": "toy"} for one in as_json)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"intValue": str(-(2**63))}, -(2**63)),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"doubleValue": "-Infinity"}, "-Infinity"),
        ({"bytesValue": "AAE="}, "AAE="),
        ({"arrayValue": {"values": [{"boolValue": False}, {}]}}, [False, None]),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"doubleValue": 0.5}}]}}, {"a": 0.5}),
    ],
)
def test_a_value_is_the_same_in_both_forms(form: OtlpForm, value: Any, expected: Any) -> None:
    (found,) = read_otlp(body_of(request_of(with_value(value)), form), form=form, place="a")
    assert isinstance(found, TraceSpan)
    assert found.attributes == {"k": expected}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (with_value({"stringValue": "a\0b"}), RefusedTrace.BAD_TEXT),
        (with_value({"stringValue": "x" * 10_000_000}), RefusedTrace.TOO_LARGE),
        (with_value(nested(30)), RefusedTrace.MALFORMED),
        (span(2, startTimeUnixNano="0"), RefusedTrace.MALFORMED),
        (span(2) | {"spanId": "00" * 8}, RefusedTrace.BAD_ID),
        (span(2) | {"traceId": "ab" * 8}, RefusedTrace.BAD_ID),
    ],
    ids=("nul", "ten megabytes", "deep", "no time", "zero id", "short id"),
)
def test_a_damaged_span_is_refused_and_its_neighbours_are_read(
    form: OtlpForm, damaged: dict[str, Any], reason: RefusedTrace
) -> None:
    body = body_of(request_of(span(1), damaged, span(3)), form)
    first, found, last = read_otlp(body, form=form, place="here")
    assert isinstance(first, TraceSpan)
    assert isinstance(last, TraceSpan)
    assert isinstance(found, RefusedSpan)
    assert (found.reason, found.place) == (reason, "here")


@pytest.mark.parametrize("form", FORMS)
def test_the_spans_of_a_damaged_resource_are_refused_with_their_keys(form: OtlpForm) -> None:
    body = body_of(request_of(span(1), resource={"tfgrpo.opt_out": "\0"}), form)
    (found,) = read_otlp(body, form=form, place="a")
    assert found == RefusedSpan(RefusedTrace.BAD_TEXT, "a", (TRACE, f"{1:016x}"), "0" * 15 + "1")


BOMB = b"[" * 100_000
DEEP = b"\x0a\x80" * 50_000


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe\xff", BOMB, DEEP, b'{"resourceSpans":NaN}'])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("read", [read_otlp, read_otlp_logs])
def test_a_body_that_cannot_be_decoded_is_one_refusal(read: Any, form: OtlpForm, body: bytes) -> None:
    (found,) = read(body, form=form, place="a")
    assert (found.reason in UNDECODABLE, found.key) == (True, None)


def test_half_a_surrogate_pair_is_refused() -> None:
    body = json.dumps(request_of(with_value({"stringValue": "\ud800"}))).encode()
    (found,) = read_otlp(body, form="json", place="a")
    assert isinstance(found, RefusedSpan)
    assert found.reason is RefusedTrace.BAD_TEXT


@pytest.mark.parametrize("body", [b"[]", b'{"resourceSpans":1}', b'{"resourceSpans":[1]}', b"null"])
def test_json_that_is_no_request_is_refused(body: bytes) -> None:
    assert read_otlp(body, form="json", place="a") == [RefusedSpan(RefusedTrace.MALFORMED, "a")]


def log(name: str, attributes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    found = {"traceId": TRACE, "spanId": f"{1:016x}", "timeUnixNano": str(BORN_NS), "eventName": name}
    return found | {"attributes": attribute_list(attributes)} | fields


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": attribute_list({"service.name": "judge"})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": list(records)}]}]}


SCORE = {"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": 0.75}
RESULT = "gen_ai.evaluation.result"


@pytest.mark.parametrize("form", FORMS)
def test_an_evaluation_in_a_log_record_is_an_outcome_of_its_run(form: OtlpForm) -> None:
    records = logs(
        log(RESULT, SCORE),
        log(RESULT, SCORE),
        log("app.started", {}),
        log("", {"event.name": RESULT, "gen_ai.evaluation.score.value": 0.5}, timeUnixNano=str(BORN_NS + 1)),
        log("", {"k": "\0"}),
    )
    found = read_otlp_logs(body_of(records, form, ExportLogsServiceRequest), form=form, place="a")
    assert [one.resource for one in found if isinstance(one, TraceSpan)] == [{"service.name": "judge"}] * 3
    forest = SpanForest(read_span)
    forest.take([*found, *read_otlp(line(agent(1)).encode(), form="json", place="a")])
    (run,) = forest.runs()
    assert [(one.name, one.value) for one in run.outcomes] == [("helpful", 0.75), ("", 0.5)]
    assert [one.reason for one in forest.refused] == [RefusedTrace.DUPLICATE]


@pytest.mark.parametrize("form", FORMS)
def test_a_log_record_says_to_whom_it_belongs_as_a_span_does(form: OtlpForm) -> None:
    whose = {"session.id": "s", "user.id": "u", "tfgrpo.opt_out": True, "gen_ai.conversation.id": "c"}
    records = logs(log(RESULT, SCORE | whose))
    (found,) = read_otlp_logs(body_of(records, form, ExportLogsServiceRequest), form=form, place="a")
    assert isinstance(found, TraceSpan)
    assert (found.attributes, found.events[0].attributes) == (whose, SCORE)
    reading = read_span(found)
    assert (reading.session, reading.user, reading.notes) == ("s", "u", {"opt_out": True})


@pytest.mark.parametrize("form", FORMS)
def test_an_evaluation_of_a_trace_or_of_a_span_that_is_not_here_is_a_stray(form: OtlpForm) -> None:
    records = logs(log(RESULT, SCORE, spanId=""), log(RESULT, SCORE), log(RESULT, SCORE, traceId="00" * 16))
    *found, refused = read_otlp_logs(body_of(records, form, ExportLogsServiceRequest), form=form, place="a")
    assert isinstance(refused, RefusedSpan)
    assert refused.reason is RefusedTrace.BAD_ID
    forest = SpanForest(read_span)
    forest.take(found)
    assert forest.runs() == []
    assert sorted(forest.strays) == [(TRACE, "0" * 16), (TRACE, f"{1:016x}")]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({}, ""),
        ({"eventName": "gen_ai.choice"}, "gen_ai.choice"),
        ({"eventName": ""}, ""),
        ({"eventName": 3}, ""),
        ({"attributes": None}, ""),
        ({"attributes": {"key": "event.name"}}, ""),
        ({"attributes": ["x", {"key": "event.name"}, {"key": "event.name", "value": "x"}]}, ""),
        ({"attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.choice"}}]}, "gen_ai.choice"),
        ({"attributes": [{"key": "event.name", "value": {"intValue": "3"}}]}, ""),
        (
            {
                "eventName": "gen_ai.choice",
                "attributes": [{"key": "event.name", "value": {"stringValue": "other"}}],
            },
            "gen_ai.choice",
        ),
    ],
)
def test_the_name_of_an_event_is_found_wherever_it_stands(record: Any, name: str) -> None:
    assert otlp_json._event_name(record) == name


@pytest.mark.parametrize(
    ("request_", "reasons"),
    [
        ({"resourceLogs": {}}, ["malformed"]),
        ({"resourceLogs": [{"scopeLogs": [{"logRecords": [7]}]}]}, ["malformed"]),
        ([], ["malformed"]),
        ({"resourceLogs": None}, []),
    ],
)
def test_logs_that_are_no_request_are_one_refusal(request_: Any, reasons: list[str]) -> None:
    found = read_otlp_logs(json.dumps(request_).encode(), form="json", place="a")
    assert [(type(one), one.place) for one in found] == [(RefusedSpan, "a")] * len(reasons)
    assert [one.reason for one in found if isinstance(one, RefusedSpan)] == reasons


@pytest.mark.parametrize("form", FORMS)
def test_a_log_record_of_a_damaged_resource_or_without_a_time_is_refused(form: OtlpForm) -> None:
    records = logs(log(RESULT, SCORE), log("other", SCORE), log(RESULT, SCORE, timeUnixNano="0"))
    (resource,) = records["resourceLogs"]
    late = BORN_NS + 7
    last = resource["scopeLogs"][0]["logRecords"][-1]
    last["observedTimeUnixNano"] = str(late)
    first, second = read_otlp_logs(body_of(records, form, ExportLogsServiceRequest), form=form, place="a")
    assert isinstance(first, TraceSpan)
    assert isinstance(second, TraceSpan)
    assert second.start_ns == second.events[0].at_ns == late
    resource["resource"] = {"attributes": [{"key": "a", "value": {"stringValue": "\0"}}]}
    found = read_otlp_logs(body_of(records, form, ExportLogsServiceRequest), form=form, place="a")
    assert [one.reason for one in found if isinstance(one, RefusedSpan)] == [RefusedTrace.BAD_TEXT] * 2
