"""The table of runners, and the one way to run a project's tests."""

from __future__ import annotations

from pytest_tfgrpo.scoring.runners.command import run_command
from pytest_tfgrpo.scoring.runners.javascript.jest_and_vitest import run_jest, run_vitest
from pytest_tfgrpo.scoring.runners.javascript.node_test import run_node_tests
from pytest_tfgrpo.scoring.runners.protocol import Runner, RunProblem, SuiteRequest, SuiteRun
from pytest_tfgrpo.scoring.runners.python.pytest_runner import run_pytest

RUNNERS: dict[str, Runner] = {
    "command": run_command,
    "jest": run_jest,
    "node-test": run_node_tests,
    "pytest": run_pytest,
    "vitest": run_vitest,
}
"""The runners by name."""


def run_suite(request: SuiteRequest) -> SuiteRun:
    """Run a project's tests with the runner that its command names; a broken project is a result.

    Raises CheckError where the tests cannot be isolated.
    """
    runner = RUNNERS.get(request.command.runner)
    if runner is None:
        known = ", ".join(sorted(RUNNERS))
        return SuiteRun(
            outcomes={},
            problem=RunProblem.NO_RUNNER,
            detail=f"there is no runner {request.command.runner!r}; known: {known}",
        )
    if not (request.tree / request.command.folder).is_dir():
        return SuiteRun(
            outcomes={},
            problem=RunProblem.NO_RUNNER,
            detail=f"there is no folder {request.command.folder!r} in the tree",
        )
    return runner(request)
