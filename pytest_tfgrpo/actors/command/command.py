"""The ``command:<argv>`` actor: any program, called over stdin and stdout in its own process session."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.actors.command.command_input import check_placeholders, fill, stdin_of
from pytest_tfgrpo.actors.command.command_output import frames_in, trajectory_of
from pytest_tfgrpo.actors.command.command_session import CommandSession
from pytest_tfgrpo.actors.command.running_program import TERM_GRACE_S, RunningProgram
from pytest_tfgrpo.actors.events.registry import EVENTS
from pytest_tfgrpo.actors.output import total_max_bytes
from pytest_tfgrpo.actors.program_path import program_path
from pytest_tfgrpo.actors.spans.agent_spans import UNUSED
from pytest_tfgrpo.actors.spans.program_spans import ProgramSpans
from pytest_tfgrpo.core.errors import TIMEOUT, ActorError, AgentFailure, ProviderError, RolloutFault
from pytest_tfgrpo.core.keys.list_values import variables
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.settings.agents import COMMAND_OUTPUT
from pytest_tfgrpo.core.settings.permissions import SANDBOX, SANDBOX_ENV
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.programs.bubblewrap import Sandbox
from pytest_tfgrpo.sandbox.programs.environment_variables import with_environment
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.programs.programs import started, without_shims
from pytest_tfgrpo.sandbox.programs.sandbox_settings import open_sandbox

MARGIN_S = 2 * TERM_GRACE_S
MARGIN_SHARE = 0.1
"""An agent has so much less than the engine's time limit, at which nothing would be known of what it did."""
OWN_EVENTS = "frames"
"""The format of programs written for us; others are paid, and take their prompt as text."""
DROPPED_PREFIXES = ("GIT_", "TFGRPO_", "FEATURE_TFGRPO_", "PYTEST_")
DROPPED = frozenset({"PWD", "OLDPWD"})


class CommandActor:
    """Starts the program once per rollout, with the workspace as its working folder.

    The reader that `events` names says what it may print.
    At the time limit, or when the call is cancelled, or when this process is killed, the program ends with
    all its descendants.
    """

    def __init__(
        self,
        spec: str,
        argv: list[str],
        root: Path,
        events: str,
        *,
        sandbox: Sandbox | None,
        passed: Sequence[str],
        identity: Mapping[str, Json],
    ) -> None:
        """`passed` names the variables that a sandbox passes on; `identity` describes the sandbox."""
        self.name = spec
        self.paid = events != OWN_EVENTS
        self.identity: Mapping[str, Json] = {
            "spec": spec,
            **identity,
            "sha256": {
                Path(arg).relative_to(root).as_posix(): stamp_bytes(Path(arg).read_bytes())
                for arg in argv
                if Path(arg).is_relative_to(root) and os.path.isfile(arg)  # noqa: PTH113 - see open_command
            },
        } | ({} if events == OWN_EVENTS else {"events": events})
        self._argv = argv
        self._sandbox = sandbox
        self._sandboxed = None if sandbox is None else root
        self._passed = passed
        self._events = events

    @property
    def converses(self) -> bool:
        """Whether the program is one that may be written for our line protocol."""
        return self._events == OWN_EVENTS

    def open_session(self, call: ActorCall) -> CommandSession:
        """Return a conversation with one process of the program."""
        return CommandSession(self, call)

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        spans = ProgramSpans(call)
        try:
            made = await self._ask(call, spans)
        except RolloutFault as fault:
            fault.frames = fault.frames or spans.frames()
            raise
        except asyncio.CancelledError:
            if frames := spans.frames():
                raise AgentFailure(f"no answer within {call.timeout_s:g} s", TIMEOUT, frames=frames) from None
            raise
        finally:
            spans.close()
        if not (spans.wanted and spans.unused):
            return made
        return replace(made, extra={**made.extra, UNUSED: dict(spans.unused)})

    async def _ask(self, call: ActorCall, spans: ProgramSpans) -> Trajectory:
        workspace = call.workspace.path.absolute()
        started = time.perf_counter()
        running = RunningProgram(total_max_bytes(call.answer_max_bytes))
        try:
            with stdin_of(self._argv, call, workspace, as_text=self._events != OWN_EVENTS) as stdin:
                await self.start(call, running, stdin.fileno(), workspace, spans)
            spent_s = time.perf_counter() - started
            in_time = await running.finished(None if self._events == OWN_EVENTS else _limit(call) - spent_s)
        finally:
            await running.end()
        if not in_time:
            kept = frames_in(EVENTS[self._events], bytes(running.stdout), call.answer_max_bytes)
            raise AgentFailure(f"no answer within {call.timeout_s:g} s", "timeout", frames=kept)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        await spans.settle()
        return trajectory_of(running, EVENTS[self._events], call, elapsed_ms, spans.frames)

    def _command_line(self, call: ActorCall, workspace: Path) -> list[str]:
        environment = call.workspace.environment
        program = (
            (self._argv[0],) if environment is None else started(self._argv[0], _search(self._sandboxed))
        )
        filled = [*program, *fill(self._argv[1:], call, workspace)]
        sandbox = self._sandbox_with(environment)
        return filled if sandbox is None else sandbox.argv(filled, workspace)

    def _sandbox_with(self, environment: BuiltEnvironment | None) -> Sandbox | None:
        """Return the sandbox of a rollout, which shows its environment."""
        if self._sandbox is None or environment is None:
            return self._sandbox
        return replace(self._sandbox, readable=(*self._sandbox.readable, *environment.readable))

    def _environment(self, call: ActorCall, workspace: Path, spans: ProgramSpans | None) -> dict[str, str]:
        """Return the environment of a rollout's program: everything that it gets is added here.

        Coding agents print their calls, and get no address for spans.
        """
        near = self._sandbox is None or self._sandbox.network == "host"
        reachable = spans is not None and near and self._events == OWN_EVENTS
        spans = spans or ProgramSpans(call)
        environment = call.workspace.environment
        sandbox = self._sandbox_with(environment)
        if sandbox is None:
            found = with_environment(_inherited(), environment, workspace)
            return found | spans.variables(found, reachable=reachable)
        passed = {name: os.environ[name] for name in self._passed if name in os.environ}
        found = with_environment({**passed, "PATH": _search(self._sandboxed)}, environment, workspace)
        found |= spans.variables(found, reachable=reachable)
        return sandbox.environment(found.pop("PATH"), found)

    async def start(
        self,
        call: ActorCall,
        running: RunningProgram,
        stdin: int,
        workspace: Path,
        spans: ProgramSpans | None = None,
    ) -> None:
        """Start the program of one rollout, which reads from the file `stdin`; raises ProviderError.

        Without `spans` it has no address for them: nothing says to which turn of a conversation one belongs.
        """
        argv, env = self._command_line(call, workspace), self._environment(call, workspace, spans)
        try:
            loopback = self._sandbox is not None and self._sandbox.network == "loopback"
            await running.start(argv, workspace, env, stdin, loopback=loopback)
        except OSError as error:
            hint = (
                "remove {prompt} from the command line; the prompt then comes on stdin"
                if error.errno == errno.E2BIG
                else "a script needs a #! line"
            )
            raise ProviderError(
                f"cannot start {self._argv[0]!r}: {error.strerror}; {hint}", "spawn"
            ) from error

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Return unknown: a program reports its use only afterwards."""
        return {"usd": None, "tokens": None}

    async def aclose(self) -> None:
        """Do nothing: every call has ended its own process."""


def _limit(call: ActorCall) -> float:
    """Return the seconds after which an agent is ended here, so that what it did until then is kept."""
    return call.timeout_s - min(MARGIN_S, MARGIN_SHARE * call.timeout_s)


def open_command(argument: str, root: Path, settings: Mapping[str, object]) -> CommandActor:
    """Return the actor for a command line in shell quoting, without a shell; raises ActorError, SettingError.

    The program runs in the workspace, so a program with a slash and arguments that name existing files are
    taken relative to `root`.
    """
    spec = f"command:{argument}"
    try:
        argv = shlex.split(argument)
    except ValueError as error:
        raise ActorError(f"{spec!r} is not a command line: {error}") from None
    if not argv:
        raise ActorError("command: names no program; write, for example, command:./agent --fast")
    check_placeholders(argv[1:])
    root = root.absolute()
    # Path.is_file raises on a word too long for a name
    rest = [str(root / arg) if os.path.isfile(root / arg) else arg for arg in argv[1:]]  # noqa: PTH113
    search = _search(root if SANDBOX.of(settings) == "bwrap" else None)
    argv = [program_path(argv[0], root, spec, search), *rest]
    sandbox, identity = open_sandbox(settings, root, argv, search)
    return CommandActor(
        spec,
        argv,
        root,
        COMMAND_OUTPUT.of(settings),
        sandbox=sandbox,
        passed=variables(SANDBOX_ENV.of(settings)),
        identity=identity,
    )


def _search(sandboxed: Path | None) -> str:
    """Return the PATH of programs; of those in a sandbox, whose project `sandboxed` is, without shims."""
    search = os.environ.get("PATH", os.defpath)
    if sandboxed is None:
        return search
    return without_shims(search, sandboxed, os.environ.get("PYENV_VERSION", ""))


def _inherited() -> dict[str, str]:
    """Return the environment without a sandbox: all of it but what belongs to the test run."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(DROPPED_PREFIXES) and name not in DROPPED
    }
