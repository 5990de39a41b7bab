"""Calls to actors, for the tests of this folder."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace


@pytest.fixture
def make_call(tmp_path: Path) -> Callable[..., ActorCall]:
    """Make a call whose workspace is ``<tmp_path>/work``."""

    def make(**changes: Any) -> ActorCall:
        fields: dict[str, Any] = {
            "task": Task(id="count-words", domain="text", prompt="How many words are in 'a b c'?"),
            "prompt": Prompt(system="Solve the task.", user="How many words are in 'a b c'?"),
            "temperature": 0.7,
            "seed": 2**62 + 1,
            "workspace": Workspace(tmp_path / "work"),
            "timeout_s": 100.0,
            "answer_max_bytes": 1000,
        }
        return ActorCall(**fields | changes)

    return make


@pytest.fixture
def ask(tmp_path: Path, make_call: Callable[..., ActorCall]) -> Callable[..., AttemptResult]:
    """Open an actor in `tmp_path` and ask it once, as the engine does."""

    def ask(spec: str, *, settings: Any = MappingProxyType({}), **changes: Any) -> AttemptResult:
        actor = open_actor(spec, root=tmp_path, settings=settings)
        return asyncio.run(attempt(actor, make_call(**changes)))

    return ask
