"""How far two raters of the same things agree; axis ``_N`` runs over the things rated."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.arrays import Floats


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


def _centred_ranks(x_N: Floats) -> Floats:
    _, place_N, counts = np.unique(x_N, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean_ranks = ends - (counts - 1) / 2.0
    return np.asarray(mean_ranks[place_N] - (x_N.size + 1) / 2.0, dtype=np.float64)


def _check_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if len(a) != 1 or a != b:
        raise ValueError(f"ratings must be two vectors of one length, got shapes {a} and {b}")
