import math
import random
from dataclasses import replace
from statistics import stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.sweeps import evenly, make_result, make_run

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.metrics.comparison import Sweeps, Tally
from pytest_tfgrpo.metrics.noise import as_failures, flaky, noise, within_spread
from pytest_tfgrpo.report.trust import trust_lines, trust_markdown
from pytest_tfgrpo.report.value import build


def report(run: Run) -> dict[str, object]:
    value = build(run, None)
    assert violations("report", value) == []
    return value


def text(run: Run, *, every: bool = False) -> str:
    return " ".join(" ".join(trust_lines(report(run), 10_000, every=every)).split())


MIXED = {"a": [1, 0, 1, 0], "b": [1, 1, 1, 1], "c": [0, 0, 0, 1], "d": [0.5, 0.5, 0.5, 0.5]}


def test_the_noise_floor_is_the_spread_over_seeds() -> None:
    value = noise(Sweeps(make_run(final=MIXED)), None)
    variance = (1 / 3 + 0 + 0.25 + 0) / 16
    assert value["seed_std"] == pytest.approx(math.sqrt(variance))
    assert value["run_std"] == pytest.approx(math.sqrt(variance / 4))
    assert value["difference"] == pytest.approx(1.96 * math.sqrt(2 * variance / 4), rel=1e-4)
    assert value["sweeps"][0]["means"] == [0.625, 0.375, 0.625, 0.625]


def test_it_predicts_how_runs_of_one_library_differ() -> None:
    """Of 400 pairs of simulated runs, 95 % differ by less, give and take."""
    rng = random.Random(4)
    chances = [rng.random() for _ in range(20)]

    def drawn() -> dict[str, list[float]]:
        return {f"s{i}": [float(rng.random() < p) for _ in range(4)] for i, p in enumerate(chances)}

    def mean() -> float:
        return sum(map(sum, drawn().values())) / 80

    floor = sum(noise(Sweeps(make_run(final=drawn())), None)["difference"] for _ in range(20)) / 20
    within = sum(abs(mean() - mean()) < floor for _ in range(400))
    assert 0.92 < within / 400 < 0.98


def test_both_sweeps_are_pooled_and_a_gain_below_the_floor_is_said_so() -> None:
    small = make_run({"a": [1, 0], "b": [1, 1]}, {"a": [1, 1], "b": [1, 0]})
    assert noise(Sweeps(small), {"difference": 0.0})["gain_within"] is True
    assert len(noise(Sweeps(small), None)["sweeps"]) == 2
    assert "the gain is within this noise" in text(small)
    around_0 = make_run(evenly(20, [1, 0]), {**evenly(19, [1, 0]), "s19": [0, 0]})
    assert noise(Sweeps(around_0), {"difference": -0.025})["gain_within"] is True
    assert "noise" not in text(around_0)
    assert "the gain is within this noise" in text(around_0, every=True)
    clear = make_run(evenly(20, [0, 0, 0, 1]), evenly(20, [1, 1, 1, 0]))
    assert noise(Sweeps(clear), {"difference": 0.5})["gain_within"] is False
    assert "the gain is within this noise" not in text(clear)


def test_answers_that_count_in_both_sweeps_are_no_noise_of_their_difference() -> None:
    run = make_run({"b": [1, 1]}, {"a": [1, 0], "b": [1, 1]})
    before, after = run.phases
    alike = replace(after.groups[0], shared=True)
    after = replace(after, groups=(alike, after.groups[1]))
    before = replace(before, shared=(alike,), phase=replace(before.phase, scenarios=("a", "b")))
    shared = replace(run, phases=(before, after))
    assert noise(Sweeps(shared), {"difference": 0.1})["gain_within"] is False
    assert noise(
        Sweeps(make_run({"a": [1, 0], "b": [1, 1]}, {"a": [1, 0], "b": [1, 1]})), {"difference": 0.1}
    )["gain_within"]
    own = replace(before, groups=make_run({"b": [1, 0]}).phases[0].groups)
    for difference, within in ((0.4, True), (0.6, False)):
        found = noise(Sweeps(replace(run, phases=(own, after))), {"difference": difference})
        assert found["gain_within"] is within


def test_without_a_second_rollout_noise_is_not_known_and_it_says_how_to() -> None:
    run = make_run(final={"a": [1], "b": [0]})
    value = noise(Sweeps(run), None)
    assert value["difference"] is value["seed_std"] is None
    assert "noise unknown: each scenario ran once; set eval_rollouts to 2 or more" in text(run, every=True)
    assert "no scenario has two scored rollouts" in text(make_run(final={"a": [1, None]}), every=True)
    assert noise(Sweeps(make_run({"a": [1, 0]})), None) is None


def test_a_sweep_without_spread_has_no_noise() -> None:
    assert noise(Sweeps(make_run(final=evenly(3, [1, 1]))), None)["difference"] == 0.0


def test_errors_are_no_part_of_the_spread() -> None:
    value = noise(Sweeps(make_run(final={"a": [1, None, 0], "b": [None, None, 1]})), None)
    assert value["sweeps"][0]["scenarios"] == 1
    assert value["sweeps"][0]["means"] == []
    assert value["seed_std"] == pytest.approx(stdev([1, 0]))


def test_scenarios_with_both_outcomes_are_listed_apart() -> None:
    run = make_run(
        {"a": [1, 0], "b": [0, 0]}, {"a": [1, 1, 0], "b": [1, 0.5, None], "c": [0.5, 0.9], "d": [1, None]}
    )
    assert [(r["scenario"], r["mode"], r["solved"], r["n"]) for r in flaky(run, Sweeps(run))] == [
        ("a", "eval", pytest.approx(2 / 3), 3),
        ("b", "eval", 0.5, 2),
        ("a", "baseline", 0.5, 2),
    ]
    assert (
        "flaky scenarios that only some seeds solve: 2 in the final sweep, 1 in the baseline sweep"
        in text(run, every=True)
    )
    assert "final sweep: a 2/3, b 1/2" in text(run, every=True)
    assert "  - final sweep: a 2/3, b 1/2." in trust_markdown(report(run), str)


def test_a_scenario_whose_answers_count_in_both_sweeps_is_listed_once() -> None:
    run = make_run({"b": [1, 1]}, {"a": [1, 0], "b": [1, 1]})
    before, after = run.phases
    alike = replace(after.groups[0], shared=True)
    after = replace(after, groups=(alike, after.groups[1]))
    before = replace(before, shared=(alike,), phase=replace(before.phase, scenarios=("a", "b")))
    shared = replace(run, phases=(before, after))
    assert [(row["scenario"], row["mode"]) for row in flaky(shared, Sweeps(shared))] == [("a", "eval")]


def test_training_at_its_own_temperature_makes_nobody_flaky() -> None:
    run = make_run(final={"a": [1, 1]}, train={"t": [1, 0]})
    assert flaky(run, Sweeps(run)) == []


def test_a_flaky_scenario_has_the_domain_and_the_epoch_of_its_sweep() -> None:
    run = make_run(final={"date": [1, 0]})
    assert [(row["domain"], row["epoch"]) for row in flaky(run, Sweeps(run))] == [("dates", 2)]


def test_a_loss_within_a_scenarios_own_spread_is_marked_and_comes_last() -> None:
    run = make_run({"a": [1, 1, 0, 0], "b": [1, 1]}, {"a": [1, 0, 0, 0], "b": [0.9, 0.9]})
    assert [(row["scenario"], row["flaky"]) for row in report(run)["regressions"]] == [
        ("b", False),
        ("a", True),
    ]


def tallied(*credited: float) -> Tally:
    return Tally(stamp="", n=len(credited), sum=sum(credited), sum_sq=sum(c * c for c in credited), errors=0)


def test_two_standard_errors_are_within_the_spread() -> None:
    assert within_spread(tallied(1, 1, 1, 1, 0), tallied(1, 1, 0, 0, 0))
    assert not within_spread(tallied(1, 1, 1, 1, 0), tallied(1, 0, 0, 0, 0))
    assert not within_spread(tallied(1, 1, 1), tallied(0, 0, 0))
    assert not within_spread(tallied(1), tallied(0))
    assert not within_spread(tallied(), tallied(0, 1))
    assert within_spread(tallied(1, 0, 0, 0, 0), tallied(0.6)), "just two standard errors"
    assert not within_spread(tallied(1, 0, 0, 0, 0), tallied(0.61))
    assert not within_spread(tallied(0.7, 0.7, 0.7), tallied(0.7, 0.7, 0.7))


def test_errors_are_counted_as_failures_in_a_column_of_their_own() -> None:
    run = make_run({"a": [1, None], "b": [None, None]}, {"a": [1, 1], "b": [1, 0]}, {"t": [1, 0]})
    rows = {row["mode"]: row for row in as_failures(run)}
    assert (rows["baseline"]["mean"], rows["baseline"]["n"], rows["baseline"]["errors"]) == (0.25, 2, 3)
    assert (rows["eval"]["mean"], rows["train"]["mean"]) == (0.75, 0.5)
    assert run.phases[0].groups[0].gt_mean == 1.0
    assert as_failures(make_run({"a": [1]}, {"a": [1]})) == []
    many = as_failures(make_run(final=evenly(10, [1, None])))
    assert many[0]["mean"] == 0.5
    assert many[0]["ci95"] is not None


def test_errors_as_failures_are_of_all_that_counts_in_a_sweep_and_of_no_attempts_made_elsewhere() -> None:
    run = make_run({"b": [0, 0]}, {"a": [1, None], "b": [1, 1]})
    before, after = run.phases
    alike = replace(after.groups[0], shared=True)
    before = replace(before, shared=(alike,), phase=replace(before.phase, scenarios=("a", "b")))
    given = make_result({"e": [1, 0]}, epoch=1, mode="evidence")
    rows = as_failures(replace(run, phases=(before, given, after)))
    assert [(row["mode"], row["errors"], row["n"], row["mean"]) for row in rows] == [
        ("baseline", 1, 2, 0.25),
        ("eval", 1, 2, 0.75),
    ]


def test_errors_as_failures_have_an_interval_by_family() -> None:
    run = make_run(final={f"s{n}": [float(n // 4 % 2), None] for n in range(96)})
    scenarios = tuple(replace(s, family=f"f{n // 4}") for n, s in enumerate(run.scenarios))
    (low, high), (wide_low, wide_high) = (
        as_failures(one)[0]["ci95"] for one in (run, replace(run, scenarios=scenarios))
    )
    assert wide_high - wide_low > 1.7 * (high - low)


credited = st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=1, max_size=4)


@reaches("as many scenarios", "with errors")
@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from("abcde"), credited, min_size=1))
def test_counting_errors_as_failures_never_raises_a_mean(final: dict[str, list[float | None]]) -> None:
    run = make_run(final=final)
    value = report(run)
    for row, epoch in zip(value["as_failures"], value["epochs"], strict=False):
        assert row["n"] >= epoch["gt_score"]["n"]
        reached("with errors", any(None in drawn for drawn in final.values()))
        if reached("as many scenarios", epoch["gt_score"]["n"] == row["n"]):
            assert row["mean"] <= epoch["gt_score"]["mean"] + 1e-9


def test_earlier_runs_on_the_eval_split_are_told() -> None:
    run = make_run(final={"a": [1, 1]})

    def told(*runs: str) -> str:
        return text(replace(run, preflight={"evaluations": {"earlier": len(runs), "runs": list(runs)}}))

    so_many = "variants, this one included, were evaluated on this eval split; picking the"
    assert f"reused 3 {so_many} best of them overstates its score" in told("r1", "r2")
    assert f"reused 2 {so_many} better of them overstates its score" in told("r1")
    assert "reused" not in told()


@pytest.mark.parametrize(
    ("final", "rollouts"),
    [({"a": [1, 0]}, 2), ({"a": [1, 0, 1], "b": [1]}, 1), ({"a": [1], "b": [1, 0]}, 1), ({}, 1)],
)
def test_a_sweep_has_as_many_rollouts_as_its_smallest_group(
    final: dict[str, list[float]], rollouts: int
) -> None:
    value = noise(Sweeps(make_run(final=final)), None)
    assert value is not None
    assert value["rollouts"] == rollouts


@pytest.mark.parametrize(
    ("baseline", "difference", "within"),
    [(MIXED, 0.0, True), (MIXED, 0.9, False), (MIXED, -0.9, False), (MIXED, None, None), (None, 0.0, None)],
)
def test_a_gain_lies_within_the_noise_of_two_sweeps(
    baseline: Any, difference: float | None, within: bool | None
) -> None:
    sweeps = Sweeps(make_run(baseline, MIXED))
    gain: Any = {"difference": difference}
    value = noise(sweeps, gain)
    assert value is not None
    assert value["gain_within"] is within
    alone = noise(sweeps, None)
    assert alone is not None
    assert alone["gain_within"] is None
