"""Named metrics: figures by sweep and domain, whatever the rewarders are called."""

import math
from array import array
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sweeps import Credits, make_result, make_run, rated

from pytest_tfgrpo.core.named_scores import MetricScale
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.metrics import named
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.metrics.epochs import epoch_row, per_epoch
from pytest_tfgrpo.metrics.named import SweepMetrics, metric_names, score_quantity
from pytest_tfgrpo.metrics.values import BUILT_IN, column

SCORES = st.none() | st.sampled_from([0.0, 0.1, 0.25, 1.0]) | st.floats(0, 1)
SWEEPS = st.dictionaries(
    st.sampled_from(["s1", "s2", "s3", "date1", "date2"]), st.lists(SCORES, min_size=1, max_size=4)
)


def test_a_metric_counts_scenarios_with_a_score_of_it() -> None:
    run = rated(make_run(final={"a": [1, 1], "b": [1, 0], "date": [0, 0]}), {"a": [0.2, 0.4], "b": [None, 1]})
    row = per_epoch(run)["epochs"][-1]["metrics"]["politeness"]
    assert (row["n"], row["sum"], row["mean"]) == (2, 1.3, 0.65)
    assert row["domains"]["text"] == {key: row[key] for key in ("n", "sum", "mean", "ci95")}
    assert row["domains"]["dates"] == {"n": 0, "sum": None, "mean": None, "ci95": None}


def test_built_in_metrics_come_first_and_gt_score_is_that_of_the_row() -> None:
    run = rated(make_run(final={"a": [1, 0]}), {"a": [1, 1]}, name="zeal")
    run = rated(run, {"a": [1, 1]}, name="brevity")
    row = per_epoch(run)["epochs"][-1]
    assert list(row["metrics"]) == [*BUILT_IN, "brevity", "zeal", "check.exact"]
    assert {key: row["metrics"]["gt_score"][key] for key in row["gt_score"]} == row["gt_score"]
    assert row["metrics"]["relative_rank"]["mean"] == 0.5


def test_a_metric_that_nobody_scored_is_there_without_figures() -> None:
    run = rated(make_run(final={"a": [1, 0]}), {"a": [None, None]})
    row = per_epoch(run)["epochs"][-1]["metrics"]["politeness"]
    assert (row["n"], row["mean"], row["ci95"]) == (0, None, None)


def test_intervals_are_by_family() -> None:
    result = make_result({f"s{i}": [float(i % 3 == 0)] for i in range(24)})
    families = {f"s{i}": f"f{i // 2}" for i in range(24)}
    found = [SweepMetrics(result.counted).figures(of)[0]["gt_score"]["ci95"] for of in ({}, families)]
    assert found[0] != found[1]
    some = {id_: family for id_, family in families.items() if id_ in ("s0", "s1")}
    alone = some | {id_: id_ for id_ in families if id_ not in some}
    one, other = (SweepMetrics(result.counted).figures(of)[0]["gt_score"]["ci95"] for of in (some, alone))
    assert one == other


def test_the_file_fits_its_schema() -> None:
    run = rated(make_run({"a": [1, 0]}, {"a": [1, None]}, {"t": [1, 0]}), {"a": [0.5, 1], "t": [0, 0]})
    assert violations("per-epoch", per_epoch(run)) == []


def test_a_tally_of_a_metric_leaves_out_what_has_no_score_and_counts_errors() -> None:
    run = rated(make_run(final={"a": [1, 0, None]}), {"a": [0.5, None, None]})
    row = Sweeps(run).rows_of("politeness")["a"]
    assert (row.n, row.sum, row.errors) == (1, 0.5, 1)
    assert (row.mean(), row.mean(errors_as_zero=True)) == (0.5, 0.25)
    assert Sweeps(run).rows_of("gt_score") == Sweeps(run).rows_after


@given(SWEEPS, SWEEPS)
def test_sum_by_n_is_the_mean_and_domains_add_up_to_the_sweep(
    credited: dict[str, Credits], ratings: dict[str, Credits]
) -> None:
    run = rated(make_run(final=credited), ratings)
    for result in run.phases:
        found = epoch_row(result, 0)["metrics"]
        assert {n: len(of.means) for n, of in SweepMetrics(result.counted).means().items()} == {
            name: row["n"] for name, row in found.items()
        }
        for name, row in found.items():
            parts = row["domains"].values()
            assert row["n"] == sum(part["n"] for part in parts)
            for one in (row, *parts):
                assert (one["mean"] is None) == (one["n"] == 0)
                if one["mean"] is not None:
                    assert math.isclose(one["mean"], one["sum"] / one["n"])
                    assert 0 <= one["mean"] <= 1
            assert math.isclose(row["sum"] or 0.0, math.fsum(part["sum"] or 0.0 for part in parts))
            scored = {
                group.scenario_id
                for group in result.counted
                if any(value is not None for value in column(group, name))
            }
            assert row["n"] == len(scored)


def test_the_metrics_of_two_sweeps_are_in_order_and_those_of_a_source_with_most_scenarios_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = rated(make_run(final={"a": [1], "b": [0], "c": [1]}), {"a": [1]}, name="zeal")
    groups = rated(run, {"b": [1]}, name="brevity").phases[-1].groups

    def reporting(n: int, **extra: float) -> Any:
        return replace(groups[n], rollouts=(replace(groups[n].rollouts[0], extra=extra),))

    sweeps = [reporting(0, few=1, many=1), reporting(1, many=1)], [reporting(0, few=1), reporting(2, more=1)]
    every = [*BUILT_IN, "brevity", "zeal", "check.exact", "extra.few", "extra.many", "extra.more"]
    assert metric_names(*sweeps) == every
    monkeypatch.setattr(named, "MOST_METRICS", 1)
    assert metric_names(*sweeps) == [name for name in every if name not in ("extra.few", "extra.more")]
    assert SweepMetrics(sweeps[0]).figures({})[1] == 1
    spread = [reporting(0, zeal=1, ardour=1)], [reporting(1, zeal=1)]
    assert "extra.zeal" in metric_names(*spread), "of two scenarios, though each is the first of its sweep"
    assert "extra.ardour" not in metric_names(*spread)
    assert "extra.ardour" in metric_names([reporting(0, zeal=1)], [reporting(1, ardour=1)]), "by name"


def test_an_interval_is_made_once_of_so_many_resamples_as_the_values_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def interval(values: object, families: object, *, resamples: int) -> Any:
        made.append(resamples)
        return SimpleNamespace(ci95=(0.25, 0.5))

    monkeypatch.setattr(named, "KNOWN_INTERVALS", {})
    monkeypatch.setattr(named, "MOST_INTERVALS", 2)
    monkeypatch.setattr(named, "mean_interval", interval)
    few, many = array("d", [0.5] * 4), array("d", [0.5] * 100)
    for values, draws in ((few, 10**9), (few, 10**9), (many, 500_000), (many, 10)):
        assert score_quantity(values, (), draws)["ci95"] == [0.25, 0.5]
    assert made == [10_000, 5_000, 1_000]
    score_quantity(few, (), 10**9)  # no longer known
    score_quantity(few, ("a", "b", "c", "d"), 10**9)
    assert made[3:] == [10_000, 10_000]
    score_quantity(few, ("a", "b", "c", "d"), 10**9)
    assert len(made) == 5
    score_quantity(few, ("ab", "c", "d", ""), 10**9)
    score_quantity(few, ("a", "bc", "d", ""), 10**9)
    assert len(made) == 7


def test_the_metrics_of_every_run_have_intervals_of_more_resamples_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[list[float], int]] = []

    def interval(values: list[float], families: object, *, resamples: int) -> Any:
        made.append((values, resamples))
        return SimpleNamespace(ci95=None)

    monkeypatch.setattr(named, "KNOWN_INTERVALS", {})
    monkeypatch.setattr(named, "MANY", 8000)
    monkeypatch.setattr(named, "FEW", 4000)
    monkeypatch.setattr(named, "mean_interval", interval)
    run = rated(make_run(final={"a": [1], "b": [0]}), {"a": [0.25], "b": [0.75]})
    SweepMetrics(run.phases[-1].groups).figures({})
    assert ([1.0, 0.0], 4000) in made
    assert ([0.25, 0.75], 2000) in made


def test_an_interval_of_another_scale_is_in_its_unit_from_low_to_high() -> None:
    words = MetricScale(unit="words", better="lower", most=100)
    found = score_quantity(array("d", [10.0, 20.0] * 10), (), 10**6, words)
    assert (found["sum"], found["mean"]) == (300.0, 15.0)
    low, high = found["ci95"] or (0, 0)
    assert 10 < low < 15 < high < 20
