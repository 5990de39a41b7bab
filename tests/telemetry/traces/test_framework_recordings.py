"""Spans of many frameworks give the runs that the frameworks themselves report.

``record_frameworks.py`` has recorded them: what is compared never comes from spans.
"""

from __future__ import annotations

import pytest
from support.traces.framework_gaps import NOT_EMITTED
from support.traces.framework_truth import FrameworkCase, found_facts, framework_cases, true_facts
from support.traces.recorded_spans import runs_of

CASES = framework_cases()


@pytest.mark.parametrize("one", CASES, ids="-".join)
def test_spans_say_what_the_framework_reports(one: FrameworkCase) -> None:
    runs, _ = runs_of(*one.lines)
    found = found_facts(runs, one)
    wrong = {
        fact: (true, found.get(fact)) for fact, true in true_facts(one).items() if found.get(fact) != true
    }
    gaps = {fact for framework, case, fact in NOT_EMITTED if (framework, case) == one}
    assert wrong.keys() == gaps, {fact: wrong.get(fact) for fact in wrong.keys() ^ gaps}


def test_each_known_gap_is_one_of_a_recording() -> None:
    assert {(framework, case) for framework, case, _ in NOT_EMITTED} <= set(CASES)
    assert len(CASES) > 100
