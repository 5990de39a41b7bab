"""Run pytest in many processes that start at once: forks of one that has imported everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from support import ROOT

SERVER = """
import json, os, signal, sys
import pytest
import support.project

for line in sys.stdin:
    job = json.loads(line)
    mine, out = os.pipe()  # what it prints does not count as a file that it writes
    pid = os.fork()
    if not pid:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for fd, to in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (out, 2)):
            os.dup2(fd, to)
        os.close(mine)
        os.close(out)
        os.chdir(job["cwd"])
        os.environ.clear()
        os.environ.update(job["env"])
        sys.path.insert(0, job["cwd"])
        sys.exit(pytest.main(job["args"]))
    print(pid, flush=True)
    os.close(out)
    with open(mine, "rb") as heard, open(job["output"], "wb") as output:
        output.writelines(heard)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Forks:
    """The process that forks; use it as a context manager, for one child at a time.

    It starts with the first child: many a case starts none.
    """

    _server: subprocess.Popen[str] | None = None
    _child = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        if self._child > 0:  # the test failed before it waited
            with suppress(ProcessLookupError):
                os.killpg(self._child, signal.SIGKILL)
            self._server.kill()
        self._server.communicate()

    def start(self, cwd: Path, *args: str, **env: str) -> int:
        """Start pytest in `cwd`, with `env` added to the environment; returns its process id."""
        job = {
            "cwd": str(cwd),
            "args": ["-q", "-p", "no:cacheprovider", *args],
            "env": {**os.environ, **env},
            "output": str(cwd / "output.txt"),
        }
        self._server = self._server or self._started()
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        self._child = int(self._said())
        return self._child

    def wait(self) -> int:
        """Wait for the end of the child; returns its exit code, negative after a signal."""
        code = int(self._said())
        self._child = 0
        return code

    def run(self, cwd: Path, args: Sequence[str], **env: str) -> tuple[int, str]:
        """Run pytest to its end; returns exit code and output."""
        self.start(cwd, *args, **env)
        return self.wait(), (cwd / "output.txt").read_text(errors="replace")

    def _started(self) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
        command = [sys.executable, "-c", SERVER]
        return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _said(self) -> str:
        assert self._server is not None
        assert self._server.stdout is not None
        return self._server.stdout.readline() or str(-signal.SIGABRT)
