"""The runner ``node-test``: files of tests of node's own runner, each in a sandbox of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from pytest_tfgrpo.scoring.runners.javascript.files import node_tests
from pytest_tfgrpo.scoring.runners.javascript.flags import NodeFlags, node_flags
from pytest_tfgrpo.scoring.runners.javascript.launch import HERE, Launched, launch
from pytest_tfgrpo.scoring.runners.javascript.outcomes import Reported, suite_run
from pytest_tfgrpo.scoring.runners.protocol import RunProblem, SuiteRequest, SuiteRun

PROGRAM = HERE / "node_test.mjs"


@dataclass(slots=True)
class _Gathered:
    """What the files' runs said together."""

    reports: list[Reported] = field(default_factory=list)
    problem: RunProblem | None = None
    detail: str = ""

    def add(self, launched: Launched) -> None:
        self.reports.append(launched.reported)
        if launched.problem is not None and self.problem is not RunProblem.TAMPERED:
            self.problem = launched.problem
            self.detail = launched.detail
        self.detail = self.detail or launched.detail


def run_node_tests(request: SuiteRequest) -> SuiteRun:
    """Run the tests of node's runner, as `Runner` says."""
    began = time.monotonic()
    deadline = began + request.timeout_s
    gathered = _Gathered()
    try:
        flags = node_flags(request.command.run)
        files = request.files or _found(request)
    except (OSError, ValueError) as error:
        return SuiteRun(outcomes={}, problem=RunProblem.NOTHING_COLLECTED, detail=str(error))
    for file in files:
        gathered.add(launch(request, partial(_argv, flags), (file,), deadline))
        if gathered.problem in (RunProblem.NO_RUNNER, RunProblem.TIMEOUT, RunProblem.TAMPERED):
            break
    return suite_run(gathered.reports, gathered.problem, gathered.detail, time.monotonic() - began)


def _argv(flags: NodeFlags, node: str) -> list[str]:
    reporter = [f"--test-reporter={PROGRAM}", "--test-reporter-destination=stdout"]
    return [node, *flags.own, *reporter, str(PROGRAM)]


def _found(request: SuiteRequest) -> tuple[str, ...]:
    folder = PurePosixPath(request.command.folder)
    return tuple(str(folder / file) for file in node_tests(request.tree / folder))
