"""A project's own package is known in its environment, and its scripts call what they name."""

from __future__ import annotations

import os
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from pytest_tfgrpo.harvest.recipe.own_distributions import write_distributions
from pytest_tfgrpo.sandbox.programs.environments import Environment


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    (tmp_path / "lib/python3.11/site-packages").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    return tmp_path


def test_the_package_is_found_by_name_and_version(venv: Path) -> None:
    write_distributions(Environment(distributions={"my-own.pack": "1.0-2"}), venv)
    (folder,) = (venv / "lib/python3.11/site-packages").iterdir()
    assert folder.name == "my_own_pack-1.0_2.dist-info"
    found = Distribution.at(folder)
    assert (found.metadata["Name"], found.version) == ("my-own.pack", "1.0-2")
    assert list(found.entry_points) == []
    texts = {path.name: path.read_text() for path in folder.iterdir() if path.name != "METADATA"}
    assert texts == {"INSTALLER": "tfgrpo\n", "RECORD": ""}
    assert list((venv / "bin").iterdir()) == []


def test_a_console_script_calls_what_it_names_and_replaces_nothing(venv: Path) -> None:
    (venv / "bin/kept").write_text("theirs")
    (venv / "bin/hanging").symlink_to(venv / "nowhere")
    text = (
        "[console_scripts]\nTool = own.cli : app.run [extra]\nkept = own:main\nhanging = own:main\n"
        "../out = own:main\nbad = own\n[gui_scripts]\nwindow = own:main\n"
    )
    write_distributions(Environment(distributions={"own": "1"}, entry_points={"own": text}), venv)
    assert sorted(path.name for path in (venv / "bin").iterdir()) == ["Tool", "hanging", "kept"]
    assert (venv / "bin/kept").read_text() == "theirs"
    assert not (venv / "nowhere").exists()
    script = venv / "bin/Tool"
    assert script.read_text() == (
        f"#!{venv}/bin/python\nimport sys\nfrom own.cli import app\nsys.exit(app.run())\n"
    )
    assert os.access(script, os.X_OK)
    (folder,) = (venv / "lib/python3.11/site-packages").iterdir()
    assert (folder / "entry_points.txt").read_text() == text


def test_entry_points_that_cannot_be_read_give_no_scripts(venv: Path) -> None:
    environment = Environment(distributions={"own": "1"}, entry_points={"own": "no section = x"})
    write_distributions(environment, venv)
    assert list((venv / "bin").iterdir()) == []
