"""Advice on an open comparison, in numbers a reader can act on."""

import numpy as np

from pytest_tfgrpo.harness.gate.sample_size import settling_advice
from pytest_tfgrpo.harness.metrics.comparison import Tally, compare


def sweep(seed: int, chances, rollouts: int) -> dict[str, Tally]:
    passed = np.random.default_rng(seed).binomial(rollouts, chances)
    return {
        f"s{i}": Tally(stamp="x", n=rollouts, sum=float(c), sum_sq=float(c), errors=0, domain="text")
        for i, c in enumerate(passed)
    }


def advice(before: dict[str, Tally], after: dict[str, Tally], **options):
    compared = compare(before, after, errors_as_zero=options.get("errors_as_zero", False))
    return settling_advice(compared, before, after, 0.05, **options)


def test_noise_is_settled_by_rollouts_too() -> None:
    half = np.full(40, 0.5)
    text, found = advice(sweep(1, half, 5), sweep(2, half, 5))
    assert found["settled_by"] > 40
    assert found["settled_rollouts"] > 5
    assert text.startswith(f"about {found['settled_by']} eval scenarios x 5 rollouts or ")
    assert text.endswith(f"{found['settled_rollouts']} rollouts of each of these 40 would be enough")
    assert found["spread"]["between"] < 0.2 * found["spread"]["within"]


def test_scenarios_that_differ_are_settled_by_more_scenarios_only() -> None:
    chances = np.tile([0.0, 1.0], 20)
    text, found = advice(sweep(1, chances, 5), sweep(2, np.append(chances[1:34], np.full(7, 0.5)), 5))
    assert found["settled_rollouts"] is None
    assert text.endswith("would be enough; more rollouts alone would not")


def test_single_rollouts_are_advised_in_scenarios() -> None:
    before, after = sweep(1, np.full(40, 0.8), 1), sweep(2, np.full(40, 0.8), 1)
    text, found = advice(before, after)
    assert text == f"about {found['settled_by']} eval scenarios would be enough"
    assert "settled_options" not in found


def test_errors_that_count_as_0_are_rollouts_of_0() -> None:
    before = sweep(1, np.full(40, 0.5), 4)
    after = {
        id: Tally(stamp="x", n=3, sum=float(i % 3), sum_sq=float(i % 3), errors=1, domain="text")
        for i, id in enumerate(before)
    }
    text, found = advice(before, after, errors_as_zero=True)
    assert f"{found['settled_by']} eval scenarios x 4 rollouts" in text


def test_nothing_settles_an_edge() -> None:
    before = sweep(1, np.full(40, 0.5), 4)
    compared = compare(before, before)
    assert settling_advice(compared, before, before, 0.0) == (
        "no number of scenarios would be enough",
        {"settled_by": None},
    )
