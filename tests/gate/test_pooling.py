"""A baseline of all sweeps of one build: sums, what may be pooled, and drift."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.sweeps import SETTINGS, rule, swept

from pytest_tfgrpo.gate import pooling
from pytest_tfgrpo.gate.baseline import Baseline, SweepSums, from_run, load, save
from pytest_tfgrpo.gate.difference import MIN_SCENARIOS, _together
from pytest_tfgrpo.gate.pooling import _within, drift_of, pooled, sweeps_of
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.metrics.comparison import Tally


def sweep(n: int, shift: float = 0.0, scenarios: int = 60, rollouts: int = 5) -> Baseline:
    """Return the baseline of one sweep of an agent that solves 6 of 10, shifted by what drifts."""
    rng = np.random.default_rng([7, n])
    passed = rng.random((scenarios, rollouts)) < 0.6 + shift
    run = swept({f"s{i}": [float(x) for x in row] for i, row in enumerate(passed)}, run_id=f"run{n}")
    return from_run(replace(run, finished_at=f"2026-02-{n + 1:02d}T00:00:00.000Z"), "main")


def test_all_sweeps_of_a_build_are_summed_each_once_whatever_their_gates_said() -> None:
    made = [sweep(n, -0.3 * (n == 2)) for n in range(4)]
    whole = pooled(made[3], made)
    assert list(whole.sweeps) == ["run0", "run1", "run2", "run3"]
    assert whole.scenarios["s0"].n == 20
    assert whole.scenarios["s0"].sum == sum(one.scenarios["s0"].sum for one in made)
    assert pooled(whole, made) == whole


def test_the_latest_sweeps_are_kept_by_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [sweep(n) for n in (9, 10, 11)]
    assert list(pooled(made[0], made).sweeps) == ["run9", "run10", "run11"]
    same = [replace(one, created_at="2026-02-10T00:00:00.000Z") for one in made]
    assert list(pooled(same[0], same).sweeps) == ["run10", "run11", "run9"]
    monkeypatch.setattr(pooling, "MOST_SWEEPS", 2)
    assert list(pooled(made[0], made).sweeps) == ["run10", "run11"]


@pytest.mark.parametrize(("scenarios", "outcome"), [(MIN_SCENARIOS - 1, "fail"), (MIN_SCENARIOS, "pass")])
def test_from_so_many_scenarios_on_a_gate_passes(scenarios: int, outcome: str) -> None:
    run = swept({f"s{i}": [1.0] * 5 for i in range(scenarios)})
    found = rule(
        judge(run, baseline=from_run(run, "main"), settings=SETTINGS | {"gate_margin": 0.5}), "baseline"
    )
    assert found.outcome == outcome


def test_of_two_readings_the_smaller_p_counts_twice() -> None:
    assert _together([SimpleNamespace(p_worse=p) for p in (0.03, 0.02)]) == 0.04
    assert _together([SimpleNamespace(p_worse=p) for p in (0.6, 0.7)]) == 1.0


def test_another_build_another_task_and_a_repetition_are_not_pooled() -> None:
    base, other = sweep(0), sweep(1)
    rows = {**other.scenarios, "s0": replace(other.scenarios["s0"], stamp="another")}
    for field, value in (
        ("library", "another"),
        ("actor", "another"),
        ("temperature", 0.9),
        ("stamps", {**other.stamps, "packs": "another"}),
    ):
        assert pooled(base, [replace(other, **{field: value})]) == base, field
    assert pooled(base, [replace(base, run_id="again")]) == base
    assert list(pooled(base, [other, replace(other, run_id="again")]).sweeps) == ["run0", "run1"]
    part = pooled(base, [replace(other, scenarios=rows)])
    assert (part.scenarios["s0"].n, part.scenarios["s1"].n) == (5, 10)


def test_a_file_keeps_sums_and_times_and_one_of_a_single_sweep_is_as_ever(tmp_path) -> None:
    whole = pooled(sweep(3), [sweep(n) for n in range(3)])
    save(tmp_path / "x.json", whole)
    assert load(tmp_path / "x.json") == whole
    save(tmp_path / "one.json", sweep(0))
    assert "sweeps" not in (tmp_path / "one.json").read_text()


def test_a_baseline_of_one_sweep_has_its_sums_and_a_stamp_of_all_its_tasks() -> None:
    run = swept({"a": [1.0, 0.0], "b": [1.0, None], "c": [None]})
    (own,) = sweeps_of(from_run(run, "x")).values()
    assert (own.n, own.sum, own.rollouts, own.created_at) == (2, 1.5, 3, run.finished_at)
    scenarios = (*run.scenarios[:-1], replace(run.scenarios[-1], stamp="f" * 64))
    (other,) = sweeps_of(
        from_run(swept({"a": [1.0], "b": [1.0], "c": [1.0]}, scenarios=scenarios), "x")
    ).values()
    assert other.scenarios != own.scenarios


def test_the_gate_reckons_with_drift_and_says_where_it_cannot() -> None:
    run = swept({f"s{i}": [1.0, 1.0, 1.0, 0.0, 0.0] for i in range(60)})
    few = pooled(sweep(0), [sweep(n) for n in range(1, 4)])
    shifts = [0.1 * (-1) ** n for n in range(6)]
    many = pooled(sweep(0, shifts[0]), [sweep(n, shifts[n]) for n in range(1, 6)])
    found = [rule(judge(run, baseline=b, settings=SETTINGS), "baseline") for b in (few, many)]
    assert "drift is not covered (4 of 5 sweeps)" in found[0].message
    assert "is covered" in found[1].message
    widths = [high - low for low, high in (result.figures["bounds"] for result in found)]
    assert widths[1] > widths[0] + 0.1
    assert len(sweeps_of(many)) == 6


def test_drift_is_what_the_rollouts_of_at_least_5_alike_sweeps_do_not_explain() -> None:
    base = from_run(
        swept({"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [1.0, 0.0], "d": [0.0, 0.0], "e": [1.0]}), "x"
    )
    sweeps = {
        f"run{n}": SweepSums(created_at="", scenarios="s", n=2, sum=2 * mean, rollouts=100)
        for n, mean in enumerate((0.4, 0.5, 0.6, 0.5, 0.5))
    }
    found, explained = 0.02 / 4, 0.25 / 100
    assert drift_of(replace(base, sweeps=sweeps)) == pytest.approx(
        math.sqrt((found - explained) * (1 + 1 / 5))
    )
    alike = {name: replace(one, sum=1.0) for name, one in sweeps.items()}
    assert drift_of(replace(base, sweeps=alike)) == 0.0, "rollouts explain more than there is"
    for change in ({"scenarios": "others"}, {"n": 0, "sum": 0.0}):
        another = {**sweeps, "run1": replace(sweeps["run1"], **change)}
        assert drift_of(replace(base, sweeps=another)) is None
    older = {"first": replace(sweeps["run0"], scenarios="others", sum=9.0), **sweeps}
    assert drift_of(replace(base, sweeps=older)) == drift_of(replace(base, sweeps=sweeps))


def test_the_spread_within_scenarios_is_that_of_those_with_several_rollouts() -> None:
    rows = {
        name: Tally(stamp="", n=n, sum=total, sum_sq=squares, errors=0)
        for name, n, total, squares in (("a", 4, 3.0, 3.0), ("b", 1, 1.0, 1.0), ("c", 2, 1.0, 0.5))
    }
    assert _within(rows) == pytest.approx(0.125)  # of a quarter and of nothing
    assert _within({"b": rows["b"]}) == 0.0
