"""The ``python:<module>:<callable>`` actor: an agent inside this process, sync or async."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_tfgrpo.actors.agent_signature import why_no_agent
from pytest_tfgrpo.actors.modules import import_module, meant, stamps_of_sources
from pytest_tfgrpo.actors.network import network_fault
from pytest_tfgrpo.actors.output import read_trajectory
from pytest_tfgrpo.actors.spans.agent_spans import UNUSED, AgentSpans
from pytest_tfgrpo.core.errors import TIMEOUT, ActorError, AgentFailure, ProviderError, describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.texts.tracebacks import traceback_text
from pytest_tfgrpo.core.wire.stamp import combined_stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.sandbox.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSession:
    """The conversation that a call of your agent function belongs to; of one question the only turn."""

    turn: int
    """From 1."""
    message: str
    """What the user says now."""
    messages: tuple[Mapping[str, str], ...]
    """All that was said, this message last, each with `role` (``user`` or ``assistant``) and `content`."""
    state: dict[str, Any]
    """Empty at first; what you put there is there in the next turn of the same rollout."""


class ToolNames(tuple[str, ...]):
    """Names of the tools that a scenario allows; they are the agent's own, which has to call them itself."""

    unlimited: bool
    """Whether the scenario allows every tool, as it has no `tools`."""

    def __new__(cls, names: Sequence[str] | None) -> ToolNames:
        """None allows every tool."""
        made = super().__new__(cls, names or ())
        made.unlimited = names is None
        return made

    def __contains__(self, name: object) -> bool:
        """Return whether the agent may use a tool."""
        return self.unlimited or super().__contains__(name)

    def __getitem__(self, key: Any) -> Any:
        """Return a name by its place; raises TypeError for a name, as its tool is nothing that we have."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        allowed = f"`tools` of the scenario allows {', '.join(self) or 'none'}"
        if self.unlimited:
            allowed = "the scenario has no `tools`, which allows all"
        raise TypeError(
            f"context.tools[{short(key)}]: context.tools has names, and your agent has the tools: call its "
            f"own function of that name; {allowed}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentContext:
    """The only argument of your agent function: the input of a rollout, or of one turn of a conversation."""

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
    session: AgentSession
    """What was said before; `prompt` has it as text."""

    @property
    def scenario(self) -> Task:
        """The same as `task`, its name before 0.2."""
        return self.task

    @property
    def workspace(self) -> Path:
        """A private folder that contains the scenario's attachments."""
        return self.folder.path

    @property
    def tools(self) -> ToolNames:
        """Names of the tools that the scenario allows; each is in it where the scenario names none."""
        return ToolNames(self.task.tools)

    if not TYPE_CHECKING:  # a type checker still finds what there is not

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with the names that there are."""
            known = ", ".join(one for one in dir(type(self)) if not one.startswith("_"))
            raise AttributeError(f"'AgentContext' object has no attribute {name!r}; it has {known}")


class PythonActor:
    """Calls one Python callable per rollout: a coroutine on the loop, a plain function on its own thread.

    A plain function that never returns is given up at the time limit; its thread is a daemon, so that it
    cannot keep the process from ending. A coroutine must not block, as it shares the loop with the others.
    """

    def __init__(
        self,
        spec: str,
        function: Callable[[AgentContext], Any],
        identity: Mapping[str, Json],
        *,
        run: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
        ends: tuple[type[BaseException], ...] = (),
    ) -> None:
        """`run` calls a function somewhere else than on a thread of its own, and awaits what it returns.

        Exceptions of the types `ends` reach `run` as they are: they end the process, and are no crash.
        """
        self._run = run
        self._passing: tuple[type[BaseException], ...] = (AgentFailure, ProviderError, *ends)
        self.name = spec
        self.identity = identity
        declared = getattr(function, "paid", None)
        self.paid = bool(declared)
        self._free = declared is False
        self._function = function
        self.crashes: dict[tuple[str, int], TracebackType | None] | None = None
        """Where set, tracebacks of what the function raised, by scenario and seed, for a debugger."""
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object may have an async __call__
        )

    converses = True

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        return await self.open_session(call).answer(call.prompt.user)

    def open_session(self, call: ActorCall) -> PythonSession:
        """Return a conversation: the function is called once for each turn."""
        return PythonSession(self, call)

    async def call(self, call: ActorCall, prompt: Prompt, session: AgentSession) -> Trajectory:
        """Return what the function makes of one turn."""
        context = AgentContext(
            prompt=prompt,
            task=call.task,
            temperature=call.temperature,
            seed=call.seed,
            folder=call.workspace,
            session=session,
        )
        spans = AgentSpans(call)
        started = time.perf_counter()
        try:
            value = await self._ask(context, spans)
            elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
            made = read_trajectory(
                value,
                answer_max_bytes=call.answer_max_bytes,
                elapsed_ms=elapsed_ms,
                model="python",
                spans=spans.frames,
            )
        except (AgentFailure, ProviderError) as fault:
            fault.frames = fault.frames or spans.frames()
            self._note(call, fault.__cause__)
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise _crash(error, spans.frames()) from error
            if frames := spans.frames():
                raise AgentFailure(f"no answer within {call.timeout_s:g} s", TIMEOUT, frames=frames) from None
            raise
        except (Exception, SystemExit) as error:  # an agent that calls sys.exit() must not end the loop
            self._note(call, error)
            raise _crash(error, spans.frames()) from error
        finally:
            spans.close()
        return replace(made, extra={**made.extra, UNUSED: dict(spans.unused)}) if spans.unused else made

    def _note(self, call: ActorCall, error: BaseException | None) -> None:
        if self.crashes is not None and error is not None:
            self.crashes[call.task.id, call.seed] = error.__traceback__

    async def _ask(self, context: AgentContext, spans: AgentSpans) -> Any:
        with spans.around():
            if self._is_async and self._run is None:
                return await self._function(context)

            def agent() -> Any:
                try:
                    return self._function(context)
                except self._passing:
                    raise
                except BaseException as error:  # StopIteration and SystemExit cannot cross a future
                    raise _crash(error) from error

            if self._run is not None:
                return await self._run(lambda: spans.call(agent))
            value = await call_in_daemon(agent)
            return await value if inspect.isawaitable(value) else value

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Return 0 US dollars for a callable with ``paid = False``, unknown otherwise."""
        return {"usd": 0.0 if self._free else None, "tokens": None}

    async def aclose(self) -> None:
        """Do nothing: the callable belongs to its module."""


class PythonSession:
    """Remembers what was said, and the agent's state."""

    def __init__(self, actor: PythonActor, call: ActorCall) -> None:
        self._actor = actor
        self._call = call
        self._said: list[Mapping[str, str]] = []
        self._state: dict[str, Any] = {}

    async def answer(self, message: str) -> Trajectory:
        """Call the function; a prompt that is all an agent looks at has what was said before, too."""
        self._said.append({"role": "user", "content": message})
        turn = AgentSession(
            turn=(len(self._said) + 1) // 2, message=message, messages=tuple(self._said), state=self._state
        )
        prompt = self._call.prompt
        if turn.turn > 1:
            prompt = Prompt(system=prompt.system, user=_transcript(self._said))
        trajectory = await self._actor.call(self._call, prompt, turn)
        self._said.append({"role": "assistant", "content": trajectory.answer})
        return trajectory

    async def aclose(self) -> None:
        """Forget the conversation."""
        self._state = {}


def _transcript(said: Sequence[Mapping[str, str]]) -> str:
    """Return a conversation as one text, the last message of the user at its end."""
    names = {"user": "User", "assistant": "Assistant"}
    return "\n\n".join(f"{names[one['role']]}: {one['content']}" for one in said)


def open_python(argument: str, root: Path) -> PythonActor:
    """Return the actor for ``<module>:<callable>``, looked for in `root` first; raises ActorError."""
    spec = f"python:{argument}"
    module_name, _, attribute = argument.partition(":")
    if not module_name or not attribute:
        hint = meant(*argument.rpartition(".")[::2], root) if "." in argument else ""
        raise ActorError(f"{spec!r} must have the form python:<module>:<callable>{hint}")
    module = import_module(module_name, root, spec)
    try:
        function = attrgetter(attribute)(module)
    except AttributeError:
        hint = nearest(attribute, [name for name in vars(module) if not name.startswith("_")])
        raise ActorError(f"{spec!r}: module {module_name!r} has no {attribute!r}{hint}") from None
    if why := why_no_agent(function, attribute, spec):
        raise ActorError(f"{spec!r}: {why}")
    identity: dict[str, Json] = {"spec": spec}
    if sources := stamps_of_sources(module, [function], root):
        identity["sha256"] = combined_stamp(sources.values()) if len(sources) > 1 else min(sources.values())
    return PythonActor(spec, function, identity)


def _crash(error: BaseException, calls: tuple[Frame, ...] = ()) -> AgentFailure | ProviderError:
    """Return the agent's failure with the end of its traceback, without this module's own frames.

    `calls` are what the agent did until then. A network exception is the provider's, also where the agent
    wrapped it.
    """
    fault = network_fault(error)
    if fault is not None:
        source = "" if fault is error else f", from {describe(fault)}"
        return ProviderError(f"{describe(error)}{source}", "network", frames=calls)
    return AgentFailure(traceback_text(error, __file__), "crash", frames=calls)
