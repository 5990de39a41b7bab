"""How far arms are shown to differ, and how much of it keeps a selector exploring."""

import math
import random
import statistics

import pytest

from pytest_tfgrpo.production.live.selection.evidence import MEMORY, ArmEvidence, ArmReturn, ArmReturns

ARMS = ["a", "b"]


def evidence(means: dict[str, dict[str, float]], runs: int, seed: int = 0) -> ArmEvidence:
    """Return what `runs` runs of each arm in each category returned, 0 or 1 with these means."""
    rng = random.Random(seed)
    return ArmEvidence().with_returns(
        ArmReturn(category, arm, float(rng.random() < mean))
        for _ in range(runs)
        for category, arms in means.items()
        for arm, mean in arms.items()
    )


def test_arms_of_which_nothing_is_known_are_equal() -> None:
    assert ArmEvidence().least_shares(["x"], ARMS)[0] == {"a": 0.5, "b": 0.5}
    assert ArmEvidence().least_shares([None], "abcd")[0] == dict.fromkeys("abcd", 0.25)
    known = evidence({"x": {"a": 0.9}}, 20)
    assert known.least_shares(["x"], ARMS)[0]["b"] == 0.5, "it was never taken"


def test_the_least_share_follows_the_difference_in_standard_errors() -> None:
    found = evidence({"x": {"a": 0.2, "b": 0.8}}, 12)
    a, b = (found.returns["x"][arm] for arm in ARMS)
    mean, square = (a.mean + b.mean) / 2, (a.square + b.square) / 2
    within = (a.square - a.mean**2 + b.square - b.mean**2) * 12
    variance = (within + 4 * (square - mean**2)) / 28
    z = (b.mean - a.mean) / math.sqrt(variance * 2 / 12)
    shares = found.least_shares(["x"], ARMS)[0]
    assert shares["b"] == 0.5
    assert shares["a"] == pytest.approx(math.exp(-z * z / 2) / 2, rel=1e-4)
    assert 0 < shares["a"] < 0.05


def test_equal_arms_keep_a_share_and_a_worse_one_loses_it() -> None:
    equal = [
        min(evidence({"x": {"a": 0.6, "b": 0.6}}, 50, s).least_shares(["x"], ARMS)[0].values())
        for s in range(40)
    ]
    assert statistics.median(equal) > 0.25
    assert sum(share < 0.05 for share in equal) <= 5
    worse = [
        evidence({"x": {"a": 0.4, "b": 0.8}}, 50, s).least_shares(["x"], ARMS)[0]["a"] for s in range(40)
    ]
    assert statistics.median(worse) < 0.01


def test_small_differences_in_many_categories_add_up() -> None:
    found = evidence({f"c{i}": {"a": 0.5, "b": 0.75} for i in range(16)}, 12)
    assert found.least_shares([None], ARMS)[0]["a"] < 0.01
    assert found.least_shares(["new"], ARMS)[0] == found.least_shares([None], ARMS)[0]
    assert all(shares["a"] < 0.01 for shares in found.least_shares([f"c{i}" for i in range(16)], ARMS))
    apart = evidence(
        {f"c{i}": dict(zip(ARMS, (0.1, 0.9)[:: 1 - 2 * (i % 2)], strict=True)) for i in range(4)}, 20
    )
    assert min(apart.least_shares([None], ARMS)[0].values()) > 0.2, "either is better somewhere"
    assert apart.least_shares(["c0"], ARMS)[0]["a"] < 0.01
    assert apart.least_shares(["c1"], ARMS)[0]["b"] < 0.01


@pytest.mark.parametrize("value", [0.0, 0.3, -0.75])
def test_returns_without_spread_show_no_difference(value: float) -> None:
    found = ArmEvidence().with_returns(ArmReturn("x", arm, value) for arm in "aabb")
    assert found.least_shares(["x"], ARMS)[0] == {"a": 0.5, "b": 0.5}


def test_one_run_of_each_shows_little() -> None:
    found = ArmEvidence().with_returns([ArmReturn("x", "a", 0.0), ArmReturn("x", "b", 1.0)])
    assert found.least_shares(["x"], ARMS)[0]["a"] > 0.1


def test_a_mean_forgets_after_so_many_runs() -> None:
    old = ArmReturns(n=MEMORY, mean=0.0, square=0.0)
    assert old.and_also(1.0) == ArmReturns(n=MEMORY, mean=1 / MEMORY, square=1 / MEMORY)
    assert ArmReturns().and_also(0.4) == ArmReturns(n=1, mean=0.4, square=0.16)


def test_evidence_on_arms_that_are_gone_is_dropped() -> None:
    found = evidence({"x": {"a": 0.5, "b": 0.5}, "y": {"b": 0.5}}, 3).of_arms(["a"])
    assert {category: [*arms] for category, arms in found.returns.items()} == {"x": ["a"]}


def test_where_none_of_the_arms_returned_anything_each_keeps_the_same_share() -> None:
    evidence = ArmEvidence(returns={"a": {"gone": ArmReturns(n=9, mean=1.0, square=1.0)}})
    assert evidence.least_shares(["a", "b", None], ["x", "y"]) == [{"x": 0.5, "y": 0.5}] * 3
