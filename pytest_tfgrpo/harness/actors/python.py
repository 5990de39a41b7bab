"""The ``python:<module>:<callable>`` actor: an agent inside this process, sync or async."""

from __future__ import annotations

import asyncio
import inspect
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import ActorError, AgentFailure, ProviderError, describe
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.core.text import TRACEBACK
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.actors.modules import import_module, stamps_of_sources
from pytest_tfgrpo.harness.actors.network import network_fault
from pytest_tfgrpo.harness.actors.output import read_trajectory
from pytest_tfgrpo.harness.protocols import ActorCall
from pytest_tfgrpo.harness.sandbox.threads import call_in_daemon
from pytest_tfgrpo.harness.sandbox.workspace import Workspace

TRACEBACK_CHARS = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentContext:
    """The only argument of your agent function: the input of one rollout."""

    prompt: Prompt
    """System and user text; ``str(prompt)`` joins them."""
    task: Task
    """The scenario without its checks."""
    temperature: float
    """In [0, 2]."""
    seed: int
    """In [0, 2**63); equal seeds and prompts should give equal answers."""
    folder: Workspace
    """Creates the folder of `workspace` on first use."""

    @property
    def scenario(self) -> Task:
        """The same as `task`, its name before 0.2."""
        return self.task

    @property
    def workspace(self) -> Path:
        """A private folder that contains the scenario's attachments."""
        return self.folder.path

    @property
    def tools(self) -> tuple[str, ...] | None:
        """Names of the allowed tools; None allows every tool of the agent."""
        return self.task.tools


class PythonActor:
    """Calls one Python callable per rollout: a coroutine on the loop, a plain function on its own thread.

    A plain function that never returns is given up at the time limit; its thread is a daemon, so that it
    cannot keep the process from ending. A coroutine must not block, as it shares the loop with the others.
    """

    def __init__(
        self, spec: str, function: Callable[[AgentContext], Any], identity: Mapping[str, Json]
    ) -> None:
        self.name = spec
        self.identity = identity
        declared = getattr(function, "paid", None)
        self.paid = bool(declared)
        self._free = declared is False
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object may have an async __call__
        )

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        context = AgentContext(
            prompt=call.prompt,
            task=call.task,
            temperature=call.temperature,
            seed=call.seed,
            folder=call.workspace,
        )
        started = time.perf_counter()
        try:
            value = await self._ask(context)
        except (AgentFailure, ProviderError):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise _crash(error) from error
        except (Exception, SystemExit) as error:  # an agent that calls sys.exit() must not end the loop
            raise _crash(error) from error
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        return read_trajectory(
            value, answer_max_bytes=call.answer_max_bytes, elapsed_ms=elapsed_ms, model="python"
        )

    async def _ask(self, context: AgentContext) -> Any:
        if self._is_async:
            return await self._function(context)

        def agent() -> Any:
            try:
                return self._function(context)
            except (AgentFailure, ProviderError):
                raise
            except BaseException as error:  # StopIteration and SystemExit cannot cross a future
                raise _crash(error) from error

        value = await call_in_daemon(agent)
        return await value if inspect.isawaitable(value) else value

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Return 0 US dollars for a callable with ``paid = False``, unknown otherwise."""
        return {"usd": 0.0 if self._free else None, "tokens": None}

    async def aclose(self) -> None:
        """Do nothing: the callable belongs to its module."""


def open_python(argument: str, root: Path) -> PythonActor:
    """Return the actor for ``<module>:<callable>``, looked for in `root` first; raises ActorError."""
    spec = f"python:{argument}"
    module_name, _, attribute = argument.partition(":")
    if not module_name or not attribute:
        raise ActorError(f"{spec!r} must have the form python:<module>:<callable>")
    module = import_module(module_name, root, spec)
    try:
        function = attrgetter(attribute)(module)
    except AttributeError:
        raise ActorError(f"{spec!r}: module {module_name!r} has no {attribute!r}") from None
    if not callable(function):
        raise ActorError(f"{spec!r}: {attribute!r} is {function!r}, not a callable")
    identity: dict[str, Json] = {"spec": spec}
    if sources := stamps_of_sources([module], root):
        (identity["sha256"],) = sources.values()
    return PythonActor(spec, function, identity)


def _crash(error: BaseException) -> AgentFailure | ProviderError:
    """Return the agent's failure with the end of its traceback, without this module's own frames.

    A network exception is the provider's, also where the agent wrapped it.
    """
    fault = network_fault(error)
    if fault is not None:
        source = "" if fault is error else f", from {describe(fault)}"
        return ProviderError(f"{describe(error)}{source}", "network")
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    lines = traceback.format_exception(type(error), error, frames)
    text = "".join(lines).strip()
    if len(text) > TRACEBACK_CHARS:
        text = f"{TRACEBACK}:\n  ...\n{text[-TRACEBACK_CHARS:]}"
    return AgentFailure(text, "crash")
