"""Measure how often intervals hold the truth where scenarios of a family share what they gain.

    python benchmarks/families.py [RUNS [RESAMPLES]]

Prints a table of Markdown: the share of simulated suites whose 95 % interval holds the true mean, with
families as the unit and, beside it, scenarios. The correlation is the share of the variance of gains that
a family has in common. Gains are normal, or a lesson solves (loses) a whole family, or a scenario alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.stats import mean_interval

Floats = npt.NDArray[np.float64]
FAMILIES = (20, 40, 100)
SIZES = {"2": (2,), "5": (5,), "10": (10,), "1 to 10": (1, 2, 3, 10)}
SHARED = (0.4, 0.9)
KINDS = {"normal": 0.05, "solved": 0.25, "solved and lost": 0.125}
"""Kinds of gains, and the true mean of each."""


def gains(rng: np.random.Generator, kind: str, family_K: npt.NDArray[np.int64], shared: float) -> Floats:
    """Draw the gain of each scenario; `shared` is the intraclass correlation."""
    n, families = family_K.size, int(family_K.max()) + 1
    if kind == "normal":
        common, own = rng.normal(0, shared**0.5, families)[family_K], rng.normal(0, (1 - shared) ** 0.5, n)
        return KINDS[kind] + 0.2 * (common + own)
    values, chances = (
        ([1.0, 0.0], [0.25, 0.75]) if kind == "solved" else ([1.0, -1.0, 0.0], [0.25, 0.125, 0.625])
    )
    common, own = rng.choice(values, families, p=chances)[family_K], rng.choice(values, n, p=chances)
    return np.where(
        rng.random(n) < shared**0.5, common, own
    )  # two both take the family's with chance `shared`


def cover(cell: tuple[int, str, float, str], runs: int, resamples: int) -> tuple[float, float]:
    """Return the share of `runs` suites whose interval holds the truth, by families and by scenarios."""
    families, sizes, shared, kind = cell
    held = [0, 0]
    for run in range(runs):
        rng = np.random.default_rng([run, *map(ord, repr(cell))])
        family_K = np.repeat(np.arange(families), rng.choice(SIZES[sizes], families))
        values = gains(rng, kind, family_K, shared).clip(-1, 1)
        for place, units in enumerate((family_K.tolist(), ())):
            found = mean_interval(values, units, support=(-1.0, 1.0), seed=run, resamples=resamples)
            assert found.low is not None
            assert found.high is not None
            held[place] += found.low - 1e-12 <= KINDS[kind] <= found.high + 1e-12
    return held[0] / runs, held[1] / runs


def table(runs: int, resamples: int) -> Iterator[str]:
    """Yield the table."""
    yield "| gains | families | of size | correlation | covered | with scenarios as the unit |"
    yield "| --- | --- | --- | --- | --- | --- |"
    cells = [(n, size, shared, kind) for kind, n, size, shared in product(KINDS, FAMILIES, SIZES, SHARED)]
    with ProcessPoolExecutor(2) as pool:
        tasks = [pool.submit(cover, cell, runs, resamples) for cell in cells]
        for (n, size, shared, kind), task in zip(cells, tasks, strict=True):
            ours, plain = task.result()
            yield f"| {kind} | {n} | {size} | {shared:g} | {ours:.1%} | {plain:.1%} |"


def main(runs: int = 1000, resamples: int = 2000) -> None:
    """Print the table."""
    for line in table(runs, resamples):
        print(line, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
