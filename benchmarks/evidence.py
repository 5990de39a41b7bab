"""Measure what a run learns from production evidence, and what it does not learn from noise.

    python benchmarks/evidence.py [SEED ...]

For each run seed (0 to 4): the offline agent makes four attempts at each of 96 train scenarios of the shipped
fixtures, whose true scores are the rewards, a tenth of them wrong. Runs of one evidence epoch and the final
sweep then learn from these, with the dev split deciding:

    true       the rewards as they are
    coin       a fifth of them drawn by a coin
    shuffled   the rewards of each task shuffled among its attempts
    all kept   shuffled, with `acceptance = off`

It prints the mean score before and after, the gain, whether the final sweep is shown to be worse, and over
the seeds the mean gain with its 95 % interval; beside it the bar.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.core.evidence import (
    EvidenceAttempt,
    EvidenceGroup,
    EvidenceHeader,
    EvidenceStep,
    evidence_lines,
)
from pytest_tfgrpo.core.records import Group, Rollout
from pytest_tfgrpo.numerics.stats import mean_interval

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (0, 1, 2, 3, 4)
TASKS, ATTEMPTS = 96, 4
WRONG, COIN, TEMPERATURE = 0.1, 0.2, 0.3
NAMES = ("true", "coin", "shuffled", "all kept")
BARS = {
    "true": "mean >= .35",
    "coin": "mean >= .2",
    "shuffled": "mean <= .2, none worse",
    "all kept": "upper bound <= .05",
}

Change = Callable[[Sequence[float], random.Random], Sequence[float]]


class Row(NamedTuple):
    """What one run gained on the eval split."""

    before: float
    after: float
    is_worse: bool
    lessons: int

    @property
    def gain(self) -> float:
        """The difference."""
        return self.after - self.before


def made(seed: int, folder: Path) -> list[EvidenceGroup]:
    """Return attempts of the offline agent at train scenarios, with a tenth of their rewards wrong."""
    collected = tfgrpo.run(
        ROOT,
        ["fixtures"],
        actor="offline",
        optimizer="none",
        seed=seed + 1000,
        epochs=2,
        eval_rollouts=1,
        group_size=ATTEMPTS,
        temperature_train=TEMPERATURE,
        sample_size=TASKS,
        acceptance="off",
        baseline_sweep="off",
        limit=1,
        out=str(folder / "collected"),
    )
    by_id = {scenario.id: scenario for scenario in collected.run.scenarios}
    rng = random.Random(seed)
    return [_group(group, by_id[group.scenario_id].wording, rng) for group in collected.run.phases[0].groups]


def _group(group: Group, prompt: str, rng: random.Random) -> EvidenceGroup:
    pairs = zip(group.rollouts, group.scores, strict=True)
    attempts = tuple(_attempt(rollout, score.gt_score or 0.0, rng) for rollout, score in pairs)
    return EvidenceGroup(id=group.scenario_id, domain=group.domain, prompt=prompt, attempts=attempts)


def _attempt(rollout: Rollout, score: float, rng: random.Random) -> EvidenceAttempt:
    steps = tuple(
        EvidenceStep(kind="tool", name=f.name, input=f.input, output=f.output, error=f.error)
        for f in rollout.frames
        if f.kind == "tool"
    )
    reward = 1 - score if rng.random() < WRONG else score
    return EvidenceAttempt(
        total_reward=reward, answer=rollout.answer, steps=steps, trajectory_id=rollout.trajectory_id
    )


def drawn(rewards: Sequence[float], rng: random.Random) -> Sequence[float]:
    """Return rewards of which a fifth is drawn by a coin."""
    return [float(rng.random() < 0.5) if rng.random() < COIN else reward for reward in rewards]


def shuffled(rewards: Sequence[float], rng: random.Random) -> Sequence[float]:
    """Return the rewards of a task, each of which may be that of another attempt."""
    return rng.sample(rewards, len(rewards))


CHANGES: dict[str, Change] = {
    "true": lambda rewards, _: rewards,
    "coin": drawn,
    "shuffled": shuffled,
    "all kept": shuffled,
}


def changed(groups: Sequence[EvidenceGroup], change: Change, seed: int) -> Iterator[EvidenceGroup]:
    """Yield groups with other rewards."""
    rng = random.Random(seed + 7)
    for group in groups:
        rewards = change([attempt.total_reward for attempt in group.attempts], rng)
        pairs = zip(group.attempts, rewards, strict=True)
        yield replace(group, attempts=tuple(replace(one, total_reward=reward) for one, reward in pairs))


def learned(name: str, groups: Sequence[EvidenceGroup], seed: int, folder: Path, **settings: Any) -> Row:
    """Return what a run learns from groups whose rewards are changed as `name` says."""
    file = folder / f"{name.replace(' ', '-')}-{seed}.jsonl"
    file.write_text("".join(evidence_lines(EvidenceHeader(), changed(groups, CHANGES[name], seed))))
    result = tfgrpo.run(
        ROOT,
        ["fixtures"],
        actor="offline",
        seed=seed,
        epochs=2,
        evidence=str(file),
        acceptance="off" if name == "all kept" else "safe",
        out=str(folder / "out"),
        task_id=f"{file.stem}",
        **settings,
    )
    gain = result.report["gain"]
    assert gain is not None
    assert gain["before"] is not None
    assert gain["after"] is not None
    ends = gain["ci95"]
    return Row(
        before=gain["before"],
        after=gain["after"],
        is_worse=ends is not None and ends[1] < 0,
        lessons=len(result.run.library.experiences),
    )


def main() -> None:
    """Print the gains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", nargs="*", type=int, default=SEEDS, metavar="SEED")
    seeds = parser.parse_args().seeds
    rows: dict[str, list[Row]] = {name: [] for name in NAMES}
    with tempfile.TemporaryDirectory() as temporary:
        for seed in seeds:
            groups = made(seed, Path(temporary) / str(seed))
            attempts = sum(len(group.attempts) for group in groups)
            print(f"seed {seed}: {attempts} attempts at {len(groups)} tasks")
            for name in NAMES:
                row = learned(name, groups, seed, Path(temporary))
                rows[name].append(row)
                worse = ", shown worse" if row.is_worse else ""
                print(
                    f"  {name:<10}{row.before:.3f} to {row.after:.3f}, gain {row.gain:+.3f}, "
                    f"{row.lessons} lessons{worse}"
                )
                sys.stdout.flush()
    print()
    for name, found in rows.items():
        gains = [row.gain for row in found]
        mean, ends = sum(gains) / len(gains), mean_interval(gains).ci95
        shown = "" if ends is None else f" ({ends[0]:+.3f} to {ends[1]:+.3f})"
        print(f"{name:<10}mean gain {mean:+.3f}{shown}; bar: {BARS[name]}")


if __name__ == "__main__":
    main()
