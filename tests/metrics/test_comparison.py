from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_scenario
from support.reached import reached, reaches
from support.sweeps import evenly, make_run

from pytest_tfgrpo.core.named_scores import SHARE, MetricScale
from pytest_tfgrpo.metrics.comparison import (
    Comparison,
    Sweeps,
    Tally,
    compare,
    figures,
    on_scale,
    sentence,
)
from pytest_tfgrpo.suite.families import sweeps_of


def row(total: float, n: int = 2, errors: int = 0, stamp: str = "x") -> Tally:
    return Tally(stamp=stamp, n=n, sum=total, sum_sq=total, errors=errors)


def test_scenarios_pair_by_id_and_task_stamp() -> None:
    before = {"a": row(1), "b": row(1), "changed": row(1, stamp="old"), "gone": row(1)}
    after = {"changed": row(2, stamp="new"), "b": row(2), "a": row(0), "new": row(2)}
    compared = compare(before, after)
    assert (compared.ids, compared.before_K, compared.after_K) == (("b", "a"), (0.5, 0.5), (1.0, 0.0))


def test_a_scenario_with_errors_only_pairs_when_errors_count_as_0() -> None:
    before, after = {"a": row(2)}, {"a": row(0, n=0, errors=2)}
    assert compare(before, after).ids == ()
    assert compare(before, after, errors_as_zero=True).after_K == (0.0,)


def test_sweeps_are_found_by_mode() -> None:
    run = make_run({"e": [1]}, {"e": [0]}, {"t": [1]})
    assert (Sweeps(run).before, Sweeps(run).after) == (run.phases[0], run.phases[2])
    assert (Sweeps(make_run(final={"e": [1]})).before, Sweeps(make_run({"e": [1]})).after) == (None, None)


def test_figures_and_words_tell_the_same() -> None:
    run = make_run(evenly(8, [0, 0]), evenly(8, [1, 0]))
    compared = compare(Sweeps(run).rows_before, Sweeps(run).rows_after)
    found = figures(compared)
    assert (found["n"], found["before"], found["after"], found["difference"]) == (8, 0, 0.5, 0.5)
    assert (found["method"], found["detectable"]) == ("exact", None)
    assert sentence(compared).startswith("+0.500 (from 0.000 to 0.500), 95 % interval +0.")


def test_scenarios_of_a_family_are_one_piece_of_evidence() -> None:
    def compared(families: int) -> Comparison:
        after = {f"s{n}": replace(row(n % 3), family=f"f{n % families}") for n in range(48)}
        return compare({id_: row(1) for id_ in after}, after)

    alone, together = compared(48), compared(12)
    assert (figures(alone)["families"], figures(together)["families"]) == (48, 12)
    assert sentence(alone).endswith(", 48 scenarios")
    assert sentence(together).endswith(", 48 scenarios of 12 families")
    assert (figures(alone)["method"], figures(together)["method"]) == ("bca", "sign_flip")
    assert sentence(compared(6)).endswith(", 48 scenarios of 6 families (says nothing of others)")
    assert (figures(compared(6))["ci95"], figures(compared(6))["just_these"]) == (
        figures(alone)["ci95"],
        True,
    )


def test_the_families_are_those_of_the_run_and_a_domain_has_its_own() -> None:
    domains = {f"s{n}": "text" if n < 2 else "code" for n in range(4)}
    run = make_run({id_: [1] for id_ in domains}, {id_: [1] for id_ in domains})
    run = replace(
        run,
        scenarios=tuple(replace(s, family="f", domain=domains[s.id]) for s in run.scenarios if s.id != "s3"),
    )
    run = replace(run, scenarios=(*run.scenarios, make_scenario("s3", split="eval")))
    rows = sweeps_of(run).rows_after
    assert len({rows["s0"].family, rows["s1"].family}) == 1
    assert rows["s0"].family != rows["s2"].family
    assert rows["s3"].family is None


def test_nothing_in_common_is_said() -> None:
    compared = compare({}, {"a": row(1)})
    assert sentence(compared) == "no scenario is in both sweeps"
    assert (compared.before, compared.after, figures(compared)["difference"]) == (None, None, None)


@reaches("common scenarios")
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)),
)
def test_swapping_the_sweeps_turns_the_difference_around(before: dict, after: dict) -> None:
    old = {id_: row(total, n=4) for id_, total in before.items()}
    new = {id_: row(total, n=4) for id_, total in after.items()}
    there, back = compare(old, new), compare(new, old)
    assert there.difference.n == back.difference.n == len(before.keys() & after.keys())
    if reached("common scenarios", there.ids):
        assert there.difference.mean == pytest.approx(-back.difference.mean)


def test_a_control_is_cut_where_the_sweep_beside_it_was() -> None:
    run = make_run({"a": [1, 1, 0, 0]}, {"a": [0] * 8})
    row = Sweeps(run).control_until(4)
    assert row is not None
    assert (row["a"].n, row["a"].sum) == (2, 2)
    before, after = run.phases
    alone = replace(before, phase=replace(before.phase, concurrent=False))
    for phases in ((alone, after), (after,), (before,)):
        assert Sweeps(replace(run, phases=phases)).control_until(4) is None


@pytest.mark.parametrize(
    ("better", "figures_of", "expected"),
    [
        ("higher", (0.0, 0.5, 0.5, [0.25, 0.75], 0.1), (0.0, 200.0, 200.0, [100.0, 300.0], 40.0)),
        ("lower", (0.0, 0.5, 0.5, [0.25, 0.75], 0.1), (400.0, 200.0, -200.0, [-300.0, -100.0], 40.0)),
        ("lower", (1.0, 1.0, 0.0, [-0.5, 0.25], 0.0), (0.0, 0.0, 0.0, [-100.0, 200.0], 0.0)),
        ("lower", (None, None, None, None, None), (None, None, None, None, None)),
    ],
)
def test_figures_of_shares_are_told_on_the_scale_that_they_were_made_of(
    better: Any, figures_of: Any, expected: Any
) -> None:
    names = ("before", "after", "difference", "ci95", "detectable")
    shares: Any = {"n": 3, "method": "exact"} | dict(zip(names, figures_of, strict=True))
    scale = MetricScale(unit="words", better=better, most=400)
    assert on_scale(scale, shares) == {"n": 3, "method": "exact"} | dict(zip(names, expected, strict=True))
    assert on_scale(SHARE, shares) is shares


def test_without_a_final_sweep_no_metric_has_tallies() -> None:
    sweeps = Sweeps(make_run({"a": [1]}))
    for metric in ("reward", "gt_score", "relative_rank", "check.exact", "extra.x"):
        assert sweeps.rows_of(metric) == {}
        assert sweeps.scale_of(metric) is SHARE
    assert (sweeps.rows_after, sweeps.rows_until(1)) == ({}, {})
    assert [*sweeps.rows_before] == ["a"]
    assert Sweeps(make_run(final={"a": [1]})).rows_before == {}
