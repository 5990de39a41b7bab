"""A confidence sequence for the mean of a finite population, sampled without replacement in random order.

Looking after every value costs nothing: all bounds hold at once, over every time, with the stated confidence.
The randomness is that of the order alone, so nothing is assumed of the values but their range.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tfgrpo.numerics.arrays import np
from pytest_tfgrpo.numerics.planning import normal_quantile
from pytest_tfgrpo.numerics.stats import MIN_RESAMPLED, rare_event_bound

if TYPE_CHECKING:
    import numpy.typing as npt

CELLS = 1000
"""Steps of the grid of candidate means; a bound gives away at most one of them."""
TRUNCATION = 0.75
"""Share of the capital that a single value may lose."""
_CAP = 1e280
_DECIMALS = 12
"""Values equal to so many places are one value."""


@dataclass(frozen=True, slots=True)
class Population:
    """The values that a sequence draws from."""

    size: int
    support: tuple[float, float]
    families: Sequence[int]
    """Sizes of the families that are drawn whole; none: each value is drawn by itself."""

    @property
    def draws(self) -> int:
        """How often something is drawn."""
        return len(self.families) or self.size

    @property
    def largest(self) -> int:
        """Values of the largest family."""
        return max(self.families, default=1)

    def at(self, share: float) -> float:
        """Return the value at a share of the support."""
        least, most = self.support
        return least + (most - least) * share


class Gamblers:
    """A gambler for each candidate mean, who bets on one side of it."""

    def __init__(self, alpha: float) -> None:
        """Who wins ``1 / alpha`` rejects the candidate."""
        self.rejected = 0
        """Grid points rejected, from the end of the grid on this side."""
        self._wealth = np.ones(CELLS + 1)
        self._needed = 1.0 / alpha

    def win(self, factor: npt.NDArray[np.float64], first: int, last: int) -> npt.NDArray[np.bool_]:
        """Multiply what the gamblers from `first` to `last` have; return which of them reject."""
        wealth = self._wealth[first:last]
        wealth *= factor
        np.minimum(wealth, _CAP, out=wealth)
        return wealth >= self._needed


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

    Values that come in families, drawn whole, count for each m as one value ``m + (s - n m) / L`` in the same
    range, with s the sum of the n values of a family that are not missing and L the size of the largest one:
    its mean over all families is m if and only if m is the mean of the values.
    """

    def __init__(
        self,
        size: int,
        *,
        support: tuple[float, float] = (-1.0, 1.0),
        alpha_low: float = 0.025,
        alpha_high: float = 0.025,
        families: Sequence[int] = (),
    ) -> None:
        """Bound the mean of `size` values in `support`; each bound fails with its alpha at most.

        `families` are the sizes of the families that are drawn whole; none: each value is drawn by itself.
        Raises ValueError unless size >= 1, 0 < alpha < 1, and families hold `size` values.
        """
        if size < 1 or not (0 < alpha_low < 1 and 0 < alpha_high < 1):
            raise ValueError(
                f"expected size >= 1 and alphas in (0, 1), got {size}, {alpha_low}, {alpha_high}"
            )
        if families and (sum(families) != size or min(families) < 1):
            raise ValueError(f"families of {size} values must have as many, got {sum(families)}")
        self.drawn_from = Population(size, support, families)
        self.fed = self.scored = 0
        """Values seen, and those of them that are not missing."""
        self._drawn = self._known = 0
        """Families seen, and those of them with a value."""
        self._grid = np.linspace(0.0, 1.0, CELLS + 1)
        self._from_below, self._from_above = Gamblers(alpha_low), Gamblers(alpha_high)
        self._sum, self._squares = 0.0, 0.0
        self._low, self._high = 0.0, 1.0

    @property
    def low(self) -> float:
        """Lower bound; never falls."""
        return self.drawn_from.at(self._low)

    @property
    def high(self) -> float:
        """Upper bound; never rises."""
        return self.drawn_from.at(self._high)

    @property
    def mean(self) -> float:
        """Mean of the values seen; NaN before the first."""
        least, most = self.drawn_from.support
        return least + (most - least) * self._sum / self.scored if self.scored else math.nan

    def feed(self, *values: float | None) -> None:
        """Take the next value of the random order, or those of the next family; None is a missing one.

        Raises ValueError on a value outside the support and on one too many.
        """
        population = self.drawn_from
        if self.fed + len(values) > population.size or self._drawn >= population.draws:
            raise ValueError(f"all {population.size} values were seen")
        least, most = population.support
        x = [(value - least) / (most - least) for value in values if value is not None]
        if any(not -1e-9 <= one <= 1 + 1e-9 for one in x) or not 1 <= len(values) <= population.largest:
            raise ValueError(f"{values!r} lies outside of the support, or is no family")
        total = math.fsum(min(max(one, 0.0), 1.0) for one in x)
        if self._from_below.rejected + self._from_above.rejected <= CELLS:
            self._bet(total, len(x))
        self.fed += len(values)
        self._drawn += 1
        if x:
            self.scored += len(x)
            self._known += 1
            self._sum += math.fsum(x)
            self._squares += ((math.fsum(x) - len(x) * self._centre()) / population.largest) ** 2
        self._narrow()

    def _centre(self) -> float:
        """Return the estimated mean, drawn to the middle of the range by half a value."""
        return (0.5 + self._sum) / (1 + self.scored)

    def _bet(self, total: float, n: int) -> None:
        """Bet on a family with `n` values that come to `total`."""
        first, last = self._from_below.rejected, CELLS + 1 - self._from_above.rejected
        m, left, most = self._grid[first:last], self.drawn_from.draws - self._drawn, self.drawn_from.largest
        m_t = ((left + self.scored / most) * m - self._sum / most) / left
        np.clip(m_t, 0.0, 1.0, out=m_t)  # beyond, the range alone rejects m
        centre, variance = self._centre(), (0.25 + self._squares) / (1 + self._known)
        weight = (self.drawn_from.size - self.fed) / (
            left * most
        )  # what the mean of a family's values moves it by
        d = weight * centre + (1.0 - weight) * m - m_t
        stake = d / (variance + d * d)
        change = (total if n == most == 1 else m + (total - n * m) / most) - m_t
        with np.errstate(divide="ignore"):
            up = np.minimum(np.maximum(stake, 0.0), TRUNCATION / m_t)
            down = np.minimum(np.maximum(-stake, 0.0), TRUNCATION / (1.0 - m_t))
        self._from_below.rejected += _leading(self._from_below.win(1.0 + up * change, first, last))
        self._from_above.rejected += _leading(self._from_above.win(1.0 - down * change, first, last)[::-1])

    def _narrow(self) -> None:
        """Take the bounds from what is rejected, and from what the range allows the values to come."""
        low, high = self._low, self._high
        if rejected := self._from_below.rejected:
            low = max(low, float(self._grid[rejected - 1]))
        if rejected := self._from_above.rejected:
            high = min(high, float(self._grid[CELLS + 1 - rejected]))
        if low > high:  # one of both is wrong, which happens with probability alpha
            low = high = (low + high) / 2
        rest = self.drawn_from.size - self.fed
        seen = self.scored + rest
        if seen:
            least, most = self._sum / seen, (self._sum + rest) / seen
            low, high = min(max(low, least), most), max(min(high, most), least)
        self._low, self._high = low, high
        below, above = self._from_below, self._from_above
        below.rejected = max(below.rejected, math.ceil(low * CELLS - 1e-9))
        above.rejected = max(above.rejected, CELLS - math.floor(high * CELLS + 1e-9))


class IntervalSequence:
    """Bounds of the interval for more values like these that a whole population will have around its mean.

    Its variance is the mean square less the square of the mean, which lies between the bounds. Of families
    the mean square is that of their means, and their number that of families all as large as the largest: so
    many bound the variance of the ratio of sums. Where few values differ this says little: then more families
    like these may be at either end of the support.
    """

    def __init__(self, mean: MeanSequence, *, spread_alpha: float, alpha: float) -> None:
        """Follow `mean`; the levels are those of the spread and of one side of the interval."""
        self._mean, self._alpha = mean, alpha
        self._square = MeanSequence(
            mean.drawn_from.size,
            support=(0.0, 1.0),
            alpha_low=spread_alpha,
            alpha_high=spread_alpha,
            families=mean.drawn_from.families,
        )
        self._seen: Counter[float] = Counter()

    def feed(self, *values: float | None) -> tuple[float, float]:
        """Take the family that the mean was fed, and return the bounds, which may lie beyond the support."""
        known = [value for value in values if value is not None]
        mean = math.fsum(known) / len(known) if known else 0.0
        if known:
            self._seen[round(mean, _DECIMALS)] += 1
        self._square.feed(*(None if value is None else mean * mean for value in values))
        scored, population = self._mean.scored / self._mean.fed, self._mean.drawn_from
        planned = population.size * scored / population.largest
        if planned < 2:
            return -math.inf, math.inf
        half = self._half_width(planned)
        hidden = self._hidden(round(population.draws * scored)) * population.largest
        hidden = min(1.0, hidden * population.draws / population.size)
        low, high, (least, most) = self._mean.low, self._mean.high, population.support
        return low - max(half, hidden * (low - least)), high + max(half, hidden * (most - high))

    def _hidden(self, planned: int) -> float:
        """Return the share of families that may differ beyond those seen; 0 once enough of them do."""
        differ = self._seen.total() - max(self._seen.values(), default=0)
        if differ >= min(MIN_RESAMPLED, planned):
            return 0.0
        return rare_event_bound(differ, planned, self._alpha) - differ / planned

    def _half_width(self, planned: float) -> float:
        """Return a bound of half the width of an interval with `planned` values."""
        least = max(self._mean.low, -self._mean.high, 0.0)
        z = normal_quantile(1 - self._alpha)
        t = (z**3 + z) / 4  # first term of Student's quantile in 1 / degrees of freedom (Fisher 1926)
        return (z + t / (planned - 1)) * math.sqrt(
            max(self._square.high - least * least, 0.0) / (planned - 1)
        )


def _leading(rejected: npt.NDArray[np.bool_]) -> int:
    """Return how many of the first entries are true, without a gap."""
    return int(rejected.size) if rejected.all() else int(np.argmin(rejected))
