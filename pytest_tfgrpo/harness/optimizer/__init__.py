"""Optimizers: from the scored groups of an epoch to operations on the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harness.optimizer.heuristic import HeuristicOptimizer
from pytest_tfgrpo.harness.optimizer.none import NoOptimizer
from pytest_tfgrpo.harness.optimizer.protocol import LearningContext, Optimizer, Proposal

__all__ = ["LearningContext", "Optimizer", "Proposal", "open_optimizer"]

OPTIMIZERS: Mapping[str, Callable[[], Optimizer]] = {"heuristic": HeuristicOptimizer, "none": NoOptimizer}


def open_optimizer(spec: str) -> Optimizer:
    """Return the optimizer called `spec`; raises SettingError."""
    if spec not in OPTIMIZERS:
        raise SettingError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, not {spec!r}")
    return OPTIMIZERS[spec]()
