"""A test, after every run, of whether the selector is worse than its concurrent control.

A bettor against "the selector is no worse" stakes on each run's ``X = (q - c) (control / p - selected / (1 -
p))``, with q the reward in [0, 1] (decision 1), p the share of control runs, and c the mean of earlier q.
Given the past, X has the mean reward of control less that of the selector, whatever c is: at most 0 unless
the selector is worse. So the wealth ``prod (1 + stake X)`` is a nonnegative supermartingale, and ever reaches
20 with a probability of at most 1 / 20 (Ville 1939), however often one looks. The stake is that of
Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", section B.3: mean
over mean square of the earlier X, and never one that can lose more than `MOST` of the wealth. Both means and
c forget, so that harm which sets in late is found about as soon as early harm.

Runs count in the order in which their rewards become known. That is sound while whether and when an outcome
comes may depend on what it is, or on the arm, but not on both at once: where bad outcomes of one arm come
sooner than its good ones, or good ones never, it looks worse than it is, and the gate may hold without need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_tfgrpo.production.live.selection.selector import CONTROL_SHARE

NEEDED = 20.0
"""Wealth at which the selector is shown worse."""
NEEDED_OF_FAILURES = 100.0
"""Wealth at which its runs are shown to fail more often."""
MORE_FAILURES = 0.05
"""By how much more of the selector's runs may fail than of the control's."""
MOST = 0.5
MEMORY = 200
"""Runs after which a mean forgets: later ones weigh 1 / MEMORY."""
PRIOR_RUNS, PRIOR_MEAN, PRIOR_SQUARE = 40.0, 0.3, 3.0
"""What the bettor believes of X before the first run, and for how many runs that counts."""


def bet(memory: Mapping[str, float], q: float, *, control: bool, margin: float = 0.0) -> dict[str, float]:
    """Return the memory after a run with reward `q`; an empty one is that before the first.

    With a `margin` the bet is against "the selector is worse by no more than that".
    Raises ValueError for a q outside of [0, 1].
    """
    if not 0 <= q <= 1:
        raise ValueError(f"q is {q!r}; it must be from 0 to 1")
    n, c = memory.get("runs", 0.0), memory.get("mean_q", 0.5)
    mean, square = memory.get("mean_x", PRIOR_MEAN), memory.get("mean_x2", PRIOR_SQUARE)
    x = (q - c) * (1 / CONTROL_SHARE if control else -1 / (1 - CONTROL_SHARE)) - margin
    worst = max(c / CONTROL_SHARE, (1 - c) / (1 - CONTROL_SHARE)) + margin
    stake = min(max(mean / square, 0.0), MOST / worst)
    known = min(n + PRIOR_RUNS, MEMORY) + 1
    return {
        "runs": n + 1,
        "controls": memory.get("controls", 0.0) + control,
        "mean_q": c + (q - c) / (min(n + 1, MEMORY) + 1),
        "mean_x": mean + (x - mean) / known,
        "mean_x2": square + (x * x - square) / known,
        "log_wealth": memory.get("log_wealth", 0.0) + math.log1p(stake * x),
    }


def wealth(memory: Mapping[str, float]) -> float:
    """Return the bettor's wealth, from 1 before the first run."""
    return math.exp(min(memory.get("log_wealth", 0.0), 700.0))
