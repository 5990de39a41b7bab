"""Lines of OTLP JSON as spans."""

from io import BytesIO
from typing import Any

import pytest
from support.otlp_spans import line, span

from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, TraceSpan


def read(found: dict[str, Any]) -> TraceSpan | RefusedSpan:
    (one,) = read_otlp_lines(BytesIO(line(found).encode()), "a.jsonl")
    return one


def with_value(value: Any) -> dict[str, Any]:
    return span(2, attributes={}) | {"attributes": [{"key": "k", "value": value}]}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"intValue": "1"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": "é"}, "é"),
        ({"boolValue": False}, False),
        ({"intValue": "-12"}, -12),
        ({"intValue": 12}, 12),
        ({"doubleValue": 0.5}, 0.5),
        ({"doubleValue": "Infinity"}, "Infinity"),
        ({"bytesValue": "AAE="}, "AAE="),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}, {"a": True}),
        ({}, None),
        (None, None),
    ],
)
def test_an_attribute_has_the_value_that_was_sent(value: Any, expected: Any) -> None:
    found = read(with_value(value))
    assert isinstance(found, TraceSpan)
    assert found.attributes == {"k": expected}


@pytest.mark.parametrize(
    "value",
    [
        {"intValue": True},
        {"intValue": str(2**63)},
        {"intValue": 1.5},
        {"doubleValue": "much"},
        {"doubleValue": True},
        {"doubleValue": 10**400},
        {"boolValue": 1},
        {"newValue": 1},
        {"intValue": "1", "stringValue": "1"},
        {"arrayValue": [1]},
        nested(30),
    ],
)
def test_a_value_that_otlp_does_not_have_is_refused(value: Any) -> None:
    found = read(with_value(value))
    assert isinstance(found, RefusedSpan)
    assert (found.reason, found.place) == (RefusedTrace.MALFORMED, "a.jsonl:1")


def test_identities_are_compared_without_case_and_a_parent_of_zeros_is_none() -> None:
    found = read(span(2) | {"traceId": "AB" * 16, "parentSpanId": "0" * 16})
    assert isinstance(found, TraceSpan)
    assert (found.key, found.parent) == (("ab" * 16, f"{2:016x}"), "")


def test_the_line_after_one_that_is_too_long_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.telemetry.traces.otlp.otlp_lines.LINE_BYTES", 1000)
    text = "x" * 2500 + "\n" + line(span(1, attributes={})) + "\n" + "y" * 999 + "\n"
    found = [*read_otlp_lines(BytesIO(text.encode()), "a.jsonl")]
    assert found[0] == RefusedSpan(RefusedTrace.TOO_LARGE, "a.jsonl:1")
    assert isinstance(found[1], TraceSpan)
    assert found[2:] == [RefusedSpan(RefusedTrace.NOT_JSON, "a.jsonl:3")]
