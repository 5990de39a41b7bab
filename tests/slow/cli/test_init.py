"""``tfgrpo init``: a first project that works at once, and never harms what is there."""

import json
from pathlib import Path

import pytest
from support.cli.init import FILES, files
from support.tools import run_pytest, tfgrpo


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_empty_folder_becomes_a_project_that_learns_at_once(folder: Path) -> None:
    out = tfgrpo("init")
    assert files(folder) == FILES | {"pyproject.toml"}
    assert all(f"wrote  {name}" in out for name in FILES)
    assert out.endswith("next: pytest --tfgrpo\n")

    done = run_pytest(folder, "--tfgrpo")
    assert done.returncode == 0, done.stdout
    (run,) = (folder / "out" / folder.name).glob("runs/*")
    report = json.loads((run / "report.json").read_text())
    assert report["gain"]["difference"] >= 0.2
    assert report["gain"]["ci95"][0] > 0
    assert report["library"]["lessons"]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "pytest.ini",
            "",
            "[pytest]\ntfgrpo_actor = offline\ntfgrpo_group_size = 5\ntfgrpo_acceptance = off\n",
        ),
        (
            "pytest.ini",
            "# ours\n[pytest]  ; here\naddopts = -q\n",
            "# ours\n[pytest]  ; here\ntfgrpo_actor = offline\ntfgrpo_group_size = 5\n"
            "tfgrpo_acceptance = off\naddopts = -q\n",
        ),
        (
            "tox.ini",
            "[tox]\n[pytest]",
            "[tox]\n[pytest]\ntfgrpo_actor = offline\ntfgrpo_group_size = 5\ntfgrpo_acceptance = off",
        ),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = -q\n",
            "[tool:pytest]\ntfgrpo_actor = offline\ntfgrpo_group_size = 5\ntfgrpo_acceptance = off\n"
            "addopts = -q\n",
        ),
        (
            "pyproject.toml",
            '[project]\nname = "x"',
            '[project]\nname = "x"\n\n[tool.pytest.ini_options]\ntfgrpo_actor = "offline"\n'
            'tfgrpo_group_size = 5\ntfgrpo_acceptance = "off"\n',
        ),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options] # ours\naddopts = "-q"\n[tool.x]\n',
            '[tool.pytest.ini_options] # ours\ntfgrpo_actor = "offline"\ntfgrpo_group_size = 5\n'
            'tfgrpo_acceptance = "off"\n'
            'addopts = "-q"\n[tool.x]\n',
        ),
    ],
)
def test_the_ini_file_in_use_is_added_to(folder: Path, name: str, before: str, after: str) -> None:
    (folder / name).write_text(before)
    tfgrpo("init")
    assert (folder / name).read_text() == after
    assert files(folder) == FILES | {name}
    assert run_pytest(folder, "--tfgrpo", "--tfgrpo-dry-run").returncode == 0
