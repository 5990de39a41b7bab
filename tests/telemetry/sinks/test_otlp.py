"""The wire format of spans, checked with OpenTelemetry's own library."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
from support.collector import decoded

from pytest_tfgrpo.telemetry.sinks.otlp import (
    CLIENT,
    INTERNAL,
    attribute,
    attributes,
    common,
    envelope,
    error_status,
    event_parts,
    request,
    span,
    stamp,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
VALUES = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.lists(TEXTS, max_size=3).map(tuple),
)
TIMES = st.integers(0, 2**63)


@given(
    name=TEXTS,
    values=st.dictionaries(TEXTS, VALUES, max_size=5),
    told=st.dictionaries(TEXTS, st.one_of(TEXTS, st.floats(allow_nan=False)), max_size=3),
    start=TIMES,
    end=TIMES,
    ids=st.tuples(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1)),
    failed=st.one_of(st.none(), TEXTS),
    kind=st.sampled_from([INTERNAL, CLIENT]),
    resource=st.dictionaries(st.text("abc.", min_size=1), TEXTS, max_size=3),
)
def test_a_request_is_what_the_sdk_would_send(
    name: str,
    values: dict[str, Any],
    told: dict[str, str | float],
    start: int,
    end: int,
    ids: tuple[int, int, int],
    failed: str | None,
    kind: int,
    resource: dict[str, str],
) -> None:
    trace, own, parent = ids[0].to_bytes(16), ids[1].to_bytes(8), ids[2].to_bytes(8) if ids[2] else b""
    before, after = event_parts("result", told)
    made = span(
        trace,
        own,
        parent,
        name,
        start,
        end,
        attributes(values),
        before + stamp(end) + after,
        b"" if failed is None else error_status(failed),
        kind=kind,
    )
    ours = ExportTraceServiceRequest.FromString(request(envelope(resource, "scope", "1.2"), [made, made]))
    sampled = TraceFlags(TraceFlags.SAMPLED)
    theirs = ReadableSpan(
        name,
        SpanContext(ids[0], ids[1], is_remote=False, trace_flags=sampled),
        SpanContext(ids[0], ids[2], is_remote=False, trace_flags=sampled) if ids[2] else None,
        Resource(resource),
        values,
        (Event("result", told, end),),
        kind=SpanKind.CLIENT if kind == CLIENT else SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope("scope", "1.2"),
        status=Status(StatusCode.UNSET if failed is None else StatusCode.ERROR, failed or None),
        start_time=start,
        end_time=end,
    )
    expected = encode_spans([theirs, theirs])
    for one in expected.resource_spans[0].scope_spans[0].spans:
        one.flags |= sampled  # which the SDK leaves out
        if failed is None:
            one.ClearField("status")  # it has no value
    assert ours == expected


@pytest.mark.parametrize("length", [0, 1, 113, 127, 128, 129, 16_383, 16_384])
def test_a_text_of_any_length_arrives_whole(length: int) -> None:
    made = span(b"t" * 16, b"s" * 8, b"", "n", 1, 2, attribute("k", "x" * length), attribute("n", length))
    (found,) = decoded(request(envelope({}, "s", "1"), [made]))
    assert (found["k"], found["n"]) == ("x" * length, length)


def test_equal_numbers_of_different_types_stay_apart() -> None:
    made = [common("n", value, type(value)) for value in (1, 1.0, True, 1, 1.0, True)]
    assert made == [attribute("n", value) for value in (1, 1.0, True, 1, 1.0, True)]
    assert len(set(made)) == 3


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_what_utf8_cannot_hold_becomes_a_question_mark(text: str) -> None:
    made = span(b"t" * 16, b"s" * 8, b"", text, 1, 2, attribute("k", text), error_status(text))
    (found,) = decoded(request(envelope({}, "s", "1"), [made]))
    expected = text.replace("\ud800", "?").replace("\udfff", "?")
    assert (found.name, found["k"], found.message) == (expected,) * 3
