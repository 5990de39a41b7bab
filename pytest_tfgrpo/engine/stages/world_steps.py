"""One step that sets up or tears down the world of a rollout: a Python callable or a program."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.actors.command.running_program import RunningProgram
from pytest_tfgrpo.core.errors import ActorError, SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.python.named_callable import plain_callable
from pytest_tfgrpo.core.scenarios import Task, WorldStep
from pytest_tfgrpo.core.settings.permissions import CHECK_SANDBOX
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.texts.tracebacks import traceback_text
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.sandbox.programs.bubblewrap import Sandbox
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.programs.sandbox_settings import open_sandbox
from pytest_tfgrpo.sandbox.programs.threads import call_in_daemon
from pytest_tfgrpo.scoring.checks.command import scrubbed

OUTPUT_MAX = 16_000_000
"""Bytes that a program may print; only the end of its errors is looked at."""
SEEN, TAIL = 2000, 500
"""Bytes of its end that are looked at, and characters of these that a message has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepContext:
    """One rollout, as its set-up and its tear-down see it."""

    workspace: Path
    """The folder that the agent works in."""
    task: Task
    rollout_id: str
    """The same in both, also where another process tears down: a name for what lies elsewhere."""


class StepFailed(Exception):
    """A step did not do what it should; the message says why."""


class StepRunner:
    """Runs the steps of a run: callables on threads of their own, programs where those of agents run."""

    def __init__(self, job: Job) -> None:
        self._root = job.root
        self._settings: Mapping[str, object] = job.settings

    async def run(self, step: WorldStep, context: StepContext, environment: BuiltEnvironment | None) -> None:
        """Run one step; raises StepFailed."""
        try:
            async with asyncio.timeout(step.timeout_s):
                if step.target:
                    await _call(step, context)
                else:
                    await self._start(step, context.workspace, environment)
        except TimeoutError:
            raise StepFailed(f"{_shown(step)} took more than {step.timeout_s:g} s") from None

    async def _start(self, step: WorldStep, folder: Path, environment: BuiltEnvironment | None) -> None:
        variables = scrubbed(folder, environment)
        program, *rest = step.argv
        argv = [
            program if "/" in program else shutil.which(program, path=variables["PATH"]) or program,
            *rest,
        ]
        try:
            box = self._sandbox(argv, variables["PATH"], environment)
        except (ActorError, SettingError) as error:
            raise StepFailed(f"{_shown(step)} cannot be started: {error}") from None
        if box is not None:
            passed = {name: value for name, value in variables.items() if name not in ("PATH", "HOME")}
            argv, variables = box.argv(argv, folder), box.environment(variables["PATH"], passed)
        running = RunningProgram(OUTPUT_MAX)
        try:
            with open(os.devnull, "rb") as nothing:  # noqa: PTH123
                loopback = box is not None and box.network == "loopback"
                await running.start(argv, folder, variables, nothing.fileno(), loopback=loopback)
            await running.finished(None)
        except OSError as error:
            raise StepFailed(f"{_shown(step)} cannot be started: {error.strerror}") from None
        finally:
            await running.end()
        if running.overflowed:
            raise StepFailed(f"{_shown(step)} printed more than {OUTPUT_MAX} bytes")
        if running.exit_code != 0:
            output = (running.stderr or bytes(running.stdout[-SEEN:])).decode("utf-8", "replace")
            tail = line(redact(output.strip())[-TAIL:], TAIL)  # half a secret is not known as one
            raise StepFailed(f"{_shown(step)} ended with {running.exit_code}; output ends {tail!r}")

    def _sandbox(
        self, argv: Sequence[str], search: str, environment: BuiltEnvironment | None
    ) -> Sandbox | None:
        """Return the sandbox of agents, where they or the programs of checks have one, else None."""
        settings = self._settings
        if CHECK_SANDBOX.of(settings) == "bwrap":
            settings = {**settings, "sandbox": "bwrap"}
        # a program of the workspace is seen anyway
        known = argv if argv[0].startswith("/") else [sys.executable, *argv[1:]]
        box, _ = open_sandbox(settings, self._root, known, search)
        if box is None or environment is None:
            return box
        return replace(box, readable=(*box.readable, *environment.readable))


async def _call(step: WorldStep, context: StepContext) -> None:
    def call() -> str:
        try:
            plain_callable(step.target)(context)
        except BaseException as error:  # noqa: BLE001 - sys.exit() and pytest.fail() must not end the run
            return f"raised\n{traceback_text(error, __file__)}"
        return ""

    if broken := await call_in_daemon(call):
        raise StepFailed(f"{_shown(step)} {broken}")


def _shown(step: WorldStep) -> str:
    return repr(step.target) if step.target else short(shlex.join(step.command))
