"""Where programs are found."""

import os
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox.programs.programs import without_shims


@pytest.fixture
def pyenv(tmp_path: Path) -> Path:
    """A pyenv with four versions, and a project in a folder beside it."""
    for version in ("3.11.2", "3.12.9", "3.12.10", "pypy3"):
        (tmp_path / "pyenv" / "versions" / version / "bin").mkdir(parents=True)
    (tmp_path / "pyenv" / "shims").mkdir()
    (tmp_path / "project" / "sub").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({"pyenv/version": "3.11.2\n"}, ["3.11.2"]),
        ({"pyenv/version": "3.12\n"}, ["3.12.10"]),
        ({"pyenv/version": "3.11.2", "project/.python-version": "pypy3\n3.11.2\n"}, ["pypy3", "3.11.2"]),
        ({"project/sub/.python-version": "3.12.9", "project/.python-version": "pypy3"}, ["3.12.9"]),
        ({"pyenv/version": "system"}, []),
        ({}, []),
    ],
)
def test_shims_of_pyenv_give_way_to_the_versions_that_are_chosen(
    pyenv: Path, chosen: dict[str, str], found: list[str]
) -> None:
    for name, text in chosen.items():
        (pyenv / name).write_text(text)
    search = os.pathsep.join(["/bin", str(pyenv / "pyenv" / "shims"), "/opt/shims", "/usr/bin"])
    folders = without_shims(search, pyenv / "project" / "sub").split(os.pathsep)
    real = [str(pyenv / "pyenv" / "versions" / name / "bin") for name in found]
    assert folders == ["/bin", *real, "/opt/shims", "/usr/bin"]


def test_the_variable_of_pyenv_is_stronger_than_its_files(pyenv: Path) -> None:
    (pyenv / "pyenv" / "version").write_text("3.11.2")
    found = without_shims(str(pyenv / "pyenv" / "shims"), pyenv, "3.12.9:pypy3").split(os.pathsep)
    assert [Path(folder).parent.name for folder in found] == ["3.12.9", "pypy3"]
