"""The check that runs a program in the workspace: no shell, scrubbed environment, killed as a whole group."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.schema import short
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    builtin_params,
    failed,
    verdict,
)

TAIL_BYTES = 8_192
"""The end of the output that is kept; the rest is read and dropped."""
POLL_S = 0.02
"""How soon the end of a program is noticed whose output somebody else holds open."""


_running: set[int] = set()
"""Process groups alive: an interrupted run does not wait for its checks, so they are killed at exit."""


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@atexit.register
def _kill_running() -> None:
    for group in tuple(_running):
        _kill(group)


class Ending(NamedTuple):
    """How a program ended."""

    code: int | None
    """Exit code, negative for a signal; None when it ran out of time."""
    tail: str
    """The end of what it printed."""


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    run = params["run"]
    try:
        argv = shlex.split(run) if isinstance(run, str) else run
    except ValueError as error:
        raise BadParam("run", f"{short(run)} cannot be split into arguments: {error}") from None
    if not argv or not argv[0] or any("\0" in part for part in argv):
        raise BadParam("run", f"{short(run)} names no program")
    return {**params, "run": argv}


def _environment(home: Path) -> dict[str, str]:
    """Return a program's environment: where programs are (this interpreter's first), home and language."""
    folders = [str(Path(sys.executable).parent), *os.get_exec_path()]
    # a relative entry would let the agent plant programs in its workspace
    path = os.pathsep.join(folder for folder in dict.fromkeys(folders) if Path(folder).is_absolute())
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}


def run_limited(argv: Sequence[str], folder: Path, timeout_s: float) -> Ending:
    """Run a program in `folder` and return how it ended; its whole process group is dead afterwards.

    Raises OSError when it cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    _running.add(process.pid)
    assert process.stdout is not None
    with process.stdout as output:
        try:
            tail = _watch(process, output.fileno(), deadline)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            code = process.returncode
        finally:
            _kill(process.pid)
            process.wait()
            _running.discard(process.pid)
    return Ending(code, tail.decode("utf-8", "replace"))


def _watch(process: subprocess.Popen[bytes], output: int, deadline: float) -> bytes:
    """Return the end of the output, once the program has closed it or ended, or time is up."""
    tail, ready = b"", select.poll()  # select() would refuse a descriptor beyond 1023
    ready.register(output, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if ready.poll(1000 * min(left, POLL_S)):
            chunk = os.read(output, 65_536)
            if not chunk:
                break
            tail = (tail + chunk)[-TAIL_BYTES:]
        elif process.poll() is not None:
            break
    return tail


def _command(check: Check, context: CheckContext) -> CheckResult:
    argv, wanted = check.params["run"], check.params.get("exit_code", 0)
    timeout_s = check.params.get("timeout_s", 30)
    shown = short(shlex.join(argv))
    try:
        ending = run_limited(argv, context.workspace.path, timeout_s)
    except OSError as error:
        # a program with a relative path is the agent's own work
        if "/" in argv[0] and not argv[0].startswith("/"):
            return failed(check, f"{shown} cannot be started: {error.strerror}")
        raise CheckError(f"{shown} cannot be started: {error.strerror}; install the program") from error
    if ending.code is None:
        return failed(check, f"{shown} took more than {timeout_s:g} s")
    reason = f"{shown} ended with {ending.code}, expected {wanted}; output ends {ending.tail[-300:]!r}"
    return verdict(check, None if ending.code == wanted else reason)


COMMAND = CheckKind(name="command", params=builtin_params("command"), evaluate=_command, prepare=_prepare)
