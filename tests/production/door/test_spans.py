"""Spans at the door: what is refused is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.intake import TRACE, span

from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import SPANS_SUBJECT
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace

LATER = ("2" * 32, "2" * 16)


def test_a_span_that_cannot_be_kept_is_named_in_its_dead_letter(intake: Intake, bus: Bus):
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    nested = replace(span(1, deep=deep), place="request:1")
    large = replace(span(2, **{f"a{n}": "x" * 90 for n in range(12_000)}), place="request:2")
    of_another = [
        RefusedSpan(RefusedTrace.BAD_ID, "request:3", LATER),
        RefusedSpan(RefusedTrace.BAD_ID, "request:4", ("", "2" * 16)),
        RefusedSpan(RefusedTrace.BAD_ID, "request:5"),
    ]
    result = intake.spans([nested, large, *of_another, span(3)])
    assert (result.accepted, sorted(result.refused)) == (1, [0, 1, 2, 3, 4])
    letters = [dead_letter_of(event) for event in bus.replay("RL_DEAD")]
    assert {letter.subject for letter in letters} == {SPANS_SUBJECT}
    assert [(letter.code, letter.message) for letter in letters] == [
        ("bad_id", f"span {LATER[1]} of trace {LATER[0]} at request:3"),
        ("bad_id", f"span {LATER[1]} of trace ? at request:4"),
        ("bad_id", "span ? of trace ? at request:5"),
        ("malformed", f"span {1:016x} of trace {TRACE} at request:1"),
        ("too_large", f"span {2:016x} of trace {TRACE} at request:2"),
    ]
    assert result.refused[0].message == "request:1: malformed"
    assert result.refused[1].message == "request:2: too_large"
