"""Measure what a run learns from production evidence, and what it does not learn from noise.

    python benchmarks/evidence.py [SEED ...] [--improved]

For each run seed (0 to 4): the offline agent makes four attempts at each of 96 train scenarios of the shipped
fixtures, whose true scores are the rewards, a tenth of them wrong. Runs of one evidence epoch and the final
sweep then learn from these, with the dev split deciding:

    true       the rewards as they are
    coin       a fifth of them drawn by a coin
    shuffled   the rewards of each task shuffled among its attempts
    all kept   shuffled, with `acceptance = off`
    asked      none: the agent is asked four times at each of the 96, and its answers scored without a mistake

With `--improved` half of the attempts are by an agent that has the lessons of an earlier run, as in
production after a first deployment. It prints the mean score before and after, over all eval scenarios
and over those of families that the evidence has (a third has none, and no lesson is about it; `asked` shows
what there is to gain), and whether the final sweep is shown to be worse; then the mean gains over the seeds
with their 95 % intervals.
"""

from __future__ import annotations

import argparse
import random
import statistics
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
from pytest_tfgrpo.core.records import Group, Rollout, Run
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.learning.library.library import save_library
from pytest_tfgrpo.metrics.comparison import Sweeps, compare

ROOT = Path(__file__).resolve().parent.parent
SEEDS = (0, 1, 2, 3, 4)
TASKS, ATTEMPTS = 96, 4
WRONG, COIN, TEMPERATURE = 0.1, 0.2, 0.3
NAMES = ("true", "coin", "shuffled", "all kept", "asked")
T975 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""97.5 % quantile of Student's t, by the number of values."""

Change = Callable[[Sequence[float], random.Random], Sequence[float]]


class Row(NamedTuple):
    """What one run gained on the eval split."""

    before: float
    after: float
    seen_before: float
    """Mean over the eval scenarios of families that the evidence has; the others no lesson is about."""
    seen_after: float
    is_worse: bool
    lessons: int

    @property
    def gain(self) -> float:
        return self.after - self.before

    @property
    def seen(self) -> float:
        return self.seen_after - self.seen_before


def made(seed: int, folder: Path, *, improved: bool) -> list[EvidenceGroup]:
    """Return attempts of the offline agent at train scenarios, with a tenth of their rewards wrong.

    With `improved` half of them are by the agent with the lessons of an earlier run, at the same tasks.
    """
    if not improved:
        return _merged([_collected(seed, folder, ATTEMPTS)], seed)
    earlier = tfgrpo.run(ROOT, ["fixtures"], actor="offline", seed=seed + 2000, out=str(folder / "earlier"))
    save_library(folder / "library.json", earlier.run.library)
    half = ATTEMPTS // 2
    runs = [_collected(seed, folder, half), _collected(seed, folder, half, str(folder / "library.json"))]
    return _merged(runs, seed)


def _collected(seed: int, folder: Path, attempts: int, library: str = "none") -> Run:
    """Return a run whose first epoch makes attempts at train scenarios."""
    return tfgrpo.run(
        ROOT,
        ["fixtures"],
        actor="offline",
        optimizer="none",
        seed=seed + 1000,
        epochs=2,
        eval_rollouts=1,
        group_size=attempts,
        sample_size=TASKS,
        temperature_train=TEMPERATURE,
        acceptance="off",
        lesson_dropout=0.0,
        baseline_sweep="off",
        limit=1,
        library=library,
        out=str(folder / "collected"),
    ).run


def _merged(runs: Sequence[Run], seed: int) -> list[EvidenceGroup]:
    """Return the attempts of some runs at each of their train scenarios."""
    wording = {scenario.id: scenario.wording for scenario in runs[0].scenarios}
    groups = {id_: [g for r in runs for g in r.phases[0].groups if g.scenario_id == id_] for id_ in wording}
    rng = random.Random(seed)
    return [_group(own, wording[id_], rng) for id_, own in groups.items() if own]


def _group(groups: Sequence[Group], prompt: str, rng: random.Random) -> EvidenceGroup:
    pairs = [pair for group in groups for pair in zip(group.rollouts, group.scores, strict=True)]
    attempts = tuple(_attempt(rollout, score.gt_score or 0.0, rng) for rollout, score in pairs)
    first = groups[0]
    return EvidenceGroup(id=first.scenario_id, domain=first.domain, prompt=prompt, attempts=attempts)


def _attempt(rollout: Rollout, score: float, rng: random.Random) -> EvidenceAttempt:
    steps = tuple(
        EvidenceStep(kind="tool", name=f.name, input=f.input, output=f.output, error=f.error)
        for f in rollout.frames
        if f.kind == "tool"
    )
    reward = 1 - score if rng.random() < WRONG else score
    return EvidenceAttempt(
        total_reward=reward, answer=rollout.answer, steps=steps, trajectory_id=f"{rollout.rollout_id}.a1"
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
    if name in CHANGES:
        file.write_text("".join(evidence_lines(EvidenceHeader(), changed(groups, CHANGES[name], seed))))
        settings |= {"evidence": str(file)}
    else:
        settings |= {"group_size": ATTEMPTS, "sample_size": TASKS, "temperature_train": TEMPERATURE}
    result = tfgrpo.run(
        ROOT,
        ["fixtures"],
        actor="offline",
        seed=seed,
        epochs=2,
        acceptance="off" if name == "all kept" else "safe",
        out=str(folder / "out"),
        task_id=f"{file.stem}",
        **settings,
    )
    return _row(result)


def _row(result: tfgrpo.RunResult) -> Row:
    """Return what a run gained over all eval scenarios, and over those of families with evidence."""
    run, gain = result.run, result.report["gain"]
    ends = None if gain is None else gain["ci95"]
    sweeps = Sweeps(run)
    found = compare(sweeps.rows_before, sweeps.rows_after)
    families = given_families(run.scenarios)
    trained = {families[s.id] for s in run.scenarios if s.split == "train" and s.family}
    seen = [
        (before, after)
        for id_, before, after in zip(found.ids, found.before_K, found.after_K, strict=True)
        if families[id_] in trained
    ]
    return Row(
        before=statistics.mean(found.before_K),
        after=statistics.mean(found.after_K),
        seen_before=statistics.mean(before for before, _ in seen),
        seen_after=statistics.mean(after for _, after in seen),
        is_worse=ends is not None and ends[1] < 0,
        lessons=len(run.library.experiences),
    )


def main() -> None:
    """Print the gains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seeds", nargs="*", type=int, default=SEEDS, metavar="SEED")
    parser.add_argument("--improved", action="store_true", help="half of the attempts by a better agent")
    arguments = parser.parse_args()
    rows: dict[str, list[Row]] = {name: [] for name in NAMES}
    with tempfile.TemporaryDirectory() as temporary:
        for seed in arguments.seeds:
            folder = Path(temporary) / str(seed)
            folder.mkdir()
            groups = made(seed, folder, improved=arguments.improved)
            rewards = [attempt.total_reward for group in groups for attempt in group.attempts]
            mean = statistics.mean(rewards)
            print(f"seed {seed}: {len(rewards)} attempts at {len(groups)} tasks, mean reward {mean:.2f}")
            for name in NAMES:
                row = learned(name, groups, seed, folder)
                rows[name].append(row)
                worse = ", shown worse" if row.is_worse else ""
                seen = f"{row.seen_before:.3f} to {row.seen_after:.3f}, {row.seen:+.3f}"
                print(
                    f"  {name:<10}{row.before:.3f} to {row.after:.3f}, gain {row.gain:+.3f}, "
                    f"of seen families {seen}; {row.lessons} lessons{worse}"
                )
                sys.stdout.flush()
    print()
    for name, found in rows.items():
        every = _mean([row.gain for row in found])
        print(f"{name:<10}gain {every}, of seen families {_mean([row.seen for row in found])}")


def _mean(gains: Sequence[float]) -> str:
    """Return the mean over seeds, with its 95 % interval by Student's t where there are several."""
    mean = statistics.mean(gains)
    if len(gains) < 2:
        return f"{mean:+.3f}"
    half = T975.get(len(gains), 2.0) * statistics.stdev(gains) / len(gains) ** 0.5
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


if __name__ == "__main__":
    main()
