"""The runner ``jest``: the project's own, in one process with its workers."""

from __future__ import annotations

from pytest_tfgrpo.scoring.runners.protocol import SuiteRequest, SuiteRun
from pytest_tfgrpo.scoring.runners.vitest import run_program


def run_jest(request: SuiteRequest) -> SuiteRun:
    """Run the project's jest, as `Runner` says."""
    return run_program("jest.cjs", request)
