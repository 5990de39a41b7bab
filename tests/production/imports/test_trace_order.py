"""Spans of files by traces: which is first, which comes last within, and what counts of a repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pytest_tfgrpo.production.imports.trace_order import TraceOrder
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, TraceSpan


@pytest.fixture
def order() -> Iterator[TraceOrder]:
    with closing(TraceOrder()) as made:
        yield made


def span(
    trace: str, name: str, parent: str, start: int, end: int, service: str = "a", **more: object
) -> TraceSpan:
    known = {"name": name, "attributes": {}, "resource": {"service.name": service}} | more
    return TraceSpan(key=(trace, name), parent=parent, start_ns=start, end_ns=end, **known)  # type: ignore[arg-type]


def names(order: TraceOrder) -> list[str]:
    return ["".join(one.key[1] for one in trace) for trace in order.traces()]


def test_traces_are_in_the_order_in_which_they_began(order: TraceOrder) -> None:
    for trace, start in (("z", 1), ("b", 3), ("a", 3), ("c", 2)):
        order.add(span(trace, trace, "", start, 9))
    order.add(span("b", "x", "b", 0, 1))
    assert names(order) == ["xb", "z", "c", "a"]


def test_the_roots_service_comes_last_and_the_root_at_its_end(order: TraceOrder) -> None:
    spans = [
        span("t", "r", "", 1, 5),
        span("t", "p", "r", 2, 9),
        span("t", "q", "r", 3, 4),
        span("t", "o", "r", 1, 4),
        span("t", "x", "r", 1, 99, "b"),
        span("t", "y", "x", 2, 50, "b"),
    ]
    for one in spans:
        order.add(one)
    assert names(order) == ["yxqopr"]


def test_the_last_of_a_key_counts_and_comes_back_whole(order: TraceOrder) -> None:
    order.add(span("t", "s", "p", 1, 2))
    assert order.repeated == 0
    whole = span(
        "t",
        "s",
        "p",
        2**64,
        2**64 + 1,
        attributes={"a": [1, {"b": None}]},
        events=(SpanEvent("said", 7, {"text": "ü"}),),
        failed=True,
        message="no",
        place="file:3",
    )
    order.add(whole)
    order.add(span("u", "s", "p", 3, 4))
    assert (order.repeated, list(order.traces())[1]) == (1, [whole])
