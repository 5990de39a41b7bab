"""Simulate the sequential gate: false alarms under constant looking, power, and rollouts saved; and its cost.

Run it with ``python benchmarks/sequential.py [runs]``; docs/statistics.md quotes its figures. The same
values are judged by the watch after every scenario, and by looking at the fixed 95 % interval after every
scenario from the tenth on, which shows why the watch is needed.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from pytest_tfgrpo.gate.sequential import Bars, Watch, WatchedReading, WatchedRule
from pytest_tfgrpo.metrics.comparison import Tally

SIZES = (40, 100, 400, 2000)
DIFFERENCES = (0.0, -0.05, -0.15, -0.3)
MARGIN = 0.05
CHANGED = 0.3
"""Share of the scenarios whose score changes, by 1 in either direction."""
FIRST_LOOK = 10
SEED = 2020
FEWER = {400: 4, 2000: 16}
"""By how much the number of runs is divided for larger sweeps."""


def draw(rng: np.random.Generator, n: int, difference: float) -> np.ndarray:
    """Return the differences of `n` scenarios like these, whose true mean is `difference`."""
    changed = max(CHANGED, -difference)
    chances = [(changed - difference) / 2, 1 - changed, (changed + difference) / 2]
    return rng.choice([-1.0, 0.0, 1.0], n, p=chances)


def fixed_set(rng: np.random.Generator, n: int, difference: float) -> np.ndarray:
    """Return `n` differences whose own mean is `difference` exactly, in random order."""
    values = np.zeros(n)
    changed = max(CHANGED, -difference)
    down = round(n * (changed - difference) / 2)
    values[:down] = -1.0
    values[down : down + round(down + n * difference)] = 1.0
    return rng.permutation(values)


def watched(values: np.ndarray) -> tuple[str, int]:
    """Return what the watch finds, and after how many scenarios."""
    ids = [str(i) for i in range(values.size)]
    reading = WatchedReading(dict.fromkeys(ids, 0.0), bar=MARGIN, share=1.0, difference=True)
    for n, (id_, value) in enumerate(zip(ids, values.tolist(), strict=True), 1):
        reading.feed(id_, value)
        if reading.finding != "open":
            return reading.finding, n
    return "open", values.size


def peeked(values: np.ndarray) -> tuple[str, int]:
    """Return what looking at the fixed interval after every scenario finds, and after how many."""
    n = np.arange(1, values.size + 1)
    mean = np.cumsum(values) / n
    spread = np.sqrt(np.maximum(np.cumsum(values**2) / n - mean**2, 1e-12) / np.maximum(n - 1, 1))
    passed, failed = mean - 1.96 * spread > -MARGIN, mean + 1.96 * spread < 0
    settled = np.flatnonzero((passed | failed) & (n >= FIRST_LOOK))
    if not settled.size:
        return "open", values.size
    first = int(settled[0])
    return "pass" if passed[first] else "fail", first + 1


def fixed(values: np.ndarray) -> str:
    """Return what one look at the end finds."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(values.size)
    return "pass" if values.mean() - half > -MARGIN else "fail" if values.mean() + half < 0 else "open"


def row(population: str, n: int, difference: float, runs: int) -> str:
    """Return one line of the table."""
    rng = np.random.default_rng([SEED, n, round(-1000 * difference), population == "set"])
    make = fixed_set if population == "set" else draw
    found = []
    for _ in range(runs):
        values = make(rng, n, difference)
        found.append((watched(values), peeked(values), fixed(values)))

    def share(which: int, outcome: str) -> str:
        hits = [(f[which][0] if which < 2 else f[which]) == outcome for f in found]
        return f"{100 * sum(hits) / runs:.1f} %"

    saved = 1 - np.mean([f[0][1] for f in found]) / n
    cells = [str(n), f"{difference:+.2f}", share(0, "fail"), share(0, "pass"), f"{100 * saved:.0f} %"]
    cells += [share(1, "fail"), share(1, "pass"), share(2, "fail"), share(2, "pass")]
    return "| " + " | ".join(cells) + " |"


def cost(n: int) -> str:
    """Return the time that the watch takes for each group of a sweep of `n`, errors on both sides."""
    rng = np.random.default_rng(SEED)

    def rows() -> dict[str, Tally]:
        return {
            str(i): Tally(stamp="s", n=3, sum=float(x), sum_sq=float(x), errors=int(i % 50 == 0))
            for i, x in enumerate(rng.integers(0, 4, n))
        }

    before, after = rows(), rows()
    rules = [WatchedRule(name, before, dict.fromkeys(before, "s"), bar=0.0, difference=True) for name in "ab"]
    watch = Watch(tuple(before), rules, Bars(needs_end="measured to the end"))
    worst, started = 0.0, time.perf_counter()
    for id_, tally in after.items():
        at = time.perf_counter()
        watch.feed({id_: tally})
        worst = max(worst, time.perf_counter() - at)
    mean = (time.perf_counter() - started) / max(watch.seen, 1)
    return f"| {n} | {watch.seen} | {1000 * mean:.2f} ms | {1000 * worst:.1f} ms |"


def main(runs: int) -> None:
    """Print the tables."""
    names = "n | difference | fails | passes | saved"
    head = f"| {names} | peeking fails | peeking passes | fixed fails | fixed passes |"
    for population, title in (("like", "scenarios like these"), ("set", "this set of scenarios")):
        print(f"True difference of {title}, {runs} runs (a quarter at n = 400, a 16th at 2000):")
        print(f"\n{head}\n|{'---|' * 9}")
        for n in SIZES:
            for difference in DIFFERENCES:
                print(row(population, n, difference, runs // FEWER.get(n, 1)), flush=True)
        print()
    print("| n | looked at | per group | worst |\n|---|---|---|---|")
    for n in (100, 1000, 20_000):
        print(cost(n), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2000)
