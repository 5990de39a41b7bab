"""The ``command:<argv>`` actor: any program, called over stdin and stdout in its own process session."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from pytest_tfgrpo.core.errors import ActorError, AgentFailure, ProviderError, RolloutFault
from pytest_tfgrpo.core.list_values import variables
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.core.stamp import stamp_bytes
from pytest_tfgrpo.core.text import STDERR
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.actors.command_input import check_placeholders, fill, stdin_of
from pytest_tfgrpo.harness.actors.events.registry import EVENTS, Reader
from pytest_tfgrpo.harness.actors.output import read_trajectory, total_max_bytes
from pytest_tfgrpo.harness.actors.running_program import TERM_GRACE_S, RunningProgram
from pytest_tfgrpo.harness.protocols import ActorCall
from pytest_tfgrpo.harness.sandbox.bubblewrap import Sandbox
from pytest_tfgrpo.harness.sandbox.environment_variables import with_environment
from pytest_tfgrpo.harness.sandbox.environments import BuiltEnvironment
from pytest_tfgrpo.harness.sandbox.programs import started
from pytest_tfgrpo.harness.sandbox.sandbox_settings import open_sandbox

MARGIN_S = 2 * TERM_GRACE_S
MARGIN_SHARE = 0.1
"""An agent has so much less than the engine's time limit, at which nothing would be known of what it did."""
OWN_EVENTS = "frames"
"""The format of programs written for us; others are paid, and take their prompt as text."""
UNTOLD = frozenset({"garbage", "no_answer", "oversize"})
"""Failures of the output alone: with a bad exit status they are a crash."""
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
        self._passed = passed
        self._events = events

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        workspace = call.workspace.path.absolute()
        started = time.perf_counter()
        running = RunningProgram(total_max_bytes(call.answer_max_bytes))
        argv = self._command_line(call, workspace)
        try:
            with stdin_of(self._argv, call, workspace, as_text=self._events != OWN_EVENTS) as stdin:
                await self._start(argv, running, stdin, workspace, self._environment(call, workspace))
            spent_s = time.perf_counter() - started
            in_time = await running.finished(None if self._events == OWN_EVENTS else _limit(call) - spent_s)
        finally:
            await running.end()
        if not in_time:
            kept = _frames(EVENTS[self._events], bytes(running.stdout), call.answer_max_bytes)
            raise AgentFailure(f"no answer within {call.timeout_s:g} s", "timeout", frames=kept)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        return _trajectory(running, EVENTS[self._events], call, elapsed_ms)

    def _command_line(self, call: ActorCall, workspace: Path) -> list[str]:
        environment = call.workspace.environment
        program = (self._argv[0],) if environment is None else started(self._argv[0], _search())
        filled = [*program, *fill(self._argv[1:], call, workspace)]
        sandbox = self._sandbox_with(environment)
        return filled if sandbox is None else sandbox.argv(filled, workspace)

    def _sandbox_with(self, environment: BuiltEnvironment | None) -> Sandbox | None:
        """Return the sandbox of a rollout, which shows its environment."""
        if self._sandbox is None or environment is None:
            return self._sandbox
        return replace(self._sandbox, readable=(*self._sandbox.readable, *environment.readable))

    def _environment(self, call: ActorCall, workspace: Path) -> dict[str, str]:
        """Return the environment of a rollout's program: everything that it gets is added here."""
        traced = {} if call.traceparent is None else {"TRACEPARENT": call.traceparent()}
        environment = call.workspace.environment
        sandbox = self._sandbox_with(environment)
        if sandbox is None:
            return with_environment(_inherited(), environment, workspace) | traced
        passed = {name: os.environ[name] for name in self._passed if name in os.environ}
        found = with_environment({**passed, "PATH": _search()}, environment, workspace)
        return sandbox.environment(found.pop("PATH"), found | traced)

    async def _start(
        self,
        argv: list[str],
        running: RunningProgram,
        stdin: IO[bytes],
        workspace: Path,
        env: Mapping[str, str],
    ) -> None:
        try:
            loopback = self._sandbox is not None and self._sandbox.network == "loopback"
            await running.start(argv, workspace, env, stdin.fileno(), loopback=loopback)
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


def open_command(argument: str, root: Path, settings: SettingValues) -> CommandActor:
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
    argv = [_program(argv[0], root, spec), *rest]
    sandbox, identity = open_sandbox(settings, root, argv, _search())
    return CommandActor(
        spec,
        argv,
        root,
        settings.get("command_output", OWN_EVENTS),
        sandbox=sandbox,
        passed=variables(settings.get("sandbox_env")),
        identity=identity,
    )


def _program(name: str, root: Path, spec: str) -> str:
    if "/" not in name:
        if found := shutil.which(name):
            return found
        hint = f"; write ./{name}" if (root / name).is_file() else "; install it or give its path"
        raise ActorError(f"{spec!r}: there is no program {name!r} on PATH{hint}")
    path = root / name
    if not path.is_file():
        raise ActorError(f"{spec!r}: there is no program {path}")
    if not os.access(path, os.X_OK):
        raise ActorError(f"{spec!r}: {path} is not executable; run chmod +x {name}")
    return str(path)


def _search() -> str:
    return os.environ.get("PATH", os.defpath)


def _inherited() -> dict[str, str]:
    """Return the environment without a sandbox: all of it but what belongs to the test run."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(DROPPED_PREFIXES) and name not in DROPPED
    }


def _trajectory(running: RunningProgram, read: Reader, call: ActorCall, elapsed_ms: float) -> Trajectory:
    """Return what the process answered; raises AgentFailure or ProviderError."""
    stdout, status, limit = bytes(running.stdout), running.exit_code, call.answer_max_bytes
    if running.overflowed:
        message = f"the program printed more than {running.stdout_max_bytes} bytes"
        raise AgentFailure(message, "oversize", frames=_frames(read, stdout, limit))
    try:
        trajectory = _checked(read(stdout), limit, elapsed_ms)
    except RolloutFault as fault:
        if not isinstance(fault, AgentFailure) and fault.code != "spawn":
            raise
        if status != 0 and fault.code in UNTOLD:
            raise _crash(running, fault.frames) from None
        raise type(fault)(str(fault) + _tail(running.stderr), fault.code, frames=fault.frames) from None
    if status != 0:
        raise _crash(running, trajectory.frames)
    return trajectory


def _checked(value: str | dict[str, Json], limit: int, elapsed_ms: float) -> Trajectory:
    """Return the trajectory; a failure over its answer keeps the frames."""
    try:
        return read_trajectory(value, answer_max_bytes=limit, elapsed_ms=elapsed_ms, model="command")
    except AgentFailure as failure:
        if isinstance(value, dict) and failure.code == "oversize":
            bare = {"answer": "", "frames": value.get("frames", [])}
            kept = read_trajectory(bare, answer_max_bytes=limit, elapsed_ms=elapsed_ms, model="command")
            raise AgentFailure(str(failure), failure.code, frames=kept.frames) from None
        raise


def _crash(running: RunningProgram, frames: tuple[Frame, ...]) -> AgentFailure:
    return AgentFailure(
        f"the program {_ending(running.exit_code)}{_tail(running.stderr)}", "crash", frames=frames
    )


def _frames(read: Reader, stdout: bytes, limit: int) -> tuple[Frame, ...]:
    """Return the calls in an unusable output, since they cost money."""
    try:
        return _checked(read(stdout), limit, 0.0).frames
    except RolloutFault as fault:
        return fault.frames


def _ending(status: int | None) -> str:
    if status is None:
        return "was lost: the process that watched it was killed"
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _tail(stderr: bytes) -> str:
    text = stderr.decode("utf-8", "replace").strip()
    return f"; {STDERR} {text}" if text else ""
