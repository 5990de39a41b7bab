"""``tfgrpo init --example coding``: it works at once, learns by its documented rule, and resists cheats."""

import shutil
import tomllib
from pathlib import Path

import pytest
from support import ROOT
from support.tools import tfgrpo

from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.packs import load_packs
from pytest_tfgrpo.suite.scenario_files import Suite, load_scenarios

EXAMPLE = ROOT / "docs" / "examples" / "coding"
REPOSITORIES = ("brackets", "cart", "leap", "pages", "roman")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    tfgrpo("init", "--example", "coding", str(folder))
    return folder


def files(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if "__pycache__" not in path.parts and path.parts[0] != "out"}


def test_the_example_is_copied_whole_but_for_its_ini_file(made: Path) -> None:
    assert files(made) == (files(EXAMPLE) - {"pytest.ini"}) | {"pyproject.toml"}
    assert {name.split("/")[1] for name in files(made) if name.startswith("fixtures/")} == {
        *REPOSITORIES,
        "conftest.py",
    }
    keys = tomllib.loads((made / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert keys == {
        "tfgrpo_actor": "command:python3 agent.py --seed {seed}",
        "tfgrpo_command_output": "claude",
        "tfgrpo_group_size": 5,
    }


def test_the_suite_is_sound_and_its_pack_is_stamped(made: Path) -> None:
    suite = [
        scenario
        for path in sorted(made.glob("fixtures/*/*.scenario.yaml"))
        for scenario in load_scenarios(path, root=made, kinds=KINDS)
    ]
    together = Suite()
    assert [problem for s in suite if (problem := together.add(s))] == []
    assert sorted((s.split, s.id) for s in suite) == [
        ("eval", "brackets"), ("eval", "pages"), ("eval", "roman"), ("train", "cart"), ("train", "leap"),
    ]  # fmt: skip
    assert load_packs(made / "prompt-packs").keys() == {"coding"}
    assert all({c.kind for c in s.checks} == {"command", "file"} for s in suite)


def test_what_is_there_is_kept_and_the_ini_file_in_use_is_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("mine")
    (tmp_path / "tox.ini").write_text("[pytest]\naddopts = -q\n")
    out = tfgrpo("init", "--example", "coding")
    assert (tmp_path / "agent.py").read_text() == "mine"
    assert "kept   agent.py, which already exists" in out
    assert "tfgrpo_actor = command:python3 agent.py --seed {seed}\n" in (tmp_path / "tox.ini").read_text()
    assert not (tmp_path / "pytest.ini").exists()
    assert out.endswith("next: pytest --tfgrpo\n")


def test_an_unknown_example_is_refused_with_the_nearest_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "unknown example 'codign'; known: coding, history; did you mean 'coding'?" in tfgrpo(
        "init", "--example", "codign", code=1
    )
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_in_the_example_leaves_behind_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source" / "docs" / "examples" / "coding"
    shutil.copytree(EXAMPLE, source)
    for name in ("out/coding/x", "fixtures/__pycache__/x.pyc", ".pytest_cache/x"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    monkeypatch.setattr(
        "pytest_tfgrpo.cli.suite.init.__file__", str(tmp_path / "source" / "a" / "b" / "c" / "d.py")
    )
    tfgrpo("init", "--example", "coding", str(tmp_path / "new"))
    assert files(tmp_path / "new") == (files(EXAMPLE) - {"pytest.ini"}) | {"pyproject.toml"}
    assert [path.name for path in (tmp_path / "new" / "out").iterdir()] == [".gitignore"]
