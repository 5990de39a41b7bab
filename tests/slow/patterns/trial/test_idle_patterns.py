"""Simulated trials of patterns that do nothing: how often they pass for help."""

from __future__ import annotations

import random

from support.sweeps import make_run

from pytest_tfgrpo.patterns.trial.verdict import verdict

TRIALS = 2_000


def test_of_idle_patterns_at_most_one_in_25_is_said_to_help() -> None:
    rng = random.Random(7)
    found = []
    for _ in range(TRIALS):
        chances = {f"s{n}": rng.random() for n in range(rng.randint(10, 24))}
        rollouts = rng.randint(1, 4)
        before, after = (
            {id_: [float(rng.random() < p) for _ in range(rollouts)] for id_, p in chances.items()}
            for _ in range(2)
        )
        found.append(verdict(make_run(None, before), make_run(None, after, run_id="other")).outcome)
    assert found.count("helps") <= TRIALS * 0.04
    assert found.count("harms") <= TRIALS * 0.04
