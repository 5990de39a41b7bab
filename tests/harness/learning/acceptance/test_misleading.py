"""Acceptance against an optimizer that misleads with three of ten lessons: a short run of the benchmark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from support import ROOT

from pytest_tfgrpo.harness.learning.library.library import empty

SHORT = {"epochs": 3, "group_size": 4, "eval_rollouts": 2, "baseline_sweep": "off"}


@pytest.fixture
def benchmark() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import misleading

        yield misleading
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_few_misleading_lessons_are_in_force_at_the_end(benchmark: ModuleType) -> None:
    optimizer = benchmark.MisleadingOptimizer()
    run = benchmark.Bench(ROOT / "fixtures").run(3, empty(), changed=SHORT, optimizer=optimizer)
    assert len(optimizer.misleading) > 0.2 * optimizer.proposed
    in_force = [e.id in optimizer.misleading for e in run.library.experiences]
    assert len(in_force) > 20
    # 12 of 100; with acceptance off they are 34 of 100, and the final mean is 0.72 instead of 0.79.
    assert sum(in_force) < 0.2 * len(in_force)
    assert benchmark.final_mean(run) > 0.75
