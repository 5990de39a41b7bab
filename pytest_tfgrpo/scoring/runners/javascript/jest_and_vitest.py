"""The runners ``vitest`` and ``jest``: the project's own, in one process with its workers."""

from __future__ import annotations

import time

from pytest_tfgrpo.scoring.runners.javascript.launch import HERE, launch
from pytest_tfgrpo.scoring.runners.javascript.outcomes import suite_run
from pytest_tfgrpo.scoring.runners.protocol import SuiteRequest, SuiteRun


def run_jest(request: SuiteRequest) -> SuiteRun:
    """Run the project's jest, as `Runner` says."""
    return _run("jest.cjs", request)


def run_vitest(request: SuiteRequest) -> SuiteRun:
    """Run the project's vitest, as `Runner` says."""
    return _run("vitest.mjs", request)


def _run(name: str, request: SuiteRequest) -> SuiteRun:
    """Run a program of ours that runs all files at once."""
    began = time.monotonic()
    found = launch(request, lambda node: [node, str(HERE / name)], request.files, began + request.timeout_s)
    return suite_run([found.reported], found.problem, found.detail, time.monotonic() - began)
