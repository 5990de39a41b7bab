"""How each category of task fares: success, calibration, and whether it becomes better or worse."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.numerics.agreement import spearman
from pytest_tfgrpo.numerics.arrays import np
from pytest_tfgrpo.numerics.stats import holm
from pytest_tfgrpo.production.live.records import LiveRollout, LiveStatus
from pytest_tfgrpo.production.live.selection.evaluate import value_of
from pytest_tfgrpo.production.live.selection.rewards import FAILURE, OutcomeReward, TraceReward

REGRESSING, IMPROVING = -0.15, 0.10
"""Change of the success rate from which on a category is said to become worse, or better."""
LEAST_RUNS = 4
BINS = 5
ALERT = 0.01
"""Largest p of an alert, adjusted for the categories that were tested."""
WINDOW = 200
"""Newest runs of a category that its trend looks at."""
RESAMPLES = 9999
LEAST_CORRELATION = 0.3
"""Rank correlation of trace reward and score below which the reward is no good stand-in."""
_TRACE = TraceReward(2)

Direction = Literal["regressing", "improving", "steady", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfidenceBin:
    """Runs whose reward came with a confidence in one fifth of [0, 1]."""

    low: float
    high: float
    runs: int
    confidence: float | None
    """Mean; None without runs."""
    success: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryTrend:
    """One category of task."""

    category: str
    runs: int
    success: float
    """Mean score; a run without one counts 1 where it succeeded and safety did not block it, else 0."""
    calibration: tuple[ConfidenceBin, ...]
    change: float | None
    """Success of the last half of the newest 200 runs less that of the rest; None below 4 runs."""
    direction: Direction
    p: float | None
    """Of no change, one-sided, adjusted by Holm for all categories with a change; None: steady, unknown."""
    alert: bool
    """Regressing, with p < .01."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardAgreement:
    """Whether the inferred reward ranks runs as the application's score does."""

    runs: int
    """Runs that have both."""
    rank_correlation: float | None
    """None where one of them never differs."""
    warning: str
    """Empty where it is at least .3, where all scores are equal or are the reward, and with fewer than 20
    runs."""


def trends(rollouts: Iterable[LiveRollout]) -> tuple[CategoryTrend, ...]:
    """Return the trend of each category, by name, from runs in their order.

    Runs that were cancelled or still run do not count. Memory grows with categories, not with runs.
    """
    tallies: dict[str, _Tally] = {}
    for rollout in rollouts:
        if rollout.status in (LiveStatus.SUCCEEDED, LiveStatus.FAILED):
            tallies.setdefault(rollout.category, _Tally()).add(rollout)
    return _adjusted([_trend(name, tally) for name, tally in sorted(tallies.items())])


def success(rollout: LiveRollout) -> float:
    """Return how far an ended run succeeded, in [0, 1]."""
    if rollout.trace is not None and rollout.trace.blocked:
        return 0.0
    score = value_of(rollout, "score")
    return float(rollout.status is LiveStatus.SUCCEEDED) if score is None else score


def reward_agreement(rollouts: Iterable[LiveRollout]) -> RewardAgreement:
    """Return the rank correlation of trace reward and score over runs that have both (Spearman 1904).

    Where the reward is the score, it is ``trace_v2`` that is compared: what runs without a score could have.
    """
    pairs, inferred = [], False
    for run in rollouts:
        score = None if run.trace is None else run.trace.score
        if score is not None and run.reward is not None and run.trace is not None:
            by_score = run.reward.strategy == OutcomeReward.name
            if FAILURE in run.reward.components and not by_score:
                continue  # its reward is its score
            pairs.append(((_TRACE.infer(run.trace) if by_score else run.reward).composite, score))
            inferred = not by_score
    found = spearman([reward for reward, _ in pairs], [score for _, score in pairs]) if pairs else None
    warning = ""
    differ = len({score for _, score in pairs}) > 1
    if inferred and differ and len(pairs) >= 20 and (found is None or found < LEAST_CORRELATION):
        said = (
            "says nothing of the score"
            if found is None
            else f"has a rank correlation of {found:.2f} with the score"
        )
        warning = f'the inferred reward {said}; report scores and set inference = "outcome_v1"'
    return RewardAgreement(runs=len(pairs), rank_correlation=found, warning=warning)


class _Tally:
    """What is known of a category after some of its runs."""

    def __init__(self) -> None:
        self.runs, self.success = 0, 0.0
        self.newest: deque[float] = deque(maxlen=WINDOW)
        self.bins = [[0.0, 0.0, 0.0] for _ in range(BINS)]
        """Runs, and sums of confidence and success."""

    def add(self, rollout: LiveRollout) -> None:
        value = success(rollout)
        self.runs += 1
        self.success += value
        self.newest.append(value)
        if rollout.reward is not None:
            confidence = rollout.reward.confidence
            found = self.bins[min(int(confidence * BINS), BINS - 1)]
            found[:] = found[0] + 1, found[1] + confidence, found[2] + value


def _trend(category: str, tally: _Tally) -> CategoryTrend:
    newest = list(tally.newest)
    earlier, late = newest[: len(newest) // 2], newest[len(newest) // 2 :]
    change, p = None, None
    if len(newest) >= LEAST_RUNS:
        change = round(math.fsum(late) / len(late) - math.fsum(earlier) / len(earlier), 12)
        p = None if _direction(change) == "steady" else _change_p(earlier, late)
    return CategoryTrend(
        category=category,
        runs=tally.runs,
        success=tally.success / tally.runs,
        calibration=tuple(
            ConfidenceBin(
                low=place / BINS,
                high=(place + 1) / BINS,
                runs=int(runs),
                confidence=confidence / runs if runs else None,
                success=good / runs if runs else None,
            )
            for place, (runs, confidence, good) in enumerate(tally.bins)
        ),
        change=change,
        direction=_direction(change),
        p=p,
        alert=False,
    )


def _direction(change: float | None) -> Direction:
    if change is None:
        return "unknown"
    return "regressing" if change <= REGRESSING else "improving" if change >= IMPROVING else "steady"


def _change_p(earlier: Sequence[float], late: Sequence[float]) -> float:
    """Return the share of orders of these runs with a change at least as large, in its direction."""
    values = [*earlier, *late]
    low, high = min(values), max(values)
    if low == high:
        return 1.0
    if {*values} == {low, high}:
        return _fisher(sum(v == high for v in earlier), len(earlier), sum(v == high for v in late), len(late))

    all_N, wanted = np.array(values), math.fsum(late)
    shuffled = np.random.default_rng(0).permuted(np.tile(all_N, (RESAMPLES, 1)), axis=1)
    sums = shuffled[:, len(earlier) :].sum(axis=1)
    falls = wanted / len(late) < math.fsum(values) / len(values)
    extreme = (sums <= wanted + 1e-9) if falls else (sums >= wanted - 1e-9)
    return float((extreme.sum() + 1) / (RESAMPLES + 1))


def _fisher(a: int, n: int, b: int, m: int) -> float:
    """Return the one-sided p of Fisher's exact test: `b` of `m` late runs against `a` of `n` earlier ones."""
    falls = b * n < a * m
    least, most = max(0, a + b - n), min(m, a + b)
    counted = range(least, b + 1) if falls else range(b, most + 1)
    ways = sum(math.comb(m, k) * math.comb(n, a + b - k) for k in counted)
    return ways / math.comb(n + m, a + b)


def _adjusted(found: Sequence[CategoryTrend]) -> tuple[CategoryTrend, ...]:
    """Return trends with p adjusted for the number of categories that have one; a steady one counts as 1."""
    if all(one.p is None for one in found):
        return tuple(found)

    p_C = holm([math.nan if one.change is None else 1.0 if one.p is None else one.p for one in found])
    return tuple(
        one if one.p is None else replace(one, p=p, alert=one.direction == "regressing" and p < ALERT)
        for one, p in zip(found, p_C.tolist(), strict=True)
    )
