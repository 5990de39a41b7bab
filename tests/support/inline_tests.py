"""A runner for tests in Python that runs them in a thread of this process."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRequest, SuiteRun


class InlineRunner:
    """Runs the functions ``test_...`` of files, which may import the modules of the tree."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, request: SuiteRequest) -> SuiteRun:
        self.count += 1
        found: list[SuiteRun] = []
        thread = threading.Thread(target=lambda: found.append(_run(request)))
        thread.start()
        thread.join()
        return found[0]


def _run(request: SuiteRequest) -> SuiteRun:
    outcomes, messages = dict[str, CaseOutcome](), dict[str, str]()
    before = {*sys.modules}
    sys.path.insert(0, str(request.tree))
    importlib.invalidate_caches()
    sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode
    try:
        for file in request.files:
            _run_file(request.tree, file, outcomes, messages)
    finally:
        sys.path.remove(str(request.tree))
        sys.dont_write_bytecode = kept
        for name in {*sys.modules} - before:
            del sys.modules[name]
    problem = None if outcomes else RunProblem.NOTHING_COLLECTED
    return SuiteRun(outcomes=outcomes, messages=messages, problem=problem, elapsed_s=0.01)


def _run_file(tree: Path, file: str, outcomes: dict[str, CaseOutcome], messages: dict[str, str]) -> None:
    space: dict[str, object] = {"__name__": "test_module", "__file__": file}
    try:
        exec(compile((tree / file).read_text(), file, "exec"), space)
    except Exception:
        return
    for name, test in space.items():
        if name.startswith("test_") and callable(test):
            try:
                test()
                outcomes[f"{file}::{name}"] = CaseOutcome.PASSED
            except Exception as error:
                outcomes[f"{file}::{name}"] = CaseOutcome.FAILED
                asserted = isinstance(error, AssertionError)
                messages[f"{file}::{name}"] = "assert 1 == 2" if asserted else repr(error)
