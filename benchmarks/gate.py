"""How often the gate is red, green or wrong, and how many rollouts it takes: by true drop, suite and looks.

Each simulated build passes a scenario with a chance from Beta(2, 1). A drop shifts all chances on the logit
scale (`spread`) or breaks some scenarios for good (`broken`). Seeds are stated. Run it with
``python benchmarks/gate.py [runs]``; docs/statistics.md and docs/ci.md quote it.
"""

from __future__ import annotations

import sys

import numpy as np

from pytest_tfgrpo.gate.difference import Bar, can_be_seen, judge_difference, share_level
from pytest_tfgrpo.gate.looks import ALPHA, SHARES, TIMES, Look, one_look
from pytest_tfgrpo.metrics.comparison import Tally

MARGIN, ALARM, FIRST = 0.05, 0.15, 3
DOMAINS, SCENARIOS = 8, 24
SEED = 2026


def tallies(passes_K: np.ndarray, rollouts: int, name: str = "s") -> dict[str, Tally]:
    """Return the tallies of scenarios of which each had so many rollouts."""
    return {
        f"{name}{i}": Tally(stamp="s", n=rollouts, sum=float(x), sum_sq=float(x), errors=0)
        for i, x in enumerate(passes_K)
    }


def worse(rng: np.random.Generator, p_K: np.ndarray, drop: float, how: str) -> np.ndarray:
    """Return the chances of a build whose mean over scenarios like these is lower by `drop`."""
    if not drop:
        return p_K
    if how == "broken":
        return np.where(rng.random(p_K.size) < drop / (2 / 3), 0.0, p_K)
    return 1 / (1 + np.exp(SHIFTS[drop]) * (1 / p_K - 1))


def _shift(drop: float) -> float:
    """Return the logit shift that lowers the mean of Beta(2, 1) by `drop`."""
    p = np.sqrt((np.arange(20_000) + 0.5) / 20_000)  # its quantiles
    low, high = 0.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.mean(p - 1 / (1 + np.exp(middle) * (1 / p - 1))) < drop else (low, middle)
        )
    return low


SHIFTS = {drop: _shift(drop) for drop in (MARGIN, ALARM)}


def decide(rng: np.random.Generator, before: dict[str, Tally], p_K: np.ndarray, bar: Bar) -> tuple[str, int]:
    """Return the answer of a gate that looks at most three times, and the rollouts of each scenario."""
    looks: list[Look] = []
    made, passes_K = 0, np.zeros(p_K.size)
    for times, share in zip(TIMES, SHARES, strict=True):
        passes_K = passes_K + rng.binomial(FIRST * times - made, p_K)
        made = FIRST * times
        looks.append(Look(tallies(passes_K, made), ALPHA * share, made))
        result = judge_difference("baseline", before, looks, bar)
        if result.outcome != "fail" or not can_be_seen(result):
            break
    return str(result.figures["answer"]), made


def row(n: int, reference: tuple[int, int], drop: float, how: str, runs: int) -> str:
    """Return one line of the table: shares of answers in percent, and the mean rollouts."""
    rng = np.random.default_rng([SEED, n, *reference, round(1000 * drop), how == "broken"])
    found, rollouts = [], []
    for _ in range(runs):
        p_K = rng.beta(2, 1, n)
        before = tallies(rng.binomial(reference[0] * reference[1], p_K), reference[0] * reference[1])
        answer, made = decide(rng, before, worse(rng, p_K, drop, how), Bar(margin=MARGIN, alarm=ALARM))
        found.append(answer)
        rollouts.append(made)
    shares = [
        f"{100 * found.count(answer) / runs:.1f}" for answer in ("not worse", "open", "worse", "unseen")
    ]
    cells = [
        str(n),
        f"{reference[0]} x {reference[1]}",
        f"{-drop:+.2f} {how}",
        *shares,
        f"{np.mean(rollouts):.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def by_domain(runs: int) -> str:
    """Return how often a gate over domains fails when nothing changed, uncorrected and corrected."""
    rng, failed = np.random.default_rng(1), np.zeros(2)
    for _ in range(runs):
        found = []
        for _ in range(DOMAINS):
            p = rng.beta(2, 1, SCENARIOS)
            before, after = (tallies(rng.binomial(FIRST, p), FIRST) for _ in range(2))
            found.append(judge_difference("baseline", before, one_look(after), Bar(margin=MARGIN)))
        failed += [any(r.outcome == "fail" for r in results) for results in (found, share_level(found))]
    return "{:.1f} % uncorrected, {:.1f} % with a shared level".format(*(100 * failed / runs))


def unchanged(runs: int, n: int, rollouts: int) -> float:
    """Return the share of red gates of an unchanged build whose scenarios have chances from .2 to .8."""
    rng = np.random.default_rng([SEED, n, rollouts])
    red = 0
    for _ in range(runs):
        p_K = rng.uniform(0.2, 0.8, n)
        answer, _ = decide(
            rng, tallies(rng.binomial(rollouts, p_K), rollouts), p_K, Bar(margin=MARGIN, alarm=ALARM)
        )
        red += answer in ("worse", "unseen")
    return red / runs


def main(runs: int) -> None:
    """Print the table, and the false alarms of a gate by domain."""
    print(f"{runs} runs a line, margin {MARGIN}, alarm {ALARM}, {FIRST} rollouts at first; percent:\n")
    print("| n | reference | drop | passed | open | worse | cannot see | rollouts |")
    print("|---|---|---|---|---|---|---|---|")
    for n in (20, 40, 100):
        for reference in ((3, 5), (1, 5)):
            for drop, how in (
                (0.0, ""),
                (MARGIN, "spread"),
                (MARGIN, "broken"),
                (ALARM, "spread"),
                (ALARM, "broken"),
            ):
                print(row(n, reference, drop, how, runs), flush=True)
    for rollouts in (5, 10, 15, 25):
        share = unchanged(runs, 40, rollouts)
        print(f"40 scenarios with chances from .2 to .8, baseline of {rollouts} rollouts: {share:.1%} red")
    print(f"\nby domain, nothing changed: {by_domain(runs)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 400)
