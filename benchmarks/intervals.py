"""Measure the intervals: how fast they are beside SciPy's, and how often they hold the truth.

    python benchmarks/intervals.py [--repeats 7]
    python benchmarks/intervals.py --coverage [--runs 2000] [--resamples 2000] [--jobs 2]
    python benchmarks/intervals.py --seeds [--runs 150] [--jobs 2]

Without ``--coverage``: medians of BCa intervals and sign-flip tests of 1,000 scenarios with 10,000 resamples,
and SciPy's on the same values in turns. With it: the share of simulated runs whose 95 % interval holds the
true mean, as a table of Markdown, for each kind of difference below and each number of scenarios. With
``--seeds``: that of the interval of a replication, over seeds and families of 3 scenarios, from the lowest to
the highest cell of `replicated`, and beside it that of the first seed alone.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from pytest_tfgrpo.numerics.replication import two_way_interval
from pytest_tfgrpo.numerics.stats import mean_interval, one_sided_p

Floats = npt.NDArray[np.float64]
SIZES = (8, 15, 25, 40, 60, 100, 400)
SCENARIOS, RESAMPLES = 1000, 10_000


def _after(rng: np.random.Generator, before: Floats) -> Floats:
    """Let 4 of 10 scenarios gain 0 to 60 % of what they lack, 1 of 10 lose 0 to 40 % of what they have."""
    kind, share = rng.random(before.size), rng.random(before.size)
    gained, lost = before + 0.6 * share * (1 - before), before * (1 - 0.4 * share)
    return np.where(kind < 0.4, gained, np.where(kind < 0.5, lost, before))


def shares(rng: np.random.Generator, n: int) -> Floats:
    """Draw differences of shares of 5 rollouts; chances are Beta(1.2, 1.2)."""
    before = rng.beta(1.2, 1.2, n)
    return (rng.binomial(5, _after(rng, before)) - rng.binomial(5, before)) / 5


def binary(rng: np.random.Generator, n: int) -> Floats:
    """Draw differences of single rollouts of the same scenarios."""
    before = rng.beta(1.2, 1.2, n)
    return (rng.binomial(1, _after(rng, before)) - rng.binomial(1, before)).astype(np.float64)


def touched(rng: np.random.Generator, n: int) -> Floats:
    """Draw 70 % zeros, as of scenarios that no lesson reaches, and gains of 0 to 5 of 5 rollouts."""
    return np.where(rng.random(n) < 0.7, 0.0, rng.binomial(5, 0.7, n) / 5)


def skewed(rng: np.random.Generator, n: int) -> Floats:
    """Draw exponential gains of mean 0.15, cut at 1."""
    return np.minimum(rng.exponential(0.15, n), 1.0)


def passes(rng: np.random.Generator, n: int) -> Floats:
    """Draw passed or failed, not paired: 90 % pass."""
    return (rng.random(n) < 0.9).astype(np.float64)


def drops(rng: np.random.Generator, n: int) -> Floats:
    """Draw flips of 2 % of the scenarios, all from passed to failed."""
    return -(rng.random(n) < 0.02).astype(np.float64)


def mixed(rng: np.random.Generator, n: int) -> Floats:
    """Draw flips of 2 % of the scenarios, 1.4 % up and 0.6 % down."""
    draw = rng.random(n)
    return np.where(draw < 0.014, 1.0, np.where(draw < 0.02, -1.0, 0.0))


def level(rng: np.random.Generator, n: int) -> Floats:
    """Draw flips of 2 % of the scenarios, as many up as down: the truth is 0."""
    return mixed(rng, n) * np.where(rng.random(n) < 0.5, 1.0, -1.0)


def jumps(rng: np.random.Generator, n: int) -> Floats:
    """Draw differences of shares of 5 rollouts: chances of 0.97 and 0.05, of which 12 % go up to 0.97."""
    before = np.where(rng.random(n) < 0.6, 0.97, 0.05)
    after = np.where(rng.random(n) < 0.12, 0.97, before)
    return (rng.binomial(5, after) - rng.binomial(5, before)) / 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of values over scenarios."""

    draw: Callable[[np.random.Generator, int], Floats]
    mean: float
    """The truth, exactly."""
    support: tuple[float, float] = (-1.0, 1.0)
    rare: bool = False
    """So few values differ that coverage is reported as measured."""


KINDS: Mapping[str, Kind] = {
    "shares of 5 rollouts": Kind(draw=shares, mean=0.4 * 0.3 * 0.5 - 0.1 * 0.2 * 0.5),
    "binary": Kind(draw=binary, mean=0.4 * 0.3 * 0.5 - 0.1 * 0.2 * 0.5),
    "3 of 10 touched": Kind(draw=touched, mean=0.3 * 0.7),
    "skewed": Kind(draw=skewed, mean=0.15 * -math.expm1(-1 / 0.15)),
    "passes, 90 %": Kind(draw=passes, mean=0.9, support=(0.0, 1.0)),
    "flips, 2 % down": Kind(draw=drops, mean=-0.02, rare=True),
    "flips, 1.4 % up, 0.6 % down": Kind(draw=mixed, mean=0.008, rare=True),
    "flips, 1 % up, 1 % down": Kind(draw=level, mean=0.0, rare=True),
    "noise, 5 % jump": Kind(draw=jumps, mean=0.4 * 0.12 * 0.92, rare=True),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What the intervals of one kind and size did."""

    kind: str
    n: int
    covered: float
    """Share of runs whose interval holds the truth."""
    above: float
    """Share whose interval lies above the truth."""
    below: float
    width: float
    """Median."""
    methods: Mapping[str, float]


def cover(name: str, n: int, runs: int, resamples: int) -> Cell:
    """Return what the intervals of `runs` samples of one kind and size do."""
    kind = KINDS[name]
    above = below = 0
    widths, methods = [], Counter[str]()
    for run in range(runs):
        values = kind.draw(np.random.default_rng([run, n, list(KINDS).index(name)]), n)
        found = mean_interval(values, support=kind.support, seed=run, resamples=resamples)
        assert found.low is not None
        assert found.high is not None
        low, high = found.low - 1e-12, found.high + 1e-12
        above += low > kind.mean
        below += high < kind.mean
        widths.append(high - low)
        methods[found.method] += 1
    return Cell(
        kind=name,
        n=n,
        covered=1 - (above + below) / runs,
        above=above / runs,
        below=below / runs,
        width=statistics.median(widths),
        methods={method: count / runs for method, count in methods.most_common()},
    )


def coverage(runs: int, resamples: int, jobs: int) -> Iterator[str]:
    """Yield the table of coverage."""
    yield "| values | scenarios | covered | too high | too low | median width | methods |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    wrong: list[str] = []
    with ProcessPoolExecutor(jobs) as pool:
        tasks = [pool.submit(cover, name, n, runs, resamples) for name in KINDS for n in SIZES]
        for task in tasks:
            cell = task.result()
            methods = ", ".join(f"{method} {share:.0%}" for method, share in cell.methods.items())
            yield (
                f"| {cell.kind} | {cell.n} | {cell.covered:.1%} | {cell.above:.1%} | {cell.below:.1%} "
                f"| {cell.width:.3f} | {methods} |"
            )
            if cell.n >= 40 and not KINDS[cell.kind].rare and not 0.93 <= cell.covered <= 0.97:
                wrong.append(f"{cell.kind} at {cell.n}: {cell.covered:.1%}")
    yield ""
    yield f"outside 93 to 97 % with 40 and more: {'; '.join(wrong) or 'none'}"


def replicated(rng: np.random.Generator, kind: str, seeds: int, families: int, spread: float) -> Floats:
    """Draw the gains of seeds and scenarios; `spread` says how much seeds differ.

    normal: the family, the seed, both together, and noise, with a mean of 0.1. learned: half of the families
    can be learned, each seed learns some of them, and the others have the noise of 5 rollouts.
    """
    family_K = np.repeat(np.arange(families), 3)
    if kind == "normal":
        shared = 0.2 * rng.normal(size=(1, families)) + 0.2 * rng.normal(size=(seeds, families))
        own = 0.15 * rng.normal(size=(seeds, family_K.size))
        return (0.1 + spread * rng.normal(size=(seeds, 1)) + shared[:, family_K] + own).clip(-1, 1)
    chance_S = (0.6 + 2 * spread * rng.uniform(-1, 1, (seeds, 1))).clip(0, 1)
    learned = (rng.random((seeds, families)) < chance_S) & (rng.random(families) < 0.5)
    before, after = rng.binomial(5, 0.3, (2, seeds, family_K.size)) / 5
    return np.where(learned[:, family_K], 0.7, after - before)


def cover_seeds(cell: tuple[int, int, str, float], runs: int) -> tuple[float, float]:
    """Return the share of replications whose interval holds the true mean, and of first seeds alone."""
    families, seeds, kind, spread = cell
    truth = 0.1 if kind == "normal" else 0.7 * 0.5 * 0.6
    family_K = np.repeat(np.arange(families), 3).tolist()
    held = [0, 0]
    for run in range(runs):
        rng = np.random.default_rng([run, *map(ord, repr(cell))])
        gains_SK = replicated(rng, kind, seeds, families, spread)
        found = two_way_interval(gains_SK, family_K, seed=run)
        alone = mean_interval(gains_SK[0], family_K, support=(-1.0, 1.0), seed=run)
        for place, (low, high) in enumerate(((found.low, found.high), (alone.low, alone.high))):
            held[place] += low is not None and high is not None and low <= truth <= high
    return held[0] / runs, held[1] / runs


def over_seeds(runs: int, jobs: int) -> Iterator[str]:
    """Yield the table of the coverage of replications."""
    sizes, numbers = (8, 20, 40), (3, 5, 10)
    cells = [
        (families, seeds, kind, spread)
        for seeds, families, kind, spread in product(numbers, sizes, ("normal", "learned"), (0.0, 0.05, 0.15))
    ]
    with ProcessPoolExecutor(jobs) as pool:
        found = dict(zip(cells, pool.map(cover_seeds, cells, [runs] * len(cells)), strict=True))
    yield f"{runs} runs a cell; share of intervals that hold the truth, %; in brackets of one seed alone"
    yield "| seeds | " + " | ".join(f"{n} families" for n in sizes) + " |"
    yield "| --- |" + " --- |" * len(sizes)
    for seeds in numbers:
        row = []
        for families in sizes:
            own = [value for cell, value in found.items() if cell[:2] == (families, seeds)]
            (low, high), (least, most) = ((100 * min(v), 100 * max(v)) for v in zip(*own, strict=True))
            row.append(f"{low:.1f} to {high:.1f} ({least:.1f} to {most:.1f})")
        yield f"| {seeds} | " + " | ".join(row) + " |"


def speed(repeats: int) -> Iterator[str]:
    """Yield medians of our and SciPy's intervals and tests of the same values, taken in turns."""
    import scipy.stats

    rng = np.random.default_rng(0)
    samples = {"continuous": rng.normal(0.05, 0.2, SCENARIOS).clip(-1, 1), "shares": shares(rng, SCENARIOS)}
    yield f"{SCENARIOS:,} scenarios, {RESAMPLES:,} resamples, median of {repeats}   ours    SciPy   ratio"
    for name, values in samples.items():
        pairs = {
            "BCa interval": (
                lambda x=values: mean_interval(x, support=(-1, 1), resamples=RESAMPLES),
                lambda x=values: scipy.stats.bootstrap((x,), np.mean, n_resamples=RESAMPLES, method="BCa"),
            ),
            "sign-flip p": (
                lambda x=values: one_sided_p(x, resamples=RESAMPLES),
                lambda x=values: scipy.stats.permutation_test(
                    (x,), np.mean, permutation_type="samples", n_resamples=RESAMPLES, alternative="greater"
                ),
            ),
        }
        for what, (ours, theirs) in pairs.items():
            times = [(_seconds(ours), _seconds(theirs)) for _ in range(repeats)]
            own, other = (statistics.median(column) for column in zip(*times, strict=True))
            yield f"{what + ' of ' + name:<50}{own:8.3f}{other:9.3f}{other / own:8.1f}"


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print speed, or coverage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--runs", type=int, help="default: 2000, with --seeds 150")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.seeds:
        lines = over_seeds(options.runs or 150, options.jobs)
    elif options.coverage:
        lines = coverage(options.runs or 2000, options.resamples, options.jobs)
    else:
        lines = speed(options.repeats)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
