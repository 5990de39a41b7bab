"""How often a gate by domain is wrong when nothing changed: with and without Holm's correction.

Each simulated run has 8 domains of 24 scenarios with 3 rollouts, whose chances to pass (Beta(2, 1)) are those
of the baseline. Run it with ``python benchmarks/domain_gate.py [runs]``; docs/ci.md quotes it.
"""

from __future__ import annotations

import sys

import numpy as np

from pytest_tfgrpo.harness.gate.by_domain import corrected
from pytest_tfgrpo.harness.gate.rules import judge_difference
from pytest_tfgrpo.harness.metrics.comparison import Tally

DOMAINS, SCENARIOS, ROLLOUTS, MARGIN = 8, 24, 3, 0.05


def tallies(passes: np.ndarray, domain: str) -> dict[str, Tally]:
    """Return the tallies of one domain."""
    return {
        f"{domain}-{i}": Tally(stamp="s", n=ROLLOUTS, sum=float(x), sum_sq=float(x), errors=0, domain=domain)
        for i, x in enumerate(passes)
    }


def simulate(rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether a gate fails in a run where nothing changed: uncorrected, corrected."""
    sides = {}
    for domain in map(str, range(DOMAINS)):
        p = rng.beta(2, 1, SCENARIOS)
        before, after = rng.binomial(ROLLOUTS, p), rng.binomial(ROLLOUTS, p)
        sides[domain] = (tallies(before, domain), tallies(after, domain))
    found = {domain: judge_difference("baseline", *pair, MARGIN) for domain, pair in sides.items()}
    held = corrected(found, sides, MARGIN)
    return (
        any(result.outcome == "fail" for result in found.values()),
        any(result.outcome == "fail" for result in held),
    )


def main() -> None:
    """Print both rates of false alarms, each a chance per run."""
    runs, rng = int((sys.argv[1:] or ["400"])[0]), np.random.default_rng(1)
    uncorrected, held = np.mean([simulate(rng) for _ in range(runs)], axis=0)
    print(f"{runs} runs: false alarms {uncorrected:.4f} uncorrected, {held:.4f} after Holm (nominal: 0.025)")


if __name__ == "__main__":
    main()
