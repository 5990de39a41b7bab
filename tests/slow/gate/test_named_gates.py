"""Named gates over a run: what each sees, what each domain comes to, and that what breaks closes the gate."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.sweeps import SETTINGS, Credits, make_run, swept

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.config import NamedGate
from pytest_tfgrpo.gate.named_gates import NamedVerdict, OpenGate, judge_named


def verdict(run: Run, baseline: Baseline | None = None, **fields: Any) -> NamedVerdict:
    return judge_named(run, OpenGate(NamedGate(name="mine", **fields), baseline), SETTINGS)


def stored(final: Mapping[str, Credits], like: Run) -> Baseline:
    """Return the baseline of the scenarios of `like`, with other results."""
    return from_run(make_run(final=final, scenarios=like.scenarios), "main")


ROW = st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans())
ROWS = st.lists(ROW, min_size=1, max_size=40)
NOT_WORSE = st.lists(ROW, min_size=12, max_size=20).map(
    lambda rows: [(before, max(before, after), in_dates) for before, after, in_dates in rows * 8]
)
ONE_WORSE = NOT_WORSE.map(
    lambda rows: [
        (2, 0, True) if n % 2 else (before, after, False) for n, (before, after, _) in enumerate(rows)
    ]
)


@reaches("fail", "pass", "fails in one alone")
@settings(max_examples=20)
@given(ROWS | NOT_WORSE | ONE_WORSE)
def test_judged_by_domain_nothing_passes_that_fails_in_one(rows: list[tuple[int, int, bool]]) -> None:
    ids = [f"{'date' if in_dates else 'text'}{i}" for i, (_, _, in_dates) in enumerate(rows)]
    run = swept({id_: [after / 2] for id_, (_, after, _) in zip(ids, rows, strict=True)})
    base = stored({id_: [before / 2] for id_, (before, _, _) in zip(ids, rows, strict=True)}, run)
    found = verdict(run, base, per_domain=True)
    alone = [
        verdict(run, base, per_domain=True, domains=(d,)).outcome
        for d in sorted({s.domain for s in run.scenarios})
    ]
    for outcome in ("fail", "pass"):
        reached(outcome, found.outcome == outcome)
    reached("fails in one alone", len(set(alone)) == 2)
    if found.outcome == "fail":
        assert "fail" in alone
    assert (found.outcome == "pass") == (set(alone) == {"pass"})
