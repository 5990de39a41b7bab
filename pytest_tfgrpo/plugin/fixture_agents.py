"""Agents that fixtures make: they run on pytest's thread, where their fixtures were set up.

A connection of SQLite, a patched environment variable or the loop of an async fixture belong to that thread,
so rollouts of such an agent come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from pytest_tfgrpo.actors.agent_signature import why_no_agent
from pytest_tfgrpo.actors.python import AgentContext, PythonActor
from pytest_tfgrpo.core.errors import ProviderError, SettingError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.plugin.main_thread import ENDS, MainThreadCall
from pytest_tfgrpo.protocols import ActorCall

NAME = "fixtures"
"""How a run calls agents that fixtures make."""


Post: TypeAlias = Callable[[MainThreadCall], object]


def fixture_agent(name: str, function: Callable[[AgentContext], Any], post: Post) -> PythonActor:
    """Return the actor whose callable a fixture returned; `post` hands a call to pytest's thread.

    Fails the fixture if it is none.
    """
    if why := why_no_agent(function, getattr(function, "__qualname__", "the value"), ""):
        pytest.fail(f"the fixture {name!r} must return a callable agent: {why}", pytrace=False)

    async def run(agent: Callable[[], Any]) -> Any:
        call = MainThreadCall(agent)
        post(call)
        return await call.result

    return PythonActor(f"fixture:{name}", function, {}, run=run, ends=ENDS)


def broken_fixtures(reason: str) -> PythonActor:
    """Return an actor whose every call is an error: the fixtures of its rollout could not be set up."""

    async def fail(_context: AgentContext) -> str:
        raise ProviderError(reason, "fixture")

    return PythonActor(NAME, fail, {})


def skipped_fixtures() -> PythonActor:
    """Return an actor that answers nothing: a fixture of its rollout skips the scenario."""

    async def answer(_context: AgentContext) -> str:
        return ""

    return PythonActor(NAME, answer, {})


class OwnAgents:
    """Stands where a run has no actor: each of its scenarios has an agent that a fixture makes."""

    name = NAME
    paid = False

    def __init__(self, tests: Mapping[str, str]) -> None:
        """`tests` are the stamps of the test files by name: the agents are written there, or used there."""
        self.identity: Mapping[str, Json] = {"spec": NAME, "tests": dict(tests)}

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Never called."""
        raise SettingError(f"{call.task.id} has no agent of its own, and no actor is configured")

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Return that nothing is known of what a call may cost."""
        return {"usd": None, "tokens": None}

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""
