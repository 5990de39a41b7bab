from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.sweeps import SETTINGS, Credits, rule, swept

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.difference import Bar, judge_difference, share_level
from pytest_tfgrpo.gate.looks import one_look
from pytest_tfgrpo.gate.verdict import RuleResult, Verdict, judge
from pytest_tfgrpo.metrics.comparison import Tally


def verdict(run: Run, baseline: Baseline | None = None, **changes: Any) -> Verdict:
    extra = {key: changes.pop(key) for key in ("rules", "contamination") if key in changes}
    return judge(run, baseline=baseline, settings={**SETTINGS, **changes}, **extra)


# baseline and gain (decision 21a)


def regression(before: Mapping[str, Credits], after: Mapping[str, Credits], **changes: Any) -> RuleResult:
    return rule(verdict(swept(after), from_run(swept(before), "x"), **changes), "baseline")


PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=10, max_size=60)
EVEN = PAIRS.map(lambda pairs: [(a, a) if n % 4 else (a, b) for n, (a, b) in enumerate(pairs * 2)])
WORSE = PAIRS.map(lambda pairs: [(max(a, b), min(a, b)) for a, b in pairs])


@reaches("not worse", "worse", "open", "unseen")
@settings(max_examples=30)
@given(PAIRS | EVEN | EVEN | WORSE, st.floats(0, 0.05) | st.floats(0, 0.3))
def test_the_three_outcomes_are_those_of_decision_21a(pairs: list[tuple[int, int]], margin: float) -> None:
    before = {f"s{i}": [b / 2] for i, (b, _) in enumerate(pairs)}
    after = {f"s{i}": [a / 2] for i, (_, a) in enumerate(pairs)}
    result = regression(before, after, gate_margin=margin)
    low, high = result.figures["bounds"]
    answer = "not worse" if low > -margin else "worse" if high < 0 else "open" if low > -0.15 else "unseen"
    reached(answer)
    expected = {"not worse": "pass", "open": "inconclusive"}.get(answer, "fail")
    assert (result.figures["answer"], result.outcome) == (answer, expected)


def drawn_rows(rng: np.random.Generator, chances: Any, rollouts: int, errors: float) -> dict[str, Tally]:
    lost = rng.binomial(rollouts, errors, len(chances))
    solved = rng.binomial(rollouts - lost, chances)
    return {
        str(n): Tally(stamp="", n=int(rollouts - e), sum=float(s), sum_sq=float(s), errors=int(e))
        for n, (s, e) in enumerate(zip(solved, lost, strict=True))
    }


def test_both_readings_of_errors_share_the_level_of_a_drop() -> None:
    rng, kept, taken_back = np.random.default_rng(3), 0, 0
    for _ in range(120):
        chances = rng.beta(0.8, 0.8, 60)
        before, after = (drawn_rows(rng, chances, rollouts, 0.1) for rollouts in (15, 5))
        result = judge_difference("baseline", before, one_look(after), Bar(margin=0.05, alarm=0.15))
        (shared,) = share_level([result])
        if result.figures["answer"] == "worse":
            wrong = shared.figures["p_worse"] >= 0.025
            assert shared.figures["answer"] == ("open" if wrong else "worse")
            kept, taken_back = kept + (not wrong), taken_back + wrong
    assert taken_back >= 2
    assert kept <= 0.05 * 120
