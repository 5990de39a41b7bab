"""How far two raters agree: against tables worked by hand, and identities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.numerics.agreement import cohen_kappa, intraclass_correlation, spearman, wilson_interval

ratings = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)
scores = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


def both(yes_yes: int, yes_no: int, no_yes: int, no_no: int) -> tuple[list[bool], list[bool]]:
    a = [True] * (yes_yes + yes_no) + [False] * (no_yes + no_no)
    b = [True] * yes_yes + [False] * yes_no + [True] * no_yes + [False] * no_no
    return a, b


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # p_o = 35/50, p_e = (25/50)(30/50) + (25/50)(20/50) = 1/2
        ((20, 5, 10, 15), 0.4),
        # p_o = 60/100, p_e = .6 * .7 + .4 * .3 = .54
        ((45, 15, 25, 15), 0.06 / 0.46),
        ((5, 0, 0, 5), 1.0),
        ((0, 5, 5, 0), -1.0),
        ((1, 1, 1, 1), 0.0),
    ],
)
def test_kappa_is_that_of_tables_worked_by_hand(table: tuple[int, int, int, int], kappa: float) -> None:
    assert cohen_kappa(*both(*table)) == pytest.approx(kappa)


@pytest.mark.parametrize("table", [(0, 0, 0, 0), (7, 0, 0, 0), (0, 0, 0, 3)])
def test_raters_who_never_differ_from_one_word_have_no_kappa(table: tuple[int, int, int, int]) -> None:
    assert cohen_kappa(*both(*table)) is None


@reaches("known", "unknown")
@given(ratings | st.lists(st.just((True, True)), min_size=1, max_size=9))
def test_kappa_is_symmetric_and_bounded(rows: list[tuple[bool, bool]]) -> None:
    a, b = zip(*rows, strict=True)
    kappa = cohen_kappa(a, b)
    assert kappa is None or -1 - 1e-12 <= kappa <= 1
    assert kappa == pytest.approx(cohen_kappa(b, a))
    inverse = cohen_kappa([not x for x in a], [not x for x in b])
    assert (kappa is None) is (inverse is None)
    reached("unknown" if kappa is None else "known")
    if kappa is not None:
        assert kappa == pytest.approx(inverse)


def test_ranks_correlate_as_in_the_textbook() -> None:
    # 1 - 6 sum d^2 / (n (n^2 - 1)) with d = (1, -1, 0, 0): 1 - 12 / 60
    assert spearman([1, 2, 3, 4], [2, 1, 3, 4]) == pytest.approx(0.8)
    # ties share their mean rank: (1.5, 1.5, 3) against (1, 2, 3)
    assert spearman([0, 0, 1], [0.1, 0.2, 0.3]) == pytest.approx(1.5 / math.sqrt(1.5 * 2))


tied = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.just(0.5) | st.floats(0, 1)), min_size=2)


@reaches("known", "unknown", "ties")
@given(
    scores | st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.just(0.5) | st.floats(0, 1)), min_size=2)
)
def test_only_ranks_count_for_the_rank_correlation(rows: list[tuple[float, float]]) -> None:
    a, b = (np.array(column) for column in zip(*rows, strict=True))
    rho = spearman(a, b)
    assert rho is None or -1 <= rho <= 1
    assert (rho is None) is (len(set(a)) == 1 or len(set(b)) == 1)
    assert spearman(np.searchsorted(np.unique(a), a), b) == rho
    reached("unknown" if rho is None else "known")
    reached("ties", rho is not None and len(set(a)) < len(a))
    if rho is not None:
        assert spearman(a, a) == pytest.approx(1.0)
        assert spearman(a, -b) == pytest.approx(-rho)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_newcombes_table(successes: int, n: int, low: float, high: float) -> None:
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    k, n = case
    low, high = wilson_interval(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert wilson_interval(n - k, n) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (0, 0), (2, 1), (-1, 3)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="have no interval"):
        wilson_interval(successes, n)


@pytest.mark.parametrize("rate", [cohen_kappa, spearman])
def test_ratings_must_pair(rate) -> None:
    for a, b in (([1, 2], [1]), ([[1]], [[1]])):
        with pytest.raises(ValueError, match="two vectors of one length"):
            rate(a, b)


# (f - 1) / (f - 1 + n0) with f of scipy.stats.f_oneway
@pytest.mark.parametrize(
    ("groups", "correlation"),
    [
        ([[1, 2, 3], [4, 5, 6], [7, 8, 10]], 0.868686868687),
        ([[0, 1], [0, 1, 1], [1, 0, 0, 1]], -0.469565217391),
        ([[0.5], [0.25, 0.75, 1], [0.1, 0.2], [0.9, 0.8, 1, 1, 0.7]], 0.619143850592),
        ([[1, -1], [1, -1, 0]], -0.714285714286),
        ([[0.3], [0.1], [0.2, 0.25]], 0.852941176471),
    ],
)
def test_the_intraclass_correlation_is_that_of_an_analysis_of_variance(
    groups: list[list[float]], correlation: float
) -> None:
    values = [x for group in groups for x in group]
    families = [n for n, group in enumerate(groups) for _ in group]
    assert intraclass_correlation(values, families) == pytest.approx(correlation)


@given(st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(0.1, 5))
def test_it_does_not_depend_on_unit_order_or_names(seed: int, shift: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    values, families = rng.normal(size=20), rng.integers(0, 6, 20)
    found, order = intraclass_correlation(values, families.tolist()), rng.permutation(20)
    again = intraclass_correlation(shift + scale * values[order], [f"f{f}" for f in families[order]])
    assert found == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("shared", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("sizes", [(5,), (1, 2, 3, 10)])
def test_it_is_about_the_true_correlation_on_average(shared: float, sizes: tuple[int, ...]) -> None:
    rng, found = np.random.default_rng(3), []
    for _ in range(200):
        family_K = np.repeat(np.arange(40), rng.choice(sizes, 40))
        common, own = (
            rng.normal(0, shared**0.5, 40)[family_K],
            rng.normal(0, (1 - shared) ** 0.5, family_K.size),
        )
        found.append(intraclass_correlation(common + own, family_K.tolist()))
    assert np.mean(found) == pytest.approx(shared, abs=0.025)  # type: ignore[arg-type]


def test_equal_values_within_families_correlate_wholly_and_opposite_ones_negatively() -> None:
    assert intraclass_correlation([1, 1, 0, 0, 1], "aabbc") == pytest.approx(1.0)
    assert intraclass_correlation([1, -1, 1, -1], "aabb") == pytest.approx(-1.0)


def test_without_families_or_variance_there_is_no_correlation() -> None:
    assert intraclass_correlation([0, 1, 2], "abc") is None
    assert intraclass_correlation([0, 1, 2], "aaa") is None
    assert intraclass_correlation([1, 1, 1], "aab") is None
    with pytest.raises(ValueError, match="2 families"):
        intraclass_correlation([1.0], "ab")
