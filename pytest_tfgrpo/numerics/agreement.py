"""How far two raters of the same things (``_N``) agree, and how far values (``_K``) of a family do."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_tfgrpo.numerics.arrays import Floats, np
from pytest_tfgrpo.numerics.planning import NO_SPREAD

if TYPE_CHECKING:
    import numpy.typing as npt


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share of `successes` in `n` trials, within [0, 1].

    Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference". Raises ValueError
    unless 0 <= successes <= n and n >= 1.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes in {n} trials have no interval")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p, spread = successes / n, z * z / n
    centre = (p + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(p * (1 - p) / n + spread / (4 * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == n else min(1.0, centre + half)


def cohen_kappa(a_N: npt.ArrayLike, b_N: npt.ArrayLike) -> float | None:
    """Return the agreement of two raters' yes and no beyond chance; None where chance alone makes it whole.

    ``(p_o - p_e) / (1 - p_e)``, Cohen 1960, "A Coefficient of Agreement for Nominal Scales".
    """
    a, b = np.asarray(a_N, dtype=np.bool_), np.asarray(b_N, dtype=np.bool_)
    _check_shapes(a.shape, b.shape)
    if not a.size:
        return None
    observed = float(np.mean(a == b))
    yes_a, yes_b = float(a.mean()), float(b.mean())
    chance = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    return None if chance >= 1.0 else (observed - chance) / (1 - chance)


def spearman(a_N: npt.ArrayLike, b_N: npt.ArrayLike) -> float | None:
    """Return the rank correlation of two vectors, equal values sharing their mean rank.

    Spearman 1904, "The Proof and Measurement of Association between Two Things". None where one is constant.
    """
    x, y = np.asarray(a_N, dtype=np.float64), np.asarray(b_N, dtype=np.float64)
    _check_shapes(x.shape, y.shape)
    a, b = _centred_ranks(x), _centred_ranks(y)
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return None if scale == 0 else float(np.clip(float(a @ b) / scale, -1.0, 1.0))


def intraclass_correlation(values_K: npt.ArrayLike, families_K: Sequence[Hashable]) -> float | None:
    """Return the share of the variance that values of a family have in common, by one-way ANOVA.

    ``(MSB - MSW) / (MSB + (n0 - 1) MSW)`` with the mean squares between and within families and, for those of
    different sizes n, ``n0 = (N - sum n^2 / N) / (F - 1)``: Donner 1986, "A Review of Inference Procedures
    for the Intraclass Correlation Coefficient in the One-Way Random Effects Model". Below 0 where values of a
    family differ more than others. None without two families, without one of two values, and without
    variance. Raises ValueError unless there is a family for each value.
    """
    x = np.asarray(values_K, dtype=np.float64)
    if x.shape != (len(families_K),):
        raise ValueError(f"values must be a vector with {len(families_K)} families, got shape {x.shape}")
    places: dict[Hashable, int] = {}
    place_K = np.array([places.setdefault(family, len(places)) for family in families_K], dtype=np.int64)
    size_F = np.bincount(place_K, minlength=len(places))
    n, families = x.size, size_F.size
    if families < 2 or n == families:
        return None
    mean_F = np.bincount(place_K, weights=x) / size_F
    between = float((size_F * (mean_F - x.mean()) ** 2).sum()) / (families - 1)
    within = float(((x - mean_F[place_K]) ** 2).sum()) / (n - families)
    usual = (n - float((size_F**2).sum()) / n) / (families - 1)
    spread = between + (usual - 1) * within
    return (between - within) / spread if spread > NO_SPREAD else None


def _centred_ranks(x_N: Floats) -> Floats:
    _, place_N, counts = np.unique(x_N, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean_ranks = ends - (counts - 1) / 2.0
    return np.asarray(mean_ranks[place_N] - (x_N.size + 1) / 2.0, dtype=np.float64)


def _check_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if len(a) != 1 or a != b:
        raise ValueError(f"ratings must be two vectors of one length, got shapes {a} and {b}")
