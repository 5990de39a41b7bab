"""Arenas of optimizers whose gains are planted: how often what is said of them is right."""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.report.sentences import winner
from support.arena.results import arena_result, simulated

GAINS: Mapping[str, float] = {
    "none": 0.0,
    "placebo": 0.0,
    "weak": 0.1,
    "good": 0.2,
    "twin": 0.2,
    "strong": 0.3,
}
"""True gains: two pairs are equal, thirteen are not."""


def outcomes(seed: int, scenarios: int = 60, rollouts: int = 5) -> Counter[str]:
    """Return what one comparison of simulated scores said; see `judged`."""
    sides = simulated(GAINS, random.Random(seed), scenarios=scenarios, rollouts=rollouts)
    return judged(compare_sides(arena_result(sides)))


def judged(value: Mapping[str, Any]) -> Counter[str]:
    """Return what a comparison said, each 0 or 1, and of pairs by true difference how many were claimed.

    ``equal``: no two equal sides were called different. ``wrong way``: a better side was called worse.
    ``ordered``: the scores of all sides with different gains are in their true order. ``best``: the first
    sentence is about the best optimizer.
    """
    found = Counter[str]({"equal": 1, "ordered": 1})
    for pair in value["pairs"]:
        truth = round(GAINS[pair["after"]] - GAINS[pair["before"]], 2)
        claim = {"better": 1, "worse": -1}.get(pair["claim"], 0)
        if not truth:
            found["equal"] &= int(not claim)
            continue
        found[f"pairs {abs(truth):g}"] += 1
        found[f"claimed {abs(truth):g}"] += int(claim * truth > 0)
        found["wrong way"] |= int(claim * truth < 0)
        found["ordered"] &= int(pair["difference"]["difference"] * truth > 0)
    best = winner(value)
    found["best"] = int(best is not None and best["after"] == "strong")
    return found
