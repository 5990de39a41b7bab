"""The seeds of a run: which scenarios an epoch draws, and the seed of each rollout, from identity alone."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from operator import itemgetter

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import seed_of


def draw(scenarios: Iterable[Scenario], *, size: int, seed: int, epoch: int) -> tuple[str, ...]:
    """Return the ids of `size` scenarios, in their given order, drawn without replacement (decision 6).

    The draw depends on the run seed, the epoch and each scenario's identity alone, so that another order or
    an unrelated scenario more does not reshuffle it.
    """
    ranked = ((seed_of(seed, "draw", epoch, s.stamp), s.id, n) for n, s in enumerate(scenarios))
    first = nsmallest(size, ranked)
    return tuple(id_ for _, id_, _ in sorted(first, key=itemgetter(2)))


def control_first(run_seed: int, scenario: Scenario, index: int) -> bool:
    """Return whether the control's rollout of a pair starts before the final sweep's, by a fair coin.

    The coin is drawn from identity alone: a resumed run makes every pair in the same order.
    """
    return bool(seed_of(run_seed, "pair", scenario.seed_stamp, index) & 1)


def placebo_place(run_seed: int, scenario: Scenario, index: int, of: int) -> int:
    """Return the place of the placebo's rollout among those `of` that start together, each as likely."""
    return seed_of(run_seed, "placebo", scenario.seed_stamp, index) % of


def place_among(run_seed: int, scenario: Scenario, phase: Phase, index: int, of: int) -> int:
    """Return the place of a rollout of `phase` among those `of` that start together, each as likely."""
    if phase.is_control:  # the first that joins the final one
        return 0 if control_first(run_seed, scenario, index) else 1
    if phase.mode == "placebo":
        return placebo_place(run_seed, scenario, index, of)
    return seed_of(run_seed, "side", phase.epoch, scenario.seed_stamp, index) % of


def rollout_seed(run_seed: int, scenario: Scenario, phase: Phase, index: int) -> int:
    """Return the seed of a rollout, from identity alone (decision 8)."""
    return seed_of(run_seed, scenario.seed_stamp, phase.seed_phase, index)
