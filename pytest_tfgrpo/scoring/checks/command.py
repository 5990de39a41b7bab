"""The check that runs a program in the workspace: no shell, scrubbed environment, killed with its tree."""

from __future__ import annotations

import errno
import os
import select
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.programs.environment_variables import with_environment
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.programs.processes import Channel, Start, finish, start
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    verdict,
)
from pytest_tfgrpo.scoring.runners.isolation import IsolatedProgram, interpreter, run_isolated

TAIL_BYTES = 8_192
"""The end of the output that is kept; the rest is read and dropped."""


class Ending(NamedTuple):
    """How a program ended."""

    code: int | None
    """Exit code, negative for a signal; None when it ran out of time."""
    tail: str
    """The end of what it printed."""


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    return {**params, "run": words_of("run", params["run"])}


def words_of(key: str, command: str | list[str]) -> list[str]:
    """Return the words of a command line, which is the parameter `key`; raises BadParam."""
    try:
        argv = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise BadParam(key, f"{short(command)} cannot be split into arguments: {error}") from None
    if not argv or not argv[0] or any("\0" in part for part in argv):
        raise BadParam(key, f"{short(command)} names no program")
    return argv


def scrubbed(home: Path, environment: BuiltEnvironment | None = None) -> dict[str, str]:
    """Return a program's environment: where programs are, home and language.

    Those of the scenario's environment come first, then this interpreter's.
    """
    folders = [str(Path(sys.executable).parent), *os.get_exec_path()]
    # a relative entry would let the agent plant programs in its workspace
    path = os.pathsep.join(folder for folder in dict.fromkeys(folders) if Path(folder).is_absolute())
    return with_environment({"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}, environment, home)


def run_limited(
    argv: Sequence[str], folder: Path, timeout_s: float, environment: BuiltEnvironment | None = None
) -> Ending:
    """Run a program in `folder` and return how it ended; all its descendants are dead afterwards.

    They are also when this process ends, in whatever way. Raises OSError when the program cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    output, written = os.pipe()
    try:
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            files = (nothing.fileno(), written, written)
            variables = scrubbed(folder, environment)
            channel = start(Start(argv=argv, folder=folder, environment=variables, files=files))
    except BaseException:
        os.close(output)
        raise
    finally:
        os.close(written)
    try:
        return _watch(channel, output, deadline)
    finally:
        os.close(output)
        channel.end()
        while (report := channel.read()) is not None and report[0] != "G":
            continue
        finish(channel, gone=report is not None)


def _run_isolated(
    argv: Sequence[str], folder: Path, timeout_s: float, environment: BuiltEnvironment | None = None
) -> Ending:
    """Run a program as `run_limited` does, in a sandbox that shows it the workspace and this interpreter."""
    program = IsolatedProgram(
        argv=argv,
        tree=folder,
        readable=(*interpreter(None)[1], *(() if environment is None else environment.readable)),
        environment=scrubbed(folder, environment),
    )
    run = run_isolated(program, timeout_s=timeout_s, output_max=TAIL_BYTES)
    if run.stopped == "disk":
        raise Undecided(f"{short(shlex.join(argv))} filled the disk")
    return Ending(run.code, run.output)


def _watch(channel: Channel, output: int, deadline: float) -> Ending:
    """Return how a program ended, or ran out of time, with the end of its output.

    Raises OSError when it was not started. What something else writes afterwards is not waited for.
    """
    tail, code, ready = b"", None, select.poll()  # select() would refuse a descriptor beyond 1023
    ready.register(output, select.POLLIN)
    ready.register(channel.fileno(), select.POLLIN)
    open_output = True
    while (open_output or code is None) and (left := deadline - time.monotonic()) > 0:
        found = {fd for fd, _ in ready.poll(1000 * left if code is None else 0)}
        if output in found:
            chunk = os.read(output, 65_536)
            tail = (tail + chunk)[-TAIL_BYTES:]
            if not chunk:
                open_output = False
                ready.unregister(output)
        elif channel.fileno() in found:
            report = channel.read()
            if report is None:
                raise OSError(errno.ECHILD, "the process that watches it was killed")
            if report[0] == "E":
                raise OSError(report[1], os.strerror(report[1]))
            code = report[1] if report[0] == "X" else code
        elif code is not None:
            break
    return Ending(code, tail.decode("utf-8", "replace"))


def _command(check: Check, context: CheckContext) -> CheckResult:
    argv, wanted = check.params["run"], check.params.get("exit_code", 0)
    timeout_s = check.params.get("timeout_s", 30)
    shown = short(shlex.join(argv))
    try:
        run = _run_isolated if context.sandbox == "bwrap" else run_limited
        ending = run(argv, context.workspace.path, timeout_s, context.workspace.environment)
    except OSError as error:
        # a program with a relative path is the agent's own work, and so is the state of its folder
        if ("/" in argv[0] and not argv[0].startswith("/")) or error.filename == str(context.workspace.path):
            raise Undecided(f"{shown} cannot be started: {error.strerror}") from None
        raise CheckError(f"{shown} cannot be started: {error.strerror}; install the program") from error
    if ending.code is None:
        raise Undecided(f"{shown} took more than {timeout_s:g} s")
    reason = f"{shown} ended with {ending.code}, expected {wanted}; output ends {ending.tail[-300:]!r}"
    return verdict(check, None if ending.code == wanted else reason)


COMMAND = CheckKind(
    name="command",
    params=builtin_params("command"),
    evaluate=_command,
    prepare=_prepare,
    after_turn=False,
)
