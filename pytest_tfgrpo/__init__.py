"""pytest-tfgrpo: a pytest suite that learns without training a model. Names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tfgrpo.actors.openai.context import ToolContext
    from pytest_tfgrpo.actors.python import AgentContext
    from pytest_tfgrpo.api import arun, run
    from pytest_tfgrpo.cli.learn.capture_work import capture_work
    from pytest_tfgrpo.cli.live.open_live import open_live
    from pytest_tfgrpo.cli.loop.serving.open_policy import open_policy
    from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
    from pytest_tfgrpo.core.records import Frame, Rollout, Trajectory
    from pytest_tfgrpo.core.scenarios import Scenario
    from pytest_tfgrpo.engine.observers import Record
    from pytest_tfgrpo.gate.result import RuleResult
    from pytest_tfgrpo.gate.verdict import GateRule
    from pytest_tfgrpo.launch.result import RunResult, RunResults
    from pytest_tfgrpo.plugin.items.score_function import score
    from pytest_tfgrpo.plugin.run_warnings import TfgrpoWarning
    from pytest_tfgrpo.protocols import Actor, ActorCall, Optimizer, RewardBatch, Rewarder
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind
    from pytest_tfgrpo.suite.records import scenario

__version__ = "0.1.0"

_HOMES = {
    "Actor": "pytest_tfgrpo.protocols",
    "ActorCall": "pytest_tfgrpo.protocols",
    "AgentContext": "pytest_tfgrpo.actors.python",
    "AgentFailure": "pytest_tfgrpo.core.errors",
    "CheckKind": "pytest_tfgrpo.scoring.checks.protocol",
    "Frame": "pytest_tfgrpo.core.records",
    "GateRule": "pytest_tfgrpo.gate.verdict",
    "Optimizer": "pytest_tfgrpo.protocols",
    "ProviderError": "pytest_tfgrpo.core.errors",
    "Record": "pytest_tfgrpo.engine.observers",
    "RewardBatch": "pytest_tfgrpo.protocols",
    "Rewarder": "pytest_tfgrpo.protocols",
    "Rollout": "pytest_tfgrpo.core.records",
    "RuleResult": "pytest_tfgrpo.gate.result",
    "RunResult": "pytest_tfgrpo.launch.result",
    "RunResults": "pytest_tfgrpo.launch.result",
    "Scenario": "pytest_tfgrpo.core.records",
    "TfgrpoWarning": "pytest_tfgrpo.plugin.run_warnings",
    "ToolContext": "pytest_tfgrpo.actors.openai.context",
    "Trajectory": "pytest_tfgrpo.core.records",
    "arun": "pytest_tfgrpo.api",
    "capture_work": "pytest_tfgrpo.cli.learn.capture_work",
    "open_live": "pytest_tfgrpo.cli.live.open_live",
    "open_policy": "pytest_tfgrpo.cli.loop.serving.open_policy",
    "run": "pytest_tfgrpo.api",
    "scenario": "pytest_tfgrpo.suite.records",
    "score": "pytest_tfgrpo.plugin.items.score_function",
}

__all__ = [
    "Actor",
    "ActorCall",
    "AgentContext",
    "AgentFailure",
    "CheckKind",
    "Frame",
    "GateRule",
    "Optimizer",
    "ProviderError",
    "Record",
    "RewardBatch",
    "Rewarder",
    "Rollout",
    "RuleResult",
    "RunResult",
    "RunResults",
    "Scenario",
    "TfgrpoWarning",
    "ToolContext",
    "Trajectory",
    "__version__",
    "arun",
    "capture_work",
    "open_live",
    "open_policy",
    "run",
    "scenario",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        hint = importlib.import_module("pytest_tfgrpo.core.texts.named_values").nearest(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
