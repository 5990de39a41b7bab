"""pytest-tfgrpo: a pytest suite that learns without training a model. Names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
    from pytest_tfgrpo.core.records import Frame, Rollout, Scenario, Trajectory
    from pytest_tfgrpo.harness.actors.openai.context import ToolContext
    from pytest_tfgrpo.harness.actors.python import AgentContext
    from pytest_tfgrpo.harness.scoring.checks.protocol import CheckKind
    from pytest_tfgrpo.plugin.score import score

__version__ = "0.1.0"

_HOMES = {
    "AgentContext": "pytest_tfgrpo.harness.actors.python",
    "AgentFailure": "pytest_tfgrpo.core.errors",
    "CheckKind": "pytest_tfgrpo.harness.scoring.checks.protocol",
    "Frame": "pytest_tfgrpo.core.records",
    "ProviderError": "pytest_tfgrpo.core.errors",
    "Rollout": "pytest_tfgrpo.core.records",
    "Scenario": "pytest_tfgrpo.core.records",
    "ToolContext": "pytest_tfgrpo.harness.actors.openai.context",
    "Trajectory": "pytest_tfgrpo.core.records",
    "score": "pytest_tfgrpo.plugin.score",
}

__all__ = [
    "AgentContext",
    "AgentFailure",
    "CheckKind",
    "Frame",
    "ProviderError",
    "Rollout",
    "Scenario",
    "ToolContext",
    "Trajectory",
    "__version__",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
