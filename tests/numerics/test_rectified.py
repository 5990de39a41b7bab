"""A judge's gain corrected by labels: unbiased whatever the judge is, and covered by its interval."""

import math
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaign import Campaign
from support.reached import reached, reaches

from pytest_tfgrpo.numerics.rectified import rectify, true_share
from pytest_tfgrpo.numerics.stats import mean_interval

SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ANSWER = st.tuples(SCORES, SCORES, SCORES, SCORES)
ANSWERS = st.lists(ANSWER, min_size=1, max_size=15) | st.lists(ANSWER, min_size=16, max_size=40)
FAMILIES = st.integers(1, 9) | st.integers(8, 20)


@reaches("an interval", "none")
@given(ANSWERS, FAMILIES)
def test_with_every_answer_labelled_the_gain_is_that_of_the_labels(rows, families: int) -> None:
    judge = [after - before for before, after, _, _ in rows]
    people = [after - before for _, _, before, after in rows]
    corrections = [human - said for human, said in zip(people, judge, strict=True)]
    of = [n % families for n in range(len(rows))]
    found = rectify(judge, of, range(len(rows)), corrections)
    assert found.gain == pytest.approx(math.fsum(people) / len(people), abs=1e-9)
    reached("none" if found.low is None else "an interval")
    if found.low is not None and found.high is not None:
        assert -1 <= found.low <= found.gain + 1e-9
        assert found.gain - 1e-9 <= found.high <= 1


@reaches("an interval", "none")
@given(ANSWERS, FAMILIES, st.randoms(use_true_random=False))
def test_the_order_of_labels_does_not_matter(rows, families: int, rng) -> None:
    judge = [row[1] - row[0] for row in rows]
    labelled = [(n, row[3] - row[2] - judge[n]) for n, row in enumerate(rows)][::2]
    of = [n % families for n in range(len(rows))]
    one = rectify(judge, of, [n for n, _ in labelled], [d for _, d in labelled])
    reached("none" if one.low is None else "an interval")
    rng.shuffle(labelled)
    other = rectify(judge, of, [n for n, _ in labelled], [d for _, d in labelled])
    assert other.gain == pytest.approx(one.gain)
    assert other.correlation == pytest.approx(one.correlation, abs=1e-9)


def test_over_all_samples_the_corrected_gain_is_right_on_average_whatever_the_judge_says() -> None:
    people, judge = [1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0, 0.5, -1.0]
    samples = list(combinations(range(7), 3))
    gains = [
        fmean(judge)
        + rectify(judge, range(7), places, [people[n] - judge[n] for n in places]).correction.mean
        for places in samples
    ]
    assert fmean(gains) == pytest.approx(fmean(people))
    assert max(gains) - min(gains) > 0.5


def test_a_judge_who_is_always_right_leaves_the_gain_and_widens_the_interval_by_what_was_not_seen() -> None:
    gains = list(np.random.default_rng(2).choice([0.0, 0.2, 0.4, -0.2], 100))
    plain = mean_interval(gains, support=(-1, 1))
    widths = []
    for n in (10, 50, 100):
        found = rectify(gains, list(range(100)), list(range(n)), [0.0] * n)
        assert found.gain == pytest.approx(plain.mean)
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert plain.low is not None
    assert plain.high is not None
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > plain.high - plain.low


def test_a_judge_of_pure_noise_whom_people_correct_everywhere_does_not_give_an_interval_of_nothing() -> None:
    judge = list(np.random.default_rng(2).choice([-1.0, 0.0, 1.0], 40))
    found = rectify(judge, list(range(40)), list(range(40)), [-value for value in judge])
    assert found.correlation == pytest.approx(-1)
    assert found.gain == pytest.approx(0)
    assert found.ci95 == pytest.approx([-0.0722, 0.0722], abs=1e-3)  # as 40 labels that all show no change


def test_scenarios_with_checks_need_no_correction() -> None:
    gains = [0.5, 0.0] * 20
    found = rectify(gains, list(range(40)), list(range(0, 40, 2)), [-0.5] * 20, share=0.5)
    assert found.gain == pytest.approx(0.0)


def test_both_ends_move_by_the_share_that_a_correction_speaks_of() -> None:
    gains, corrections = [0.25, -0.25] * 20, [1.0, 1.0, -1.0, -1.0] * 5
    whole, half = (rectify(gains, range(40), range(0, 40, 2), corrections, share=share) for share in (1, 0.5))
    assert whole.ci95 is not None
    assert half.ci95 is not None
    for found in (whole, half):
        assert found.gain == pytest.approx(0.0)
        assert -found.ci95[0] == pytest.approx(found.ci95[1], abs=0.01)
    assert half.ci95[1] < 0.75 * whole.ci95[1]


def test_under_8_labelled_scenarios_there_is_no_interval() -> None:
    found = rectify([0.5] * 30, list(range(30)), list(range(7)), [-0.1] * 7)
    assert (found.gain, found.ci95) == (pytest.approx(0.4), None)


@pytest.mark.parametrize(
    ("places", "corrections", "share"),
    [([], [], 1.0), ([1, 1], [0.0, 0.0], 1.0), ([9], [0.0], 1.0), ([1], [2.5], 1.0), ([1], [math.nan], 1.0),
     ([1], [0.0, 0.0], 1.0), ([1], [0.0], 0.0), ([1], [0.0], 1.5)],
)  # fmt: skip
def test_labels_that_are_no_sample_are_refused(places, corrections, share: float) -> None:
    with pytest.raises(ValueError, match=r"correction|share"):
        rectify([0.0] * 9, list(range(9)), places, corrections, share)


@given(st.floats(0, 1), st.floats(0.51, 1), st.floats(0.51, 1))
def test_a_share_seen_through_a_known_judge_is_found_again(share: float, se: float, sp: float) -> None:
    seen = se * share + (1 - sp) * (1 - share)
    assert true_share(seen, se, sp) == pytest.approx(share, abs=1e-6)


def test_a_judge_who_is_always_right_may_call_none_or_all_good() -> None:
    assert [true_share(share, 1.0, 1.0) for share in (0.0, 1.0)] == [0.0, 1.0]
    for shares in ((1.01, 1.0, 1.0), (0.5, -0.1, 1.0), (0.5, 1.0, 1.1)):
        with pytest.raises(ValueError, match="must lie in"):
            true_share(*shares)


def test_a_judge_no_better_than_chance_has_no_true_share() -> None:
    with pytest.raises(ValueError, match="no better than chance"):
        true_share(0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        true_share(0.5, 1.5, 0.5)


@pytest.mark.faults
def test_the_interval_holds_the_truth_where_a_lesson_pleases_the_judge(campaign: Campaign) -> None:
    runs = campaign.count(60, 2000)
    held, plain = 0, 0
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        held_one, plain_one = _simulated(rng, families=20, each=4, labels=30)
        held, plain = held + held_one, plain + plain_one
    error = (0.95 * 0.05 / runs) ** 0.5
    assert 0.93 - 3 * error <= held / runs <= 0.97 + 3 * error
    assert plain / runs < 0.75


def _simulated(rng: np.random.Generator, families: int, each: int, labels: int) -> tuple[bool, bool]:
    """Return whether the corrected and the plain interval hold the true gain of .1."""
    of = np.repeat(np.arange(families), each)
    n = of.size
    chance = rng.beta(0.8, 0.8, families)[of]
    solved = np.where(rng.random(n) < 0.6, (rng.random(families) < 0.25)[of], rng.random(n) < 0.25)
    p = chance, np.where(solved, 1 - 0.2 * (1 - chance), chance)
    people = [rng.random((n, 3)) < one[:, None] for one in p]
    pleased = [
        np.where(good, rng.random((n, 3)) < 0.9, rng.random((n, 3)) < lax)
        for good, lax in zip(people, (0.1, 0.4), strict=True)
    ]
    judge = pleased[1].mean(axis=1) - pleased[0].mean(axis=1)
    places = rng.permutation(n)[:labels]
    wrong = [human[places, 0] * 1.0 - said[places, 0] for human, said in zip(people, pleased, strict=True)]
    found = rectify(list(judge), of.tolist(), places.tolist(), list(wrong[1] - wrong[0]), resamples=600)
    plain = mean_interval(judge, of.tolist(), support=(-1, 1), resamples=600)
    assert found.low is not None
    assert found.high is not None
    assert plain.low is not None
    assert plain.high is not None
    return found.low <= 0.1 <= found.high, plain.low <= 0.1 <= plain.high


def test_a_gain_stays_within_what_scores_can_differ_by_and_equal_values_correlate_with_nothing() -> None:
    for gain in (0.9, -0.9):
        found = rectify([gain] * 10, range(10), [0, 1], [gain, gain], resamples=10)
        assert (found.gain, found.correlation) == (1.0 if gain > 0 else -1.0, 0.0)
    part = rectify([0.9] * 10, range(10), [0, 1], [0.9, 0.9], share=0.05, resamples=10)
    assert part.gain == pytest.approx(0.945)
    one_side = rectify([0.5, 0.25] * 5, range(10), [0, 1], [0.5, 0.5], resamples=10)
    assert (one_side.correlation, one_side.correction.mean) == (0.0, 0.5)
