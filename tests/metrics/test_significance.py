"""What the report claims: a domain's gain after correction for all domains, and what the plan can show."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.sweeps import claims_of_chance, evenly, in_domains, make_result, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.metrics import significance
from pytest_tfgrpo.metrics.comparison import Comparison, Sweeps, Tally, compare
from pytest_tfgrpo.numerics.planning import minimum_detectable_effect, planned_effect
from pytest_tfgrpo.numerics.stats import Interval, holm


def domains(run: Run):
    sweeps = Sweeps(run)
    before, after = sweeps.rows_before, sweeps.rows_after
    return significance.domains(run, before, after)


def test_a_domain_is_claimed_only_where_its_p_holds_after_correction() -> None:
    rows = domains(in_domains({"a": [1, 2] * 5, "b": [-1, -2] * 5, "c": [1, 1, 1, 1, 1, 1], "d": [0] * 9}))
    assert [row["claim"] for row in rows] == ["better", "worse", None, None]
    # Alone, six gains of six would do.
    assert rows[2]["p"] == pytest.approx(2 / 64)
    assert rows[2]["p_adjusted"] == pytest.approx(4 / 64)


gains = st.lists(st.integers(-2, 2), min_size=1, max_size=9)


clear = st.lists(st.integers(1, 2), min_size=8, max_size=12)
drawn_gains = gains | clear | clear.map(lambda drawn: [-gain for gain in drawn])


@reaches("better", "worse", "no claim")
@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from("abcdef"), drawn_gains, min_size=1))
def test_the_correction_is_that_of_holm_over_all_domains(drawn: dict) -> None:
    rows = domains(in_domains(drawn))
    adjusted = holm([row["p"] for row in rows])
    assert [row["p_adjusted"] for row in rows] == pytest.approx(adjusted)
    for row in rows:
        low, high = row["gain"]["ci95"] or (-1.0, 1.0)
        held = row["p_adjusted"] < 0.05 and (low > 0 or high < 0)
        assert row["claim"] == (("better" if low > 0 else "worse") if held else None)
        reached(row["claim"] or "no claim")


def test_a_claim_needs_p_and_interval_under_both_readings_of_errors() -> None:
    def reading(low: float, high: float, p: float) -> tuple[Comparison, float]:
        between = Interval(20, (low + high) / 2, 0.1, low, high, "sign_flip")
        return Comparison(ids=(), before_K=(), after_K=(), families_K=(), difference=between), p

    assert significance.claim(reading(0.01, 0.6, 0.04)) == "better"
    assert significance.claim(reading(-0.6, -0.01, 0.04)) == "worse"
    assert significance.claim(reading(-0.006, 0.656, 0.047)) is None
    assert significance.claim(reading(0.01, 0.6, 0.06)) is None
    assert significance.claim(reading(0.01, 0.6, 0.04), reading(-0.01, 0.5, 0.04)) is None


def test_after_several_looks_the_interval_is_that_of_the_stricter_level() -> None:
    """The interval at 5 % lies above 0; at 2.5 %, drawn afresh from the scores, it holds 0."""
    known = Interval(8, 0.2, 0.1, 0.01, 0.4, "sign_flip")
    scores_K = (0.0, 1.0) * 4
    compared = Comparison(
        ids=(), before_K=scores_K, after_K=scores_K[::-1], families_K=tuple("abcdefgh"), difference=known
    )
    assert significance.claim((compared, 0.001)) == "better"
    assert significance.claim((compared, 0.001), looks=2) is None


def test_errors_of_the_new_library_cannot_make_a_claim() -> None:
    before = {f"a-{i}": [0.0, 1.0] for i in range(12)}
    after: dict[str, list[float | None]] = {id_: [None, 1.0] for id_ in before}
    run = make_run(before, after)
    [row] = domains(run)
    assert row["p_adjusted"] < 0.05
    assert row["gain"]["difference"] == 0.5
    assert row["claim"] is None


def test_claims_of_chance_stay_as_rare_with_many_domains() -> None:
    assert claims_of_chance(12) <= 2


def test_without_a_baseline_sweep_nothing_is_claimed() -> None:
    run = make_run(final=evenly(8, [1, 0]))
    (row,) = significance.domains(run, {}, Sweeps(run).rows_after)
    assert (row["gain"], row["p"], row["p_adjusted"], row["claim"]) == (None, None, None, None)


def test_scenarios_in_one_sweep_only_are_no_test() -> None:
    run = in_domains({"a": [1] * 8, "b": [1] * 8})
    sweeps = Sweeps(run)
    before, after = sweeps.rows_before, sweeps.rows_after
    before = {id_: row for id_, row in before.items() if id_.startswith("a")}
    rows = significance.domains(run, before, after)
    assert [row["p_adjusted"] for row in rows] == [rows[0]["p"], None]


def test_the_plan_counts_what_was_planned_and_reckons_with_the_spread_measured() -> None:
    run = in_domains({"a": [0, 1, 2] * 6})
    sweeps = Sweeps(run)
    before, after = sweeps.rows_before, sweeps.rows_after
    compared = compare(before, after)
    last = replace(run.phases[-1], phase=replace(run.phases[-1].phase, scenarios=tuple("x" * 30)))
    assert significance.planned(compared, last) == {
        "scenarios": 30,
        "rollouts": 4,
        "spread": "measured",
        "detectable": minimum_detectable_effect(compared.difference.std, 30),
    }


def test_without_a_spread_the_plan_reckons_with_the_widest() -> None:
    last = make_result(evenly(12, [1, 1]))
    found = significance.planned(compare({}, {}), last)
    assert (found["spread"], found["detectable"]) == ("widest", planned_effect(12, 2))


def test_where_all_scenarios_gain_the_same_the_plan_reckons_with_the_widest() -> None:
    run = in_domains({"a": [1] * 12})
    sweeps = Sweeps(run)
    found = significance.planned(compare(sweeps.rows_before, sweeps.rows_after), run.phases[-1])
    assert (found["spread"], found["detectable"]) == ("widest", planned_effect(12, 4))


def _compared(low: float | None, high: float | None) -> Any:
    return SimpleNamespace(difference=SimpleNamespace(low=low, high=high))


@pytest.mark.parametrize(
    ("readings", "claimed"),
    [
        ([(0.1, 0.2, 0.01), (0.1, 0.2, 0.01)], "better"),
        ([(-0.2, -0.1, 0.01)], "worse"),
        ([(0.0, 0.2, 0.01)], None),
        ([(-0.2, 0.0, 0.01)], None),
        ([(None, None, 0.01)], None),
        ([(0.1, 0.2, None)], None),
        ([(0.1, 0.2, 0.05)], None),
        ([(0.1, 0.2, 0.049)], "better"),
        ([(0.1, 0.2, 0.01), (0.1, 0.2, 0.06)], None),
        ([(0.1, 0.2, 0.01), (-0.2, -0.1, 0.01)], None),
        ([(0.1, 0.2, 0.01), (None, None, None)], None),
    ],
)
def test_a_claim_needs_all_readings_on_one_side(readings: Any, claimed: str | None) -> None:
    assert significance.claim(*((_compared(low, high), p) for low, high, p in readings)) == claimed


@pytest.mark.parametrize(
    ("rows", "mean"),
    [([], None), ([(0, 0.0)], None), ([(2, 1.0)], 0.5), ([(2, 1.0), (0, 0.0), (1, 0.0)], 0.25)],
)
def test_a_domain_that_is_compared_with_nothing_has_the_mean_of_its_scored_scenarios(
    rows: list[tuple[int, float]], mean: float | None
) -> None:
    tallies = {
        str(n): Tally(stamp="x", n=count, sum=total, sum_sq=total, errors=0)
        for n, (count, total) in enumerate(rows)
    }
    assert significance._row("a", tallies) == {
        "domain": "a",
        "scenarios": len(rows),
        "mean": mean,
        **dict.fromkeys(("gain", "p", "p_adjusted", "claim")),
    }


def test_families_are_one_piece_of_evidence_in_a_claim() -> None:
    def rows(gain: float, families: int) -> Comparison:
        def tallies(mean: float) -> dict[str, Tally]:
            return {
                f"s{n}": Tally(stamp="x", n=1, sum=mean, sum_sq=mean, errors=0, family=f"f{n % families}")
                for n in range(16)
            }

        return compare(tallies(0.5), tallies(0.5 + gain))

    alone, together = significance.p_of(rows(0.5, 16)), significance.p_of(rows(0.5, 8))
    assert alone is not None
    assert alone < 0.001
    assert together == pytest.approx(2 / 2**8)
    assert significance.p_of(compare({}, {})) is None
    for looks in (1, 3):
        for gain, side in ((0.5, "better"), (-0.5, "worse")):
            compared = rows(gain, 16)
            assert significance.claim((compared, significance.p_of(compared)), looks=looks) == side


def of_differences(*differences: float, families: tuple[str, ...] = ()) -> Comparison:
    names = [f"s{n}" for n in range(len(differences))]
    owners = families or (None,) * len(differences)

    def side(means: Any) -> dict[str, Tally]:
        return {
            id_: Tally(stamp="", n=1, sum=mean, sum_sq=mean * mean, errors=0, family=family)
            for id_, mean, family in zip(names, means, owners, strict=True)
        }

    return compare(side([0.5] * len(names)), side([0.5 + d for d in differences]))


@pytest.mark.parametrize(
    ("differences", "margin", "looks", "side", "equal"),
    [
        ((0.02, -0.02) * 10, 0.05, 1, None, 0.05),
        ((0.02, -0.02) * 10, 0.005, 1, None, None),
        ((0.06, 0.0) * 10, 0.05, 1, "better", None),
        ((-0.06, 0.0) * 10, 0.05, 1, "worse", None),
        ((0.012, 0.008) * 10, 0.05, 1, "better", None),  # small, and no less a gain
        ((0.0,) * 3, 0.05, 1, None, None),
    ],
)
def test_a_gain_is_better_worse_or_equal_within_a_margin_and_never_two_of_them(
    differences: tuple[float, ...], margin: float, looks: int, side: str | None, equal: float | None
) -> None:
    compared = of_differences(*differences)
    found = significance.gain_claim(compared, compared, looks, margin)
    assert (found["side"], found["equal_within"]) == (side, equal)
    assert (found["looks"], found["level"]) == (looks, 0.05 / looks)
    assert found["p"] == significance.p_of(compared)


def test_equality_needs_every_reading_on_both_sides_and_is_stricter_after_looks() -> None:
    close, up, down = (of_differences(*(d + 0.02, d - 0.02) * 10) for d in (0.0, 0.045, -0.045))
    assert significance.equal_within(0.05, close, close) == 0.05
    for other in (up, down):
        assert significance.equal_within(0.05, close, other) is None
        assert significance.equal_within(0.05, other, close) is None
    low, high = close.difference.low, close.difference.high
    assert low is not None
    assert high is not None
    margin = max(-low, high)
    assert significance.equal_within(margin, close) == margin
    assert significance.equal_within(margin, close, looks=20) is None
    assert significance.gain_claim(close, close, 20, margin)["equal_within"] is None
    assert significance.gain_claim(close, up, 1, 0.05)["equal_within"] is None


def test_a_domain_is_better_than_a_placebo_only_at_the_level_of_so_many_looks() -> None:
    run = in_domains({"a": [2] * 12})
    sweeps = Sweeps(run)
    placebo = {
        id_: replace(row, sum=4.0, sum_sq=4.0) if n < 6 else row
        for n, (id_, row) in enumerate(sweeps.rows_before.items())
    }
    claims = [
        significance.domains(run, sweeps.rows_before, sweeps.rows_after, looks, placebo)[0]["claim"]
        for looks in (1, 4)
    ]
    assert claims == ["better", None]


@pytest.mark.parametrize(
    ("side", "than_placebo", "held"),
    [
        ("better", "better", "better"),
        ("better", None, None),
        ("better", "worse", None),
        ("worse", None, "worse"),
        ("worse", "better", "worse"),
        (None, "better", None),
    ],
)
def test_better_holds_only_over_a_placebo_too(side: Any, than_placebo: Any, held: str | None) -> None:
    assert significance.held(side, than_placebo) == held


def test_without_a_baseline_a_domain_has_its_means_alone() -> None:
    run = make_run(final={"b": [1, 0], "date": [None], "a": [1, 1]})
    assert domains(run) == [
        {
            "domain": name,
            "scenarios": n,
            "mean": mean,
            "gain": None,
            "p": None,
            "p_adjusted": None,
            "claim": None,
        }
        for name, n, mean in (("dates", 1, None), ("text", 2, 0.75))
    ]


def test_a_domain_without_pairs_has_no_p() -> None:
    rows = domains(make_run({"a": [1]}, {"a": [1], "date": [1]}))
    assert [(row["domain"], row["p"], row["p_adjusted"]) for row in rows] == [
        ("dates", None, None),
        ("text", 1, 1),
    ]
    assert rows[0]["gain"]["n"] == 0
