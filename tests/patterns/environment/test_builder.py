"""What is not built."""

from pathlib import Path
from typing import Any

import pytest
from support.environment.builder import AT, part

from pytest_tfgrpo.harness.scoring.runners.protocol import SuiteCommand
from pytest_tfgrpo.patterns.environment.builder import EnvironmentBuilder
from pytest_tfgrpo.patterns.environment.package_tools import BuildProblem


def test_a_python_on_which_tests_cannot_be_reported_is_refused_with_what_to_do(tmp_path: Path) -> None:
    nothing: Any = None
    recipe = part(python="3.7", command=SuiteCommand(runner="pytest"))
    with pytest.raises(
        BuildProblem, match=r"wants Python 3\.7, and its tests are reported from 3\.8 on; if it "
    ):
        EnvironmentBuilder(nothing, tmp_path).make(recipe, AT)


def test_a_project_that_pytest_needs_itself_is_refused_with_what_to_do(tmp_path: Path) -> None:
    nothing: Any = None
    recipe = part(command=SuiteCommand(runner="pytest"), distributions={"Pluggy": "1.5"})
    with pytest.raises(BuildProblem, match=r'pytest needs pluggy, .* by runner = "command" and run = '):
        EnvironmentBuilder(nothing, tmp_path).make(recipe, AT)
