"""What the tests of scoring/runners/test_pytest_runner.py share with the slow ones."""

from pathlib import Path

from pytest_tfgrpo.scoring.runners.protocol import (
    CaseOutcome,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
)
from pytest_tfgrpo.scoring.runners.registry import run_suite

PASSED, FAILED = CaseOutcome.PASSED, CaseOutcome.FAILED


def put(tree: Path, **files: str) -> None:
    for name, text in files.items():
        path = tree / name.replace("__", "/").replace("_py", ".py").replace("_ini", ".ini")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(tree: Path, *files: str, folder: str = ".", **more: object) -> SuiteRun:
    command = SuiteCommand(runner="pytest", folder=folder)
    fields = {"timeout_s": 60.0, **more}
    return run_suite(SuiteRequest(tree=tree, command=command, files=files, **fields))  # type: ignore[arg-type]
