"""A workspace, and a way to load a check and judge an answer with it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.records import CheckResult, Frame
from pytest_tfgrpo.core.scenarios import Check, Task
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.suite.scenario import build_scenario


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the scenario file."""
    path = tmp_path / "fixtures"
    path.mkdir()
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return the workspace as the agent left it."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def load(folder: Path) -> Callable[..., Check]:
    """Load a check as it would stand in a scenario file."""

    def load(kind: str, **params: Any) -> Check:
        data = {"id": "a", "prompt": "p", "checks": [{"kind": kind, **params}]}
        return build_scenario(data, source="x:1", checker=None, folder=folder).checks[0]

    return load


@pytest.fixture
def judge(load: Callable[..., Check], workspace: Path) -> Callable[..., CheckResult]:
    """Load a check and judge an attempt with it."""

    def judge(
        kind: str,
        answer: str = "",
        frames: Sequence[Frame] = (),
        took_ms: float | None = None,
        **params: Any,
    ) -> CheckResult:
        context = CheckContext(
            answer=answer,
            frames=tuple(frames),
            workspace=Workspace(workspace, left=True),
            task=Task(id="a", domain="d", prompt="p"),
            latency_ms=took_ms,
        )
        (result,) = evaluate([load(kind, **params)], context, KINDS)
        assert result.passed == (result.reason == "")
        return result

    return judge
