"""Trends by category: success, calibration, changes, and when one is an alert."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from support.live_runs import rollout

from pytest_tfgrpo.production.live.records import LiveRollout, LiveStatus
from pytest_tfgrpo.production.live.selection import trends as module
from pytest_tfgrpo.production.live.selection.rewards import FailureReward, TraceReward
from pytest_tfgrpo.production.live.selection.selector import open_selector
from pytest_tfgrpo.production.live.selection.trends import CategoryTrend, reward_agreement, success, trends

CHOICE = open_selector(0, None, {"config": {"bare": "s"}}).draw("t", "r", 1, "config", 0, category="a")


def runs(scores: Iterable[float], category: str = "a", first: int = 0) -> list[LiveRollout]:
    return [rollout(first + i, [CHOICE], score, category=category) for i, score in enumerate(scores)]


def trend(scores: Iterable[float]) -> CategoryTrend:
    (found,) = trends(runs(scores))
    return found


@pytest.mark.parametrize(
    ("good_before", "good_after", "direction"),
    [
        (10, 7, "regressing"),
        (20, 17, "regressing"),
        (10, 8, "steady"),
        (10, 12, "improving"),
        (10, 11, "steady"),
    ],
)
def test_a_category_changes_from_the_thresholds_on(good_before: int, good_after: int, direction: str) -> None:
    def half(good: int) -> list[float]:
        return [1.0] * good + [0.0] * (20 - good)

    found = trend([*half(good_before), *half(good_after)])
    assert found.direction == direction
    assert found.change == pytest.approx((good_after - good_before) / 20)
    assert (found.p is None) == (direction == "steady")
    assert not found.alert


def test_fewer_than_4_runs_say_nothing_of_a_change() -> None:
    found = trend([1.0, 1.0, 0.0])
    assert (found.direction, found.change, found.p, found.success) == (
        "unknown",
        None,
        None,
        pytest.approx(2 / 3),
    )
    assert trend([1.0, 1.0, 0.0, 0.0]).direction == "regressing"


def test_p_is_that_of_fisher_s_exact_test() -> None:
    assert trend([1, 1, 1, 0, 0, 0, 0, 1]).p == pytest.approx(17 / 70)  # the lady tasting tea
    assert trend([0, 1, 0, 0, 1, 1, 1, 0]).p == pytest.approx(17 / 70)


def test_p_of_partial_scores_agrees_with_that_of_whole_ones() -> None:
    whole = [1.0] * 9 + [0.0] * 3 + [1.0] * 4 + [0.0] * 8
    partial = [score + (1e-6 if i == 0 else 0.0) - 1e-6 * (score == 1) for i, score in enumerate(whole)]
    assert trend(partial).p == pytest.approx(trend(whole).p, abs=0.02)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "p"),
    [
        ([0.1, 0.2, 0.8, 0.9], 1 / 6),
        ([0.8, 0.9, 0.1, 0.2], 1 / 6),
        ([0.1, 0.2, 0.2, 0.9], 1 / 3),
        ([0.2, 0.9, 0.1, 0.2], 1 / 3),
        ([0.9, 0.8, 0.1, 0.2, 0.15], 1 / 10),
        ([0.1, 0.2, 0.9, 0.8, 0.85], 1 / 10),
        ([0.5, 0.5, 0.5, 0.5], None),
    ],
)
def test_p_of_partial_scores_is_the_share_of_orders_that_change_as_much(
    scores: list[float], p: float | None
) -> None:
    assert trend(scores).p == (None if p is None else pytest.approx(p, abs=0.015))


def test_p_of_unequal_halves_counts_orders_too() -> None:
    assert trend([1, 1, 0, 0, 0]).p == pytest.approx(1 / 10)
    assert trend([1, 1, 1, 1, 0, 1, 0, 0, 0]).p == pytest.approx(5 / 126)


def test_a_category_with_too_few_runs_is_none_that_was_tested() -> None:
    fallen = [1.0] * 9 + [0.0] + [1.0] * 2 + [0.0] * 8
    one, few, steady = trends([*runs([1.0] * 3, "few"), *runs([0.5] * 9, "steady"), *runs(fallen)])
    assert [found.category for found in (one, few, steady)] == ["a", "few", "steady"]
    assert one.p == pytest.approx(2 * trend(fallen).p)  # type: ignore[operator]
    assert (few.p, steady.p) == (None, None)


def test_an_alert_needs_p_below_1_percent_after_all_categories_are_counted() -> None:
    fallen = [1.0] * 9 + [0.0] + [1.0] * 2 + [0.0] * 8
    alone = trend(fallen)
    assert alone.alert
    assert alone.p is not None
    others = [run for c in range(9) for run in runs([1.0, 0.0] * 10, f"b{c}", 100 + 20 * c)]
    (found, *_) = trends([*runs(fallen), *others])
    assert found.p == pytest.approx(10 * alone.p)
    assert not found.alert
    assert not trend([1 - score for score in fallen]).alert


def test_false_alerts_are_rare() -> None:
    rng = random.Random(3)
    alerts = sum(trend([float(rng.random() < 0.7) for _ in range(60)]).alert for _ in range(300))
    assert alerts <= 6


def test_only_the_newest_200_runs_count_for_the_trend() -> None:
    assert trend([0.0] * 300 + [1.0] * 200).direction == "steady"


def test_success_is_the_score_or_else_the_status() -> None:
    (scored,) = runs([0.4])
    assert scored.trace is not None
    unscored = replace(scored, trace=replace(scored.trace, score=None))
    assert success(scored) == 0.4
    assert success(unscored) == 1.0
    assert success(replace(unscored, status=LiveStatus.FAILED)) == 0.0
    assert success(replace(scored, trace=None)) == 1.0
    assert success(replace(scored, trace=replace(scored.trace, blocked=True))) == 0.0


def test_runs_that_did_not_end_are_no_part_of_a_trend() -> None:
    (one,) = runs([1.0])
    assert trends([replace(one, status=LiveStatus.CANCELLED), replace(one, status=LiveStatus.RUNNING)]) == ()


def test_calibration_sorts_runs_by_the_confidence_of_their_reward() -> None:
    found = runs([1.0, 0.0, 1.0, 1.0])
    given = []
    for run, confidence in zip(found, (0.0, 0.2, 0.79, 1.0), strict=True):
        assert run.reward is not None
        given.append(replace(run, reward=replace(run.reward, confidence=confidence)))
    (trend,) = trends(given)
    assert [(one.low, one.runs, one.confidence, one.success) for one in trend.calibration] == [
        (0.0, 1, 0.0, 1.0),
        (0.2, 1, 0.2, 0.0),
        (0.4, 0, None, None),
        (0.6, 1, 0.79, 1.0),
        (0.8, 1, 1.0, 1.0),
    ]


def test_a_bin_has_the_means_of_its_runs() -> None:
    found = runs([1.0, 0.5, 0.0])
    given = []
    for run, confidence in zip(found, (0.5, 0.4, 0.4), strict=True):
        assert run.reward is not None
        given.append(replace(run, reward=replace(run.reward, confidence=confidence)))
    (trend,) = trends([*given, replace(found[0], reward=None)])
    third = trend.calibration[2]
    assert (third.low, third.high, third.runs) == (0.4, 0.6, 3)
    assert (third.confidence, third.success) == (pytest.approx(1.3 / 3), 0.5)
    assert trend.success == 0.625


def rewarded(pairs: Iterable[tuple[float, float]]) -> list[LiveRollout]:
    found = []
    for i, (composite, score) in enumerate(pairs):
        (run,) = runs([score], first=i)
        assert run.reward is not None
        found.append(replace(run, reward=replace(run.reward, composite=composite, strategy="trace_v2")))
    return found


def test_a_reward_that_does_not_rank_as_the_score_warns() -> None:
    rng = random.Random(1)
    scores = [rng.random() for _ in range(40)]
    good = reward_agreement(rewarded((score - 0.5, score) for score in scores))
    assert (good.rank_correlation, good.warning, good.runs) == (pytest.approx(1.0), "", 40)
    bad = reward_agreement(rewarded((rng.random(), score) for score in scores))
    assert "rank correlation of" in bad.warning
    assert "outcome_v1" in bad.warning
    flat = reward_agreement(rewarded((1.0, score) for score in scores))
    assert flat.rank_correlation is None
    assert "says nothing of the score" in flat.warning


def test_where_the_reward_is_the_score_the_trace_is_compared_with_it() -> None:
    found = reward_agreement(runs([i / 40 for i in range(40)]))
    assert (found.rank_correlation, found.warning, found.runs) == (None, "", 40)


def test_equal_scores_do_not_warn() -> None:
    assert reward_agreement(rewarded((i / 40, 0.5) for i in range(40))).warning == ""


def test_few_runs_with_both_do_not_warn() -> None:
    assert reward_agreement(rewarded([(0.1, 0.9), (0.9, 0.1)])).warning == ""
    assert reward_agreement([]).rank_correlation is None


def test_the_reward_of_a_run_that_failed_is_its_score_and_agrees_with_nothing() -> None:
    runs = [rollout(i, [], i % 5 / 4, strategy="trace_v2") for i in range(40)]
    failed = [
        replace(run, reward=FailureReward(TraceReward(2)).infer(replace(run.trace, completed=False)))
        for run in runs
    ]
    assert reward_agreement([*runs, *failed]) == reward_agreement(runs)


@pytest.mark.parametrize(("number", "warns"), [(19, False), (20, True)])
def test_twenty_runs_with_both_warn(number: int, warns: bool) -> None:
    found = rewarded((1 - i / number, i / number) for i in range(number))
    odd = found[0]
    assert odd.trace is not None
    part = [replace(odd, trace=None), replace(odd, reward=None)]
    part.append(replace(odd, trace=replace(odd.trace, score=None)))
    agreement = reward_agreement([*found, *part])
    assert (agreement.runs, agreement.rank_correlation) == (number, pytest.approx(-1))
    assert bool(agreement.warning) is warns
    two = reward_agreement(rewarded((1.0 - i % 2, float(i % 2)) for i in range(number)))
    assert bool(two.warning) is warns


def test_a_change_among_equal_values_is_none() -> None:
    assert module._change_p([0.5, 0.5], [0.5]) == 1.0


@pytest.mark.parametrize(
    ("earlier", "late", "p"),
    [
        ([1, 1, 1], [0, 0, 0], 1 / 20),
        ([0, 0, 0], [1, 1, 1], 1 / 20),
        ([1, 1, 0], [1, 0, 0], 10 / 20),
        ([1, 0], [1, 0], 5 / 6),
    ],
)
def test_a_change_of_successes_has_the_p_of_fishers_exact_test(
    earlier: list[float], late: list[float], p: float
) -> None:
    assert module._change_p(earlier, late) == pytest.approx(p)
