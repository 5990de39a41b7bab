"""What is not built."""

from pathlib import Path
from typing import Any

import pytest
from support.environment.builder import AT, part

from pytest_tfgrpo.harvest.environment.builder import EnvironmentBuilder
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem, why_failed
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand

UV = """Using Python 3.10.13 environment at: v
  × Failed to build `pyyaml==5.4.1`
  ├─▶ The build backend returned an error
  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

      [stderr]
      Traceback (most recent call last):
        File "<string>", line 201, in get_source_files
      AttributeError: cython_sources

hint: Build failures usually indicate a problem with the package or the build environment"""
PIP = """Looking in links: /x
WARNING: Location is ignored
  error: subprocess-exited-with-error
  × Getting requirements to build wheel did not run successfully.
  ╰─> [71 lines of output]
      AttributeError: cython_sources
      [end of output]
  note: This error originates from a subprocess
ERROR: Failed to build 'pyyaml' when getting requirements to build wheel"""
NONE = """  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of soap>=3 and you require soap>=3, we can conclude that"""


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (UV, "Failed to build `pyyaml==5.4.1`: AttributeError: cython_sources"),
        (
            PIP,
            "ERROR: Failed to build 'pyyaml' when getting requirements to build wheel: AttributeError: "
            "cython_sources",
        ),
        (NONE, "Because there is no version of soap>=3 and you require soap>=3, we can conclude that"),
        ("", ""),
    ],
)
def test_why_an_installer_failed_is_the_package_and_what_was_raised(told: str, why: str) -> None:
    assert why_failed(told) == why


def test_a_python_on_which_tests_cannot_be_reported_is_refused_with_what_to_do(tmp_path: Path) -> None:
    nothing: Any = None
    recipe = part(python="3.7", command=SuiteCommand(runner="pytest"))
    with pytest.raises(
        BuildProblem, match=r"needs Python 3\.7, and tfgrpo runs tests only with 3\.8 or later; if "
    ):
        EnvironmentBuilder(nothing, tmp_path).make(recipe, AT)


def test_a_project_that_pytest_needs_itself_is_refused_with_what_to_do(tmp_path: Path) -> None:
    nothing: Any = None
    recipe = part(command=SuiteCommand(runner="pytest"), distributions={"Pluggy": "1.5"})
    with pytest.raises(BuildProblem, match=r'pytest needs pluggy, .* with runner = "command" and run = '):
        EnvironmentBuilder(nothing, tmp_path).make(recipe, AT)
