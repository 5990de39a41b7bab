"""Which turns are one call of a model, and what several spans of one call amount to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_tfgrpo.telemetry.traces.normal_form import _ends_stream, _is_seen_again, _joined, _total
from pytest_tfgrpo.telemetry.traces.turns import TraceCall, TraceStep

TURN = TraceStep(kind="turn", name="", start_ns=2, end_ns=8, error=None, model="m", tokens=5)
AROUND = replace(TURN, start_ns=0, end_ns=10, asked="q", answered="a")
CALL = TraceCall("c1", "f", "{}")


@pytest.mark.parametrize(
    ("around", "step", "same"),
    [
        ({}, {}, True),
        ({}, {"model": "n"}, False),
        ({}, {"model": ""}, True),
        ({"model": ""}, {}, True),
        ({}, {"tokens": 6}, False),
        ({}, {"tokens": None}, True),
        ({"tokens": None}, {}, True),
        ({}, {"answered": "a"}, False),
        ({}, {"thoughts": ("hm",)}, False),
        ({"asked": "", "answered": ""}, {}, False),
        ({"asked": "", "answered": "", "thoughts": ("hm",)}, {}, True),
        ({"start_ns": 3}, {}, False),
        ({"end_ns": 7}, {}, False),
        ({"start_ns": 2, "end_ns": 8}, {}, True),
        ({"response": "r"}, {"response": "r", "answered": "other", "model": "n"}, True),
        ({"response": "r"}, {"response": "s"}, False),
        ({"response": "r", "end_ns": 7}, {"response": "r"}, False),
    ],
)
def test_a_turn_within_another_is_the_same_call(
    around: dict[str, Any], step: dict[str, Any], same: bool
) -> None:
    assert _is_seen_again(replace(AROUND, **around), replace(TURN, **step)) is same


@pytest.mark.parametrize(
    ("before", "step", "ends"),
    [
        ({}, {}, True),
        ({}, {"answered": "", "tokens": 0}, True),
        ({}, {"answered": "", "answers": 1}, True),
        ({}, {"answered": ""}, False),
        ({"answered": "x"}, {}, False),
        ({"answers": 1}, {}, False),
        ({"tokens": 0}, {}, False),
        ({"error": ""}, {}, False),
        ({"asked": "p"}, {}, False),
        ({"model": "n"}, {}, False),
        ({"end_ns": 9}, {}, False),
        ({}, {"end_ns": 9}, False),
    ],
)
def test_a_turn_of_no_time_is_the_answer_of_the_stream_before_it(
    before: dict[str, Any], step: dict[str, Any], ends: bool
) -> None:
    silent = replace(TURN, asked="q", tokens=None)
    last = replace(TURN, start_ns=8, asked="q", answered="a", tokens=None)
    assert _ends_stream(replace(silent, **before), replace(last, **step)) is ends


def test_a_call_has_what_only_the_spans_within_its_own_say() -> None:
    bare = replace(TURN, tokens=None, model="")
    inner = replace(TURN, name="inner", asked="q", answered="a", temperature=0.0, tokens=3, cost_usd=0.5)
    found = _joined(bare, [replace(bare, tokens=4), inner])
    assert (found.name, found.asked, found.answered, found.model) == ("inner", "q", "a", "m")
    assert (found.temperature, found.tokens, found.cost_usd) == (0.0, 7, 0.5)
    assert _joined(replace(bare, asked="own"), [inner]).asked == "own"
    assert _joined(replace(bare, name="own", tokens=1), [inner]).tokens == 1
    later = replace(inner, asked="p", answered="b")
    assert _joined(bare, [inner, later]).answered == "b", "the last that says something"


@pytest.mark.parametrize(
    ("own", "said", "last", "error"),
    [
        (None, {}, "down", "down"),
        (None, {"answered": "a"}, "down", None),
        (None, {"calls": (CALL,)}, "down", None),
        ("own", {}, "down", "own"),
        (None, {}, None, None),
    ],
)
def test_a_call_failed_by_the_last_span_within_unless_it_answered(
    own: str | None, said: dict[str, Any], last: str | None, error: str | None
) -> None:
    first = replace(TURN, error="early", **said)
    assert _joined(replace(TURN, error=own), [first, replace(TURN, error=last)]).error == error


def test_a_total_is_its_own_or_the_sum_of_what_is_known() -> None:
    assert (_total(0, [1, 2]), _total(None, [None, 1, 2]), _total(None, [None])) == (0, 3, None)
