"""Acceptance against an optimizer that misleads with three of ten lessons: a short run of the misleading."""

from support import ROOT, benchmark

from pytest_tfgrpo.learning.library.library import empty

SHORT = {"epochs": 3, "group_size": 4, "eval_rollouts": 2, "baseline_sweep": "off"}


def test_few_misleading_lessons_are_in_force_at_the_end() -> None:
    misleading = benchmark("misleading")
    optimizer = misleading.MisleadingOptimizer()
    run = misleading.Bench(ROOT / "fixtures").run(3, empty(), changed=SHORT, optimizer=optimizer)
    assert len(optimizer.misleading) > 0.2 * optimizer.proposed
    in_force = [e.id in optimizer.misleading for e in run.library.experiences]
    assert len(in_force) > 20
    # 5 of 32; with acceptance off they are 12 of 41, and the final mean is 0.60 instead of 0.65.
    assert sum(in_force) < 0.2 * len(in_force)
    assert misleading.final_mean(run) > 0.62
