"""The interval of a gain over two crossed factors: seeds of whole runs (``_S``), and families (``_F``)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.numerics.resampling import student_quantile
from pytest_tfgrpo.numerics.stats import mean_interval

if TYPE_CHECKING:
    import numpy.typing as npt

MIN_SEEDS = 3
"""Two seeds say next to nothing of how much seeds differ."""


class TwoWay(NamedTuple):
    """A mean over seeds and scenarios with its interval."""

    mean: float
    low: float | None
    high: float | None
    seed_std: float
    """Standard deviation between seeds beyond what families explain; NaN under two seeds."""
    families: float
    """Effective families; 0 where each scenario is its own."""

    @property
    def just_these(self) -> bool:
        """Whether the interval speaks of these scenarios alone, as their families are too few."""
        return self.low is not None and 0 < self.families < MIN_INTERVAL


def two_way_interval(
    gains_SK: npt.ArrayLike, families_K: Sequence[Hashable] = (), *, level: float = 0.95, seed: int = 0
) -> TwoWay:
    """Return the mean gain and its interval over seeds and families, both taken as samples.

    The interval over families of the gains averaged over seeds (`mean_interval`) is widened by what seeds
    add: the squares of both half widths are added (MOVER: Zou and Donner 2008, "Construction of confidence
    limits about effect measures"). Seeds add Student's quantile, at S - 1 degrees of freedom, times the
    standard error of their mean. Its variance is ``(MS_S - MS_SF) / (S F)``, the crossed analysis of variance
    of Searle 1971, "Linear Models", but at least half of ``MS_S / (S F)``: with few seeds the difference is
    often 0 by chance. Under 3 seeds, and where `mean_interval` has none, there is no interval. Raises
    ValueError unless `gains_SK` is a matrix with values in [-1, 1].
    """
    y_SK = np.asarray(gains_SK, dtype=np.float64)
    if y_SK.ndim != 2:
        raise ValueError(f"gains must be a matrix of seeds and scenarios, got shape {y_SK.shape}")
    over = mean_interval(y_SK.mean(axis=0), families_K, support=(-1.0, 1.0), level=level, seed=seed)
    few = 0 < over.families < MIN_INTERVAL
    between, within = _mean_squares(y_SK, () if few else families_K)
    std = math.sqrt(max(between - within, 0.0))
    if y_SK.shape[0] < MIN_SEEDS or over.low is None or over.high is None:
        return TwoWay(over.mean, None, None, std if y_SK.shape[0] > 1 else math.nan, over.families)
    error = math.sqrt(max(between - within, between / 2) / y_SK.shape[0])
    added = student_quantile(0.5 + level / 2, y_SK.shape[0] - 1) * error
    low = max(over.mean - math.hypot(over.mean - over.low, added), -1.0)
    high = min(over.mean + math.hypot(over.high - over.mean, added), 1.0)
    return TwoWay(over.mean, low, high, std, over.families)


def _mean_squares(y_SK: Floats, families_K: Sequence[Hashable]) -> tuple[float, float]:
    """Return the mean squares of seeds and of seeds x families, each divided by the number of families.

    Families count by the sum of their deviations from each seed's mean over all, relative to their mean size.
    """
    if len(set(families_K)) < 2:
        families_K = range(y_SK.shape[1])
    places: dict[Hashable, int] = {}
    place_K = [places.setdefault(family, len(places)) for family in families_K]
    size_F = np.bincount(place_K)
    sum_SF = np.stack([np.bincount(place_K, weights=row_K) for row_K in y_SK])
    u_SF = (sum_SF - y_SK.mean() * size_F) / size_F.mean()
    seeds, families = u_SF.shape
    if seeds < 2 or families < 2:
        return 0.0, 0.0
    by_seed_S, by_family_F = u_SF.mean(axis=1), u_SF.mean(axis=0)
    rest_SF = u_SF - by_seed_S[:, None] - by_family_F
    between = float((by_seed_S**2).sum() / (seeds - 1))
    return between, float((rest_SF**2).sum() / ((seeds - 1) * (families - 1)) / families)
