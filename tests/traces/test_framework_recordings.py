"""Spans of many frameworks give the runs that the frameworks themselves report.

``record_frameworks.py`` has recorded them: what is compared never comes from spans.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from support.traces.framework_gaps import NOT_EMITTED
from support.traces.framework_truth import (
    FRAMEWORKS,
    Facts,
    FrameworkCase,
    found_facts,
    framework_cases,
    true_facts,
)
from support.traces.recorded_spans import runs_of

CASES = framework_cases()
FACTS = [(*one, fact) for one in CASES for fact in true_facts(one)]


@cache
def found_in(one: FrameworkCase) -> Facts:
    runs, _ = runs_of(*one.lines)
    return found_facts(runs, one)


def parameters() -> list[object]:
    """Return a parameter for each fact; what is known not to come out is a strict failure."""
    return [
        pytest.param(
            *one,
            id="-".join(one).replace(" ", "_"),
            marks=[pytest.mark.xfail(reason=NOT_EMITTED[one], strict=True)] if one in NOT_EMITTED else [],
        )
        for one in FACTS
    ]


@pytest.mark.parametrize(("framework", "case", "fact"), parameters())
def test_spans_say_what_the_framework_reports(framework: str, case: str, fact: str) -> None:
    one = FrameworkCase(framework, case)
    assert found_in(one).get(fact) == true_facts(one)[fact]


def test_known_gaps_are_facts_of_recordings() -> None:
    assert NOT_EMITTED.keys() <= set(FACTS)


def test_recordings_are_small_and_name_no_place_of_a_machine() -> None:
    for path in FRAMEWORKS.glob("*/*"):
        text = path.read_text(encoding="utf-8")
        assert len(text) < 100_000
        assert not re.search(r"/(tmp|root|home|Users|work|var|private)/", text), path
