"""The runner ``pytest``: what comes of each test, whatever the others do."""

from pathlib import Path

import pytest
from support.runners.pytest_runner import run
from support.tools import require_tool

from pytest_tfgrpo.scoring.runners.protocol import (
    RunProblem,
    SuiteCommand,
    SuiteRequest,
)
from pytest_tfgrpo.scoring.runners.registry import run_suite


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    require_tool("bwrap")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    return tmp_path / "tree"


def test_no_tests_are_a_problem(tree):
    found = run(tree)
    assert (found.problem, dict(found.outcomes)) == (RunProblem.NOTHING_COLLECTED, {})


@pytest.mark.parametrize(
    ("runner", "folder"), [("no-such", "."), ("pytest", "nowhere"), ("pytest", "package.json")]
)
def test_what_is_not_there_cannot_run(tree, runner, folder):
    (tree / "package.json").write_text("{}")
    command = SuiteCommand(runner=runner, folder=folder)
    found = run_suite(SuiteRequest(tree=tree, command=command, timeout_s=5.0))
    assert found.problem is RunProblem.NO_RUNNER
