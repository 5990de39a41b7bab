"""A confidence sequence for the mean of a finite population, sampled without replacement in random order.

Looking after every value costs nothing: all bounds hold at once, over every time, with the stated confidence.
The randomness is that of the order alone, so nothing is assumed of the values but their range.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

CELLS = 1000
"""Steps of the grid of candidate means; a bound gives away at most one of them."""
TRUNCATION = 0.75
"""Share of the capital that a single value may lose."""
_CAP = 1e280


class MeanSequence:
    """Bounds of the mean of N values in a known range, of which some may turn out to be missing.

    Each candidate mean m has a gambler on either side, who bets on every value against m. Drawn without
    replacement from N values of mean m, value t has, given those before it, the mean
    ``m_t = (N m - (x_1 + ... + x_{t-1})) / (N - t + 1)`` (Waudby-Smith and Ramdas 2020, "Confidence sequences
    for sampling without replacement", NeurIPS, section 2), so that the capital
    ``K_t = prod_i (1 + lambda_i (x_i - m_i))`` with predictable ``lambda_i >= 0`` is a nonnegative
    supermartingale wherever the mean is at most m. By Ville's inequality it ever reaches 1 / alpha with
    probability alpha at most: a candidate whose gambler gets that far is rejected for good. The bets are
    of Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS-B,
    sections 5 and B.3 (approximate growth-rate adaptive): ``lambda = d / (s^2 + d^2)``, d the estimated mean
    minus m_t, s^2 the estimated variance, both from the values before, truncated to ``c / m_t``.

    The lower bound is the largest m up to which *all* candidates of the grid are rejected: if it passed the
    true mean, the candidate next above that mean would have been rejected, which has probability alpha_low at
    most. The upper bound mirrors it. What the range alone implies is used as well, so that after all N values
    both bounds are the mean.

    A missing value counts, for each m, as m itself: the mean of the others is m if and only if the mean of
    all N is then m. So the sequence bounds the mean of the values that are not missing, however many that
    are, without knowing how many will be.
    """

    def __init__(
        self,
        size: int,
        *,
        support: tuple[float, float] = (-1.0, 1.0),
        alpha_low: float = 0.025,
        alpha_high: float = 0.025,
    ) -> None:
        """Bound the mean of `size` values in `support`; each bound fails with its alpha at most.

        Raises ValueError unless size >= 1 and 0 < alpha < 1.
        """
        if size < 1 or not (0 < alpha_low < 1 and 0 < alpha_high < 1):
            raise ValueError(
                f"expected size >= 1 and alphas in (0, 1), got {size}, {alpha_low}, {alpha_high}"
            )
        self.size = size
        self.fed = self.scored = 0
        """Values seen, and those of them that are not missing."""
        self._least, self._width = support[0], support[1] - support[0]
        self._grid = np.linspace(0.0, 1.0, CELLS + 1)
        self._wealth_low = np.ones(CELLS + 1)
        self._wealth_high = np.ones(CELLS + 1)
        self._needed_low, self._needed_high = 1.0 / alpha_low, 1.0 / alpha_high
        self._rejected_low = self._rejected_high = 0
        """Grid points rejected from below, and from above."""
        self._sum, self._squares = 0.0, 0.0
        self._low, self._high = 0.0, 1.0

    @property
    def low(self) -> float:
        """Lower bound; never falls."""
        return self._least + self._width * self._low

    @property
    def high(self) -> float:
        """Upper bound; never rises."""
        return self._least + self._width * self._high

    @property
    def mean(self) -> float:
        """Mean of the values seen; NaN before the first."""
        return self._least + self._width * self._sum / self.scored if self.scored else math.nan

    def feed(self, value: float | None) -> None:
        """Take the next value of the random order; None is a missing one.

        Raises ValueError on a value outside the support and on one too many.
        """
        if self.fed >= self.size:
            raise ValueError(f"all {self.size} values were seen")
        x = None if value is None else (value - self._least) / self._width
        if x is not None and not -1e-9 <= x <= 1 + 1e-9:
            raise ValueError(f"{value!r} lies outside of the support")
        if self._rejected_low + self._rejected_high <= CELLS:
            self._bet(None if x is None else min(max(x, 0.0), 1.0))
        self.fed += 1
        if x is not None:
            self.scored += 1
            self._sum += x
            self._squares += (x - self._centre()) ** 2
        self._narrow()

    def _centre(self) -> float:
        """Return the estimated mean, drawn to the middle of the range by half a value."""
        return (0.5 + self._sum) / (1 + self.scored)

    def _bet(self, x: float | None) -> None:
        first, last = self._rejected_low, CELLS + 1 - self._rejected_high
        m = self._grid[first:last]
        m_t = ((self.size - self.fed + self.scored) * m - self._sum) / (self.size - self.fed)
        np.clip(m_t, 0.0, 1.0, out=m_t)  # beyond, the range alone rejects m
        centre, variance = self._centre(), (0.25 + self._squares) / (1 + self.scored)
        d = centre - m_t
        stake = d / (variance + d * d)
        change = (m if x is None else x) - m_t
        with np.errstate(divide="ignore"):
            up = np.minimum(np.maximum(stake, 0.0), TRUNCATION / m_t)
            down = np.minimum(np.maximum(-stake, 0.0), TRUNCATION / (1.0 - m_t))
        low, high = self._wealth_low[first:last], self._wealth_high[first:last]
        low *= 1.0 + up * change
        high *= 1.0 - down * change
        np.minimum(low, _CAP, out=low)
        np.minimum(high, _CAP, out=high)
        self._rejected_low += _leading(low >= self._needed_low)
        self._rejected_high += _leading(high[::-1] >= self._needed_high)

    def _narrow(self) -> None:
        """Take the bounds from what is rejected, and from what the range allows the values to come."""
        low, high = self._low, self._high
        if self._rejected_low:
            low = max(low, float(self._grid[self._rejected_low - 1]))
        if self._rejected_high:
            high = min(high, float(self._grid[CELLS + 1 - self._rejected_high]))
        if low > high:  # one of both is wrong, which happens with probability alpha
            low = high = (low + high) / 2
        rest = self.size - self.fed
        seen = self.scored + rest
        if seen:
            least, most = self._sum / seen, (self._sum + rest) / seen
            low, high = min(max(low, least), most), max(min(high, most), least)
        self._low, self._high = low, high
        self._rejected_low = max(self._rejected_low, math.ceil(low * CELLS - 1e-9))
        self._rejected_high = max(self._rejected_high, CELLS - math.floor(high * CELLS + 1e-9))


def _leading(rejected: npt.NDArray[np.bool_]) -> int:
    """Return how many of the first entries are true, without a gap."""
    return int(rejected.size) if rejected.all() else int(np.argmin(rejected))
