"""The tail of a binomial distribution, exactly."""

from __future__ import annotations

import math


def binomial_tail(k: int, n: int, p: float) -> float:
    """Return the probability of k or more successes in n trials, each with probability p in [0, 1].

    Raises ValueError for other numbers.
    """
    if not (0 <= p <= 1 and n >= 0):
        raise ValueError(f"there is no binomial distribution of n {n!r} and p {p!r}")
    if k <= 0:
        return 1.0
    if k > n or p == 0.0:
        return 0.0
    if p == 1.0:
        return 1.0

    def term(i: int) -> float:
        ways = math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        return math.exp(ways + i * math.log(p) + (n - i) * math.log1p(-p))

    return min(1.0, math.fsum(term(i) for i in range(k, n + 1)))
