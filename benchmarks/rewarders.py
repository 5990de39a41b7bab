"""Reward 100,000 rollouts (20,000 groups of 5, 3 checks each), against the same in plain Python loops.

    python benchmarks/rewarders.py [ROUNDS]

The peer computes ground truth, reward, rank and advantage group by group. Then whole runs of as many rollouts
by an agent that answers at once: without a further rewarder, with one that gives scores, with one that gives
each score a reason, and with one that gives four scores; what of their processor time the metrics take.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_tfgrpo.actors.python import AgentContext, PythonActor
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import CheckResult, Phase, Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.metrics import named
from pytest_tfgrpo.protocols import RewardBatch, Rewarder
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.scoring.rewarders.scoring import score

GROUPS, GROUP_SIZE, CHECKS = 20_000, 5, 3


def epoch() -> tuple[list[Rollout], dict[str, Scenario]]:
    """Return the rollouts of one seeded epoch and their scenarios."""
    rng = random.Random(0)
    checks = tuple(Check(kind="exact", weight=w) for w in (1.0, 2.0, 0.5))
    scenarios = {
        f"s{k}": Scenario(id=f"s{k}", domain="text", split="train", prompt="", checks=checks)
        for k in range(GROUPS)
    }
    rollouts = [
        Rollout(
            rollout_id=f"run.e1.s{k}.r{i}",
            group_id=f"run.e1.s{k}",
            run_id="run",
            scenario_id=f"s{k}",
            epoch=1,
            mode="train",
            index=i,
            seed=i,
            temperature=0.7,
            status="ok",
            checks=tuple(
                CheckResult(kind="exact", weight=c.weight, credit=float(rng.random() < 0.5)) for c in checks
            ),
        )
        for k in range(GROUPS)
        for i in range(GROUP_SIZE)
    ]
    return rollouts, scenarios


def plain(rollouts: Sequence[Rollout], scenarios: dict[str, Scenario]) -> list[Score]:
    """The peer: the same scores by loops over groups."""
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group_id, []).append(rollout)
    scores = []
    for members in groups.values():
        planned = sum(c.weight for c in scenarios[members[0].scenario_id].checks)
        rewards = [sum(c.weight * c.credit for c in r.checks) / planned for r in members]
        mean = sum(rewards) / len(rewards)
        std = math.sqrt(sum((own - mean) ** 2 for own in rewards) / len(rewards))
        for rollout, own in zip(members, rewards, strict=True):
            worse = sum(other < own for other in rewards)
            tied = sum(other == own for other in rewards) - 1
            scores.append(
                Score(
                    rollout_id=rollout.rollout_id,
                    gt_score=own,
                    reward=own,
                    relative_rank=(worse + tied / 2) / (len(rewards) - 1),
                    advantage=(own - mean) / std if max(rewards) > min(rewards) else 0.0,
                )
            )
    return scores


def median_s(call: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Plain:
    """Gives each rollout a score."""

    name, weight = "plain", 0.0

    def __call__(self, batch: RewardBatch) -> Any:
        """Return scores that differ between scenarios."""
        return np.fromiter((rollout.seed % 1009 / 1009 for rollout in batch.rollouts), dtype=np.float64)


class Told(Plain):
    """Gives each score a reason of its own."""

    name = "told"

    def __call__(self, batch: RewardBatch) -> Any:
        """Return pairs."""
        return [(r.seed % 1013 / 1013, f"the answer {r.answer!r} to {r.rollout_id}") for r in batch.rollouts]


class Parts(Plain):
    """Gives each rollout three scores, and their mean."""

    name = "parts"

    def __call__(self, batch: RewardBatch) -> Any:
        """Return mappings."""
        return [
            {"a": r.seed % 997 / 997, "b": r.seed % 991 / 991, "c": float(r.seed % 2)} for r in batch.rollouts
        ]


def answer(context: AgentContext) -> str:
    """Answer at once, right on half of the seeds."""
    return "3" if context.seed % 2 else "4"


def job(temporary: Path, rewarders: Sequence[Rewarder]) -> Job:
    """Return a job of one sweep over four domains; workspaces lie in `temporary`."""
    scenarios = tuple(
        Scenario(
            id=f"s{n}",
            domain=f"domain{n % 4}",
            split="eval",
            prompt=f"How many words has letter {n}?",
            checks=(Check(kind="exact", params={"value": "3"}),),
            stamp=stamp(n),
        )
        for n in range(GROUPS)
    )
    ids = tuple(scenario.id for scenario in scenarios)
    settings = {name: setting.default for name, setting in BY_NAME.items()}
    return Job(
        run_id="run",
        task_id="benchmark",
        started_at="2026-01-01T00:00:00Z",
        settings=settings | {"group_size": GROUP_SIZE},
        scenarios=scenarios,
        phases=(Phase(epoch=1, mode="eval", temperature=0.3, rollouts=GROUP_SIZE, scenarios=ids),),
        packs={},
        actor=PythonActor("python:benchmark:answer", answer, {}),
        optimizer=open_optimizer("heuristic"),
        kinds=KINDS,
        library=Library(hash="0" * 64),
        rewarders=tuple(rewarders),
        stamps={},
        versions={},
        budget=Budget(settings),
        temporary=temporary,
    )


def run_s(rewarders: Sequence[Rewarder]) -> tuple[float, float]:
    """Return processor seconds of a run with its report, and of computing the figures of its metrics once."""
    named.KNOWN_INTERVALS.clear()
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        run: Run = asyncio.run(
            Engine(job(Path(folder), rewarders), folder=Path(folder) / "out", observe=lambda _: None).run()
        )
        build(run, None)
        whole_s = time.process_time() - began
    named.KNOWN_INTERVALS.clear()
    began = time.process_time()
    named.SweepMetrics(run.phases[0].counted).figures({})
    return whole_s, time.process_time() - began


def main(rounds: int) -> None:
    """Print medians and ratios."""
    rollouts, scenarios = epoch()
    ours = median_s(lambda: score(rollouts, scenarios), rounds)
    peer = median_s(lambda: plain(rollouts, scenarios), rounds)
    print(f"rollouts            {len(rollouts):>9,}")
    print(f"rewarders, median   {ours:>9.3f} s   bar: < 1 s")
    print(f"plain loops, median {peer:>9.3f} s   {peer / ours:.1f}x")
    cases: dict[str, Sequence[Rewarder]] = {
        "no rewarder": (),
        "scores": (Plain(),),
        "with reasons": (Told(),),
        "four scores": (Parts(),),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, rewarders in cases.items():
            times[name].append(run_s(rewarders))
    bare = statistics.median(whole for whole, _ in times["no rewarder"])
    for name, found in times.items():
        whole, figures = (statistics.median(column) for column in zip(*found, strict=True))
        ratios = [one[0] / base[0] for one, base in zip(found, times["no rewarder"], strict=True)]
        print(
            f"run, {name:12} {whole:>8.1f} s of processor time, {whole / bare:.3f} of that without "
            f"({min(ratios):.3f} to {max(ratios):.3f}); figures of its metrics {figures:.2f} s, "
            f"{figures / whole:.1%}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
