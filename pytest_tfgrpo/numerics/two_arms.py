"""Two arms that run side by side, looked at as often as one likes: all bounds and evidence hold at all times.

Each unit was given to the first arm (the canary) with a known share, by chance, and to the other one else. So
nothing is assumed of how good the units of an hour are: an outage or a quiet night meets both arms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_tfgrpo.numerics.arrays import Floats, np

_LARGEST_BET = 0.5
"""Share of the range that a single unit may cost."""
_PRIOR_VARIANCE = 0.25
_ABOVE = np.geomspace(1.1, 20.0, 32)
"""Rates that the mixture bets on, as odds over those of the limit."""
_ODDS = np.geomspace(1.1, 60.0, 32)
"""Odds ratios of two arms that the mixture bets on."""


class DifferenceSequence:
    """Bounds of the difference of two arms' means, of values in [0, 1], with one pass over the units.

    Unit i, whose value is x and whose share was p, has the value ``D_i = (x - m) / p`` in the canary and
    ``-(x - m) / (1 - p)`` else, with m the mean of the values before. Given those before it, its mean is the
    difference of the arms at that time (Ham, Bojinov, Lindon and Tingley 2022, "Design-based confidence
    sequences"; Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024, "Anytime-valid off-policy inference
    for contextual bandits"). D_i lies in a known range of width b_i, so that the predictable plug-in
    empirical-Bernstein sequence of Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
    variables by betting", JRSS-B, theorem 2, holds for ``D_i / b_i``: the estimate
    ``sum(w_i D_i) / sum(w_i)`` is on either side of delta by no more than

        ``(log(1 / alpha) + sum(psi(l_i) ((D_i - d_i) / b_i)^2)) / sum(w_i)``,

    with ``psi(l) = -log(1 - l) - l``, predictable bets l_i, ``w_i = l_i / b_i``, d_i the estimate before, and
    delta the average of the differences weighted by w_i.
    """

    def __init__(self, alpha: float) -> None:
        """Each of the two bounds fails with probability `alpha` at most; raises ValueError outside (0, 1)."""
        if not 0 < alpha < 1:
            raise ValueError(f"expected alpha in (0, 1), got {alpha}")
        self._needed = math.log(1.0 / alpha)
        self._n = 0
        self._values, self._squares = 0.5, _PRIOR_VARIANCE
        self._weighted = self._weights = self._penalty = 0.0

    def add(self, value: float, canary: bool, share: float) -> None:
        """Take in a unit; raises ValueError unless the value is in [0, 1] and the share in (0, 1)."""
        if not (0.0 <= value <= 1.0 and 0.0 < share < 1.0):
            raise ValueError(f"expected a value in [0, 1] and a share in (0, 1), got {value} and {share}")
        n = self._n + 1
        mean = self._values / n
        rest = 1.0 - share
        found = (value - mean) / share if canary else (mean - value) / rest
        low = -max(mean / share, (1.0 - mean) / rest)
        high = max((1.0 - mean) / share, mean / rest)
        width = high - low
        off = (found - min(max(self.estimate, low), high)) / width
        bet = min(math.sqrt(2.0 * self._needed / (self._squares * math.log1p(n))), _LARGEST_BET)
        self._weighted += bet * found / width
        self._weights += bet / width
        self._penalty += (-math.log1p(-bet) - bet) * off * off
        self._values += value
        self._squares += off * off
        self._n = n

    @property
    def estimate(self) -> float:
        """Canary minus control; 0 of no units."""
        return self._weighted / self._weights if self._weights else 0.0

    @property
    def low(self) -> float:
        """Lower bound of the difference."""
        return max(-1.0, self.estimate - self._radius)

    @property
    def high(self) -> float:
        """Upper bound of the difference."""
        return min(1.0, self.estimate + self._radius)

    @property
    def _radius(self) -> float:
        return (self._needed + self._penalty) / self._weights if self._weights else math.inf


def rate_evidence(hits: int, units: int, limit: float) -> float:
    """Return the log evidence that a rate is above `limit`; log(1 / alpha) shows it at level alpha.

    The likelihood ratio against the limit, mixed over rates above it (Robbins 1970, "Statistical methods
    related to the law of the iterated logarithm"), is a nonnegative supermartingale wherever each unit's
    probability of a hit is at most `limit`, however it changes: by Ville's inequality it ever reaches
    1 / alpha with probability alpha at most. Raises ValueError unless 0 <= hits <= units, limit in (0, 1).
    """
    if not (0 <= hits <= units and 0 < limit < 1):
        raise ValueError(f"expected hits of units and a limit in (0, 1), got {hits}, {units}, {limit}")
    odds = _ABOVE * limit / (1.0 - limit)
    rates = odds / (1.0 + odds)
    return _mixed(hits * np.log(rates / limit) + (units - hits) * np.log((1.0 - rates) / (1.0 - limit)))


def odds_evidence(hits: Iterable[tuple[int, int, float]]) -> float:
    """Return the log evidence that a hit is more frequent in the canary than in the control arm.

    `hits` are those of canary and control by the share that the canary had. Of a unit with a hit, the
    probability that it is the canary's is at most the share p wherever its rate is at most that of the
    control, however both change over time; with odds ratio r it is ``r p / (r p + 1 - p)``. The likelihood
    ratio, mixed over r > 1, is evidence as that of `rate_evidence` is (Lindon and Malek 2022, "Anytime-valid
    inference for multinomial count data", section 4). Raises ValueError for a share outside (0, 1).
    """
    ratio = np.zeros(len(_ODDS))
    for canary, control, share in hits:
        if not 0 < share < 1:
            raise ValueError(f"expected shares in (0, 1), got {share}")
        whole = _ODDS * share + 1.0 - share
        ratio += canary * np.log(_ODDS / whole) - control * np.log(whole)
    return _mixed(ratio)


def _mixed(logs: Floats) -> float:
    """Return the logarithm of the mean of exponentials."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))
