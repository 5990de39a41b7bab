"""Measure lessons of known effect: bias, coverage, and what is claimed of lessons that do nothing.

    python benchmarks/attribution.py [SIMULATIONS]

Each simulation is a run or several: scenarios of differing difficulty, two rollouts a group, 8 slots, each
lesson left out with probability 0.2. Of the 8 lessons six do nothing, one adds 0.10 and one takes 0.15; where
all are null, none does anything.

It prints, for each effect, the mean error of the estimate, its spread, the mean half width of the interval,
the share of intervals that hold the truth, and the share with p < 0.05; then the share of simulations in
which any null lesson was claimed to help or harm after correction by Holm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.learning.attribution.effects import ALPHA
from pytest_tfgrpo.numerics.attribution import Trials, draws_for, estimate
from pytest_tfgrpo.numerics.stats import holm

Floats = npt.NDArray[np.float64]
MIXED = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.10, -0.15)
NULLS = (0.0,) * 8
HEADER = f"{'':28}{'effect':>7}{'bias':>9}{'sd':>7}{'half':>7}{'covers':>8}{'p<.05':>7}{'not est.':>9}"


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    effects: tuple[float, ...]
    difficulty: Callable[[np.random.Generator, int], Floats]
    scenarios: int = 150
    epochs: int = 2
    groups: int = 100
    uneven: bool = False
    """Lessons act twice as strongly on half of the scenarios, and not at all on the others."""


def beta(a: float, b: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return a maker of solving rates that are spread over scenarios."""
    return lambda rng, n: rng.beta(a, b, n)


def flat(rate: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return a maker of equal solving rates."""
    return lambda _rng, n: np.full(n, rate)


SETTINGS = (
    Setting("2 x 100 groups", MIXED, beta(3, 3)),
    Setting("2 x 100, uneven effects", MIXED, beta(3, 3), uneven=True),
    Setting("2 x 100, all null", NULLS, beta(3, 3)),
    Setting("2 x 100, all null, rate .95", NULLS, flat(0.95)),
    Setting("10 x 20 of 20 scenarios", MIXED, beta(3, 3), scenarios=20, epochs=10, groups=20),
    Setting("20 x 100 groups", MIXED, beta(3, 3), scenarios=300, epochs=20),
    Setting("20 x 100, uneven effects", MIXED, beta(3, 3), scenarios=300, epochs=20, uneven=True),
)


def simulate(rng: np.random.Generator, s: Setting) -> list[Trials]:
    """Return the trials of each lesson over the epochs of one simulation."""
    rate_S = s.difficulty(rng, s.scenarios)
    reach_S = 2.0 * (np.arange(s.scenarios) % 2) if s.uneven else np.ones(s.scenarios)
    total_S, count_S = np.zeros(s.scenarios), np.zeros(s.scenarios)
    parts = []
    for _ in range(s.epochs):
        drawn_K = rng.choice(s.scenarios, s.groups, replace=False)
        z_KL = rng.random((s.groups, len(s.effects))) < 0.8
        change_K = (z_KL @ np.array(s.effects)) * reach_S[drawn_K]
        y_K = rng.binomial(2, np.clip(rate_S[drawn_K] + change_K, 0.0, 1.0)) / 2
        prior = total_S.sum() / count_S.sum() if count_S.any() else 0.5
        x_K = (prior + total_S[drawn_K]) / (1 + count_S[drawn_K])
        total_S[drawn_K] += y_K
        count_S[drawn_K] += 1
        parts.append((z_KL, y_K, x_K, drawn_K))
    z_KL, y_K, x_K, drawn_K = (np.concatenate(part) for part in zip(*parts, strict=True))
    scenario_K = np.unique(drawn_K, return_inverse=True)[1]
    return [
        Trials(z_K, np.full(y_K.size, 0.8), y_K, x_K, scenario_K, np.zeros(y_K.size, dtype=np.intp))
        for z_K in z_KL.T
    ]


def true_effects(s: Setting) -> Floats:
    """Return the mean effect of each lesson as it shows in rates that cannot leave [0, 1]."""
    rng = np.random.default_rng(1)
    n = 400_000
    rate_K = s.difficulty(rng, n)
    reach_K = 2.0 * (np.arange(n) % 2) if s.uneven else np.ones(n)
    z_KL = rng.random((n, len(s.effects))) < 0.8
    effects_L = np.array(s.effects)
    found = []
    for lesson in range(len(s.effects)):
        others_K = z_KL @ effects_L - z_KL[:, lesson] * effects_L[lesson]
        with_K = np.clip(rate_K + (others_K + effects_L[lesson]) * reach_K, 0.0, 1.0)
        found.append(float((with_K - np.clip(rate_K + others_K * reach_K, 0.0, 1.0)).mean()))
    return np.array(found)


def measure(s: Setting, simulations: int, seed: int = 0) -> list[str]:
    """Return the lines of one setting."""
    rng = np.random.default_rng(seed)
    truth_L = true_effects(s)
    rows, claimed = [], 0
    for _ in range(simulations):
        found = [estimate(trials, draws=draws_for(len(s.effects))) for trials in simulate(rng, s)]
        p_L = np.array([effect.p for effect in found])
        adjusted_L = holm(p_L)
        claimed += bool(np.any((adjusted_L < ALPHA) & (np.array(s.effects) == 0)))
        rows.append([[e.effect, e.low, e.high, e.p] for e in found])
    table_BL4 = np.array(rows, dtype=np.float64)
    lines: list[str] = []
    for effect in dict.fromkeys(s.effects):
        own = [i for i, e in enumerate(s.effects) if e == effect]
        cells_B4 = table_BL4[:, own].reshape(-1, 4)
        known_B4 = cells_B4[~np.isnan(cells_B4[:, 0])]
        truth = float(truth_L[own].mean())
        estimate_B, low_B, high_B, p_B = known_B4.T
        lines.append(
            f"{s.name if not lines else '':28}{effect:>+7.2f}{(estimate_B - truth).mean():>+9.4f}"
            f"{estimate_B.std():>7.3f}{((high_B - low_B) / 2).mean():>7.3f}"
            f"{((low_B <= truth) & (truth <= high_B)).mean():>8.3f}{(p_B < 0.05).mean():>7.3f}"
            f"{1 - len(known_B4) / len(cells_B4):>9.3f}"
        )
    return [*lines, f"{'':28}  any null lesson claimed, after Holm: {claimed / simulations:.3f}"]


def main(simulations: int) -> None:
    """Print the table."""
    print(f"{simulations} simulations each")
    print(HEADER)
    for setting in SETTINGS:
        print("\n".join(measure(setting, simulations)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
