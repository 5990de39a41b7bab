"""The ``command:<argv>`` actor: any program, asked over stdin and stdout in a session of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pytest_tfgrpo.core.errors import ActorError, AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Json, Trajectory
from pytest_tfgrpo.core.stamp import stamp_bytes
from pytest_tfgrpo.core.wire import to_wire
from pytest_tfgrpo.harness.actors.answers import read_output, read_trajectory, total_max_bytes
from pytest_tfgrpo.harness.actors.protocol import ActorCall
from pytest_tfgrpo.harness.actors.sandbox import open_bwrap, wrap

TASK_SCHEMA = "tfgrpo.task/1"
STDERR_TAIL_BYTES = 2000
LINGER_S = 0.5
"""How long to read on when the program has ended but something else holds its output open."""
TERM_GRACE_S = 0.5
"""How long a program may take to end by itself after SIGTERM."""
REAP_S = 5.0
DROPPED_PREFIXES = ("GIT_", "TFGRPO_", "FEATURE_TFGRPO_", "PYTEST_")
DROPPED = frozenset({"PWD", "OLDPWD"})


class CommandActor:
    """Starts the program once per rollout, with the workspace as its working folder.

    Stdin is one JSON object (schema ``tfgrpo.task/1``): scenario, prompt, temperature, seed, workspace and
    timeout_s. Stdout is read by `read_output`. The environment is passed on, keys of providers included, but
    for ``GIT_*``, ``PYTEST_*`` and this project's own variables. When the call is cancelled, as at the time
    limit, the whole process group ends.
    """

    paid = False

    def __init__(self, spec: str, argv: list[str], root: Path, bwrap: str | None) -> None:
        self.name = spec
        self.identity: Mapping[str, Json] = {
            "spec": spec,
            "sandbox": "bwrap" if bwrap else "none",
            "sha256": {
                Path(arg).relative_to(root).as_posix(): stamp_bytes(Path(arg).read_bytes())
                for arg in argv
                if Path(arg).is_relative_to(root) and Path(arg).is_file()
            },
        }
        self._argv = argv
        self._root = root
        self._bwrap = bwrap

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        workspace = call.workspace.path.absolute()
        started = time.perf_counter()
        talk = _Talk(total_max_bytes(call.answer_max_bytes))
        with _stdin(call, workspace) as stdin:
            transport = await self._start(talk, stdin, workspace)
        try:
            await talk.finished()
        finally:
            await _end(transport, talk)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        value = _value(talk, transport.get_returncode())
        return read_trajectory(
            value, answer_max_bytes=call.answer_max_bytes, elapsed_ms=elapsed_ms, model="command"
        )

    async def _start(self, talk: _Talk, stdin: IO[bytes], workspace: Path) -> asyncio.SubprocessTransport:
        argv = self._argv
        if self._bwrap is not None:
            argv = wrap(argv, self._bwrap, root=self._root, workspace=workspace)
        loop = asyncio.get_running_loop()
        starting = loop.create_task(
            loop.subprocess_exec(
                lambda: talk,
                *argv,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=workspace,
                env=_environment(),
                start_new_session=True,
            )
        )
        try:
            transport, _ = await asyncio.shield(starting)
        except OSError as error:
            raise ProviderError(
                f"cannot start {self._argv[0]!r}: {error}; a script needs a #! line", "spawn"
            ) from error
        except (
            asyncio.CancelledError
        ):  # the process may be half started: finish that, so that it can be ended
            await asyncio.wait([starting])
            if starting.exception() is None:
                await _end(starting.result()[0], talk)
            raise
        return transport

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Return unknown: a program reports its use only afterwards."""
        return {"usd": None, "tokens": None}

    async def aclose(self) -> None:
        """Do nothing: every call has ended its own process."""


class _Talk(asyncio.SubprocessProtocol):
    """What one process says: stdout up to a cap, and the tail of stderr."""

    def __init__(self, stdout_max_bytes: int) -> None:
        loop = asyncio.get_running_loop()
        self.stdout = bytearray()
        self.stderr = b""
        self.exited: asyncio.Future[None] = loop.create_future()
        self.overflowed = False
        self._closed: asyncio.Future[None] = loop.create_future()
        self.stdout_max_bytes = stdout_max_bytes

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr = (self.stderr + data)[-STDERR_TAIL_BYTES:]
        elif not self.overflowed:
            self.stdout += data
            if len(self.stdout) > self.stdout_max_bytes:
                self.overflowed = True
                _settle(self._closed)

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002 - asyncio's signature
        _settle(self._closed)

    async def finished(self) -> None:
        """Return when the process has ended and said all, or has said too much."""
        await asyncio.wait([self.exited, self._closed], return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait([self._closed], timeout=LINGER_S)


def open_command(argument: str, root: Path, *, sandbox: str) -> CommandActor:
    """Return the actor for a command line in shell quoting, without a shell; raises ActorError.

    The program runs in the workspace, so a program with a slash and arguments that name existing files are
    taken relative to `root`.
    """
    spec = f"command:{argument}"
    try:
        argv = shlex.split(argument)
    except ValueError as error:
        raise ActorError(f"{spec!r} is not a command line: {error}") from None
    if not argv:
        raise ActorError("command: names no program; write for instance command:./agent --fast")
    root = root.absolute()
    rest = [str(root / arg) if (root / arg).is_file() else arg for arg in argv[1:]]
    return CommandActor(
        spec, [_program(argv[0], root, spec), *rest], root, open_bwrap() if sandbox == "bwrap" else None
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


def _stdin(call: ActorCall, workspace: Path) -> IO[bytes]:
    """Return the task as an open file: unlike a pipe it needs no writer, and programs can open /dev/stdin."""
    task = {
        "schema": TASK_SCHEMA,
        "scenario": to_wire(call.scenario),
        "prompt": to_wire(call.prompt),
        "temperature": call.temperature,
        "seed": call.seed,
        "workspace": str(workspace),
        "timeout_s": call.timeout_s,
    }
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        file.write(json.dumps(task).encode("ascii") + b"\n")
        file.seek(0)
    except OSError as error:
        raise ProviderError(f"cannot write the task of {call.scenario.id!r}: {error}", "spawn") from error
    return file


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(DROPPED_PREFIXES) and name not in DROPPED
    }


def _value(talk: _Talk, status: int | None) -> Any:
    """Return what the process answered; raises AgentFailure or ProviderError."""
    if talk.overflowed:
        raise AgentFailure(f"the program printed more than {talk.stdout_max_bytes} bytes", "oversize")
    try:
        value = read_output(bytes(talk.stdout))
    except AgentFailure as failure:
        if status == 0:
            raise AgentFailure(str(failure) + _tail(talk.stderr), failure.code) from None
    if status != 0:
        raise AgentFailure(f"the program {_ending(status)}{_tail(talk.stderr)}", "crash")
    return value


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _tail(stderr: bytes) -> str:
    text = stderr.decode("utf-8", "replace").strip()
    return f"; its stderr ends: {text}" if text else ""


async def _end(transport: asyncio.SubprocessTransport, talk: _Talk) -> None:
    """End the whole process group: SIGTERM, a moment's grace, SIGKILL; return when its leader is reaped."""
    group = transport.get_pid()
    try:
        if not talk.exited.done():
            _signal(group, signal.SIGTERM)
            await asyncio.wait([talk.exited], timeout=TERM_GRACE_S)
    finally:
        _signal(group, signal.SIGKILL)
        try:
            await asyncio.wait([talk.exited], timeout=REAP_S)
        finally:
            transport.close()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
