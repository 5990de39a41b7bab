"""Measure what misleading lessons do to a run, with acceptance and attribution on and off.

    python benchmarks/misleading.py [SEED ...]

The built-in optimizer learns from the shipped fixtures, and three of ten lessons that it proposes are
replaced by one for the same tasks that names another tool of the domain, with the evidence of the true one:
a teacher that is confidently wrong. Each run has a baseline sweep, EPOCHS - 1 epochs of training and a final
sweep, with group size 5. Optimizer and agent believe a lesson in force: a wrong one stays for long.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from learning_gain import ROOT, SEEDS, Bench

from pytest_tfgrpo.core.lessons import Experience, Operation
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, seed_of
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.learning.optimizer.wording import parse, phrase
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.protocols import LearningContext, Optimizer, Proposal

EPOCHS = 5
SHARE = 0.3
"""Of the proposed lessons, how many mislead."""
ON: Mapping[str, Json] = {}
OFF: Mapping[str, Json] = {"acceptance": "off", "lesson_dropout": 0.0}
CASES: Sequence[tuple[str, Mapping[str, Json], bool]] = (
    ("clean, on", ON, False),
    ("clean, off", OFF, False),
    ("misled, on", ON, True),
    ("acceptance alone", {"lesson_dropout": 0.0}, True),
    ("attribution alone", {"acceptance": "off"}, True),
    ("misled, off", OFF, True),
)
"""Name, settings, and whether the optimizer misleads."""


class MisleadingOptimizer:
    """The built-in optimizer with a share of its lessons turned into wrong ones."""

    name = "misleading"
    identity: Mapping[str, Json] = {"share": SHARE}

    def __init__(self) -> None:
        self._inner: Optimizer = open_optimizer("heuristic")
        self.proposed = 0
        self.misleading: set[str] = set()
        """Ids of the lessons replaced."""

    async def propose(self, context: LearningContext) -> Proposal:
        """Return the proposal of the built-in optimizer, some lessons replaced."""
        proposal = await self._inner.propose(context)
        tools = _tools(context)
        operations = tuple(self._turned(operation, context, tools) for operation in proposal.operations)
        return replace(proposal, operations=operations)

    def _turned(
        self, operation: Operation, context: LearningContext, tools: Mapping[str, Sequence[str]]
    ) -> Operation:
        lesson = operation.experience
        if lesson is None:
            return operation
        self.proposed += 1
        coin = seed_of("mislead", context.seed, context.epoch, lesson.summary32) / 2**SEED_BITS
        wrong = _wrong(lesson, tools[lesson.domain], context.seed + context.epoch) if coin < SHARE else None
        if wrong is None:
            return operation
        self.misleading.add(wrong.id)
        return replace(operation, experience=wrong)


def _tools(context: LearningContext) -> dict[str, list[str]]:
    """Return the names of the tools called in each domain, sorted."""
    found: dict[str, set[str]] = {}
    for group in context.groups:
        names = {frame.name for r in group.rollouts for frame in r.frames if frame.kind == "tool"}
        found.setdefault(group.domain, set()).update(names)
    return {domain: sorted(names) for domain, names in found.items()}


def _wrong(lesson: Experience, tools: Sequence[str], seed: int) -> Experience | None:
    """Return the lesson with advice to use another tool than the true one; None without one."""
    said = parse(lesson.summary32)
    others = [tool for tool in tools if tool not in lesson.summary32]
    if said is None or not others:
        return None
    tool = others[seed_of("tool", seed, lesson.summary32) % len(others)]
    text = phrase(said.terms, f"use {tool}")
    return replace(lesson, summary32=text, polarity="do")


def final_mean(run: Run) -> float:
    """Return the mean of the final sweep over its scenarios."""
    sweeps = Sweeps(run)
    assert sweeps.after is not None, run.reason
    return statistics.mean(row.mean(errors_as_zero=True) or 0.0 for row in sweeps.rows_after.values())


def measure(bench: Bench, seed: int, settings: Mapping[str, Json], *, misled: bool) -> tuple[float, int, int]:
    """Return the final mean, and how many of the lessons in force at the end mislead, of how many."""
    optimizer = MisleadingOptimizer() if misled else None
    run = bench.run(seed, empty(), changed={"epochs": EPOCHS, **settings}, optimizer=optimizer)
    wrong = optimizer.misleading if optimizer is not None else set()
    return final_mean(run), sum(e.id in wrong for e in run.library.experiences), len(run.library.experiences)


def main(arguments: Sequence[str]) -> None:
    """Print one line per seed and the means over them."""
    seeds = [int(argument) for argument in arguments] or list(SEEDS)
    bench = Bench(ROOT / "fixtures")
    print(f"final eval mean, and misleading lessons in force at the end; {EPOCHS} epochs, share {SHARE:.0%}")
    print("seed  " + "".join(f"{name:>20}" for name, _, _ in CASES))
    columns: list[list[float]] = [[] for _ in CASES]
    for seed in seeds:
        cells = []
        for column, (_, settings, misled) in zip(columns, CASES, strict=True):
            mean, wrong, lessons = measure(bench, seed, settings, misled=misled)
            column.append(mean)
            cells.append(f"{mean:.3f} ({wrong:>2} of {lessons:>2})")
        print(f"{seed:>4}  " + "".join(f"{cell:>20}" for cell in cells), flush=True)
    print("mean  " + "".join(f"{statistics.mean(column):>20.3f}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
