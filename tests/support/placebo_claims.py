"""Simulated sweeps without, with and with other lessons: how often a gain is claimed."""

import numpy as np

from pytest_tfgrpo.metrics.comparison import Tally
from pytest_tfgrpo.metrics.placebo import claimed
from pytest_tfgrpo.metrics.significance import held
from pytest_tfgrpo.runs.schedule import PLACEBOS

SCENARIOS, FAMILIES, ROLLOUTS = 66, 36, 5


def claim_rates(libraries: int, *, content: float, any_text: float, seed: int = 0) -> tuple[float, float]:
    """Return the share of libraries claimed as better by the gain alone, and by that over a placebo too.

    `content` is what lessons add to the chance of each task by what they say, `any_text` what any text adds;
    families differ in both, and tasks in difficulty.
    """
    rng = np.random.default_rng(seed)
    family = np.arange(SCENARIOS) % FAMILIES
    alone = both = 0
    for _ in range(libraries):
        base = rng.uniform(0.1, 0.7, SCENARIOS)
        said = content * rng.uniform(0.5, 1.5, FAMILIES)[family]
        text = any_text * rng.uniform(0.5, 1.5, FAMILIES)[family]
        before, placebo, after = (
            _tallies(rng.binomial(rollouts, np.clip(chance, 0, 1)), family, rollouts)
            for chance, rollouts in (
                (base, ROLLOUTS), (base + text, PLACEBOS * ROLLOUTS), (base + text + said, ROLLOUTS)
            )
        )  # fmt: skip
        side = claimed(before, after, 1)
        alone += side == "better"
        both += side == "better" and held(side, claimed(placebo, after, 1)) == "better"
    return alone / libraries, both / libraries


def _tallies(
    solved: "np.typing.NDArray[np.int64]", family: "np.typing.NDArray[np.int64]", rollouts: int
) -> dict[str, Tally]:
    return {
        f"s{n}": Tally(stamp="x", n=rollouts, sum=float(k), sum_sq=float(k), errors=0, family=f"f{family[n]}")
        for n, k in enumerate(solved)
    }
