"""The project as the command line finds it, which must be the one that pytest finds."""

from pathlib import Path

import pytest
from support.cli.project import write
from support.tools import run_pytest

from pytest_tfgrpo.cli.project import open_project


@pytest.mark.parametrize(
    "names",
    [
        ["pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"],
        [".pytest.ini", "pyproject.toml", "tox.ini"],
        ["pyproject.toml", "tox.ini", "setup.cfg"],
        ["tox.ini", "setup.cfg"],
        ["setup.cfg"],
    ],
)
def test_the_ini_file_is_the_one_that_pytest_takes(tmp_path: Path, names: list[str]) -> None:
    write(tmp_path, *names)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    project = open_project(below, {}, {})
    assert (project.root, project.out) == (tmp_path, tmp_path / f"from-{names[0]}")
    shown = run_pytest(below, "--collect-only").stdout
    assert f"rootdir: {tmp_path}\nconfigfile: {names[0]}" in shown
