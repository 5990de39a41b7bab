"""Measure what an arena finds of optimizers whose gains are planted: order, equals, power.

    python benchmarks/arena.py [--arenas 500] [--jobs 2] [--whole]

Each simulated arena has six sides: `none`, a placebo that gains nothing, a weak optimizer, two equal ones,
and a strong one. Scenarios come in families of 3, with 5 rollouts for each side. The table has, by number of
eval scenarios, in how many arenas no two equal sides were called different, some pair was called so the wrong
way round, all scores were in the true order, and the first sentence named the strong one; then how many of
the pairs that differ by so much were claimed.

Scores are drawn, and compared as the command compares them. With `--whole` each arena is the command itself:
optimizers whose lessons or system texts name their gains, a placebo of real lessons, and an agent that is as
good as its prompt says.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.arena.known_effects import outcomes
from support.arena.scripted_world import whole_outcomes

SIZES = (30, 60, 120)
DIFFERENCES = ("0.1", "0.2", "0.3")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arenas", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--whole", action="store_true", help="run the whole command in each arena")
    args = parser.parse_args()
    simulate = whole_outcomes if args.whole else outcomes
    shares = ("equal", "wrong way", "ordered", "best")
    print("| eval scenarios |", " | ".join([*shares, *DIFFERENCES]), "|")
    print("|", " | ".join(["---"] * (1 + len(shares) + len(DIFFERENCES))), "|")
    with ProcessPoolExecutor(args.jobs) as pool:
        for size in SIZES:
            found = Counter[str]()
            for counts in pool.map(partial(simulate, scenarios=size), range(args.arenas), chunksize=10):
                found.update(counts)
            cells = [found[name] / args.arenas for name in shares]
            cells += [found[f"claimed {d}"] / found[f"pairs {d}"] for d in DIFFERENCES]
            print(f"| {size} |", " | ".join(f"{cell:.1%}" for cell in cells), "|", flush=True)


if __name__ == "__main__":
    main()
