"""``tfgrpo init``: a first project that works at once, and never harms what is there."""

import tomllib
from pathlib import Path

import pytest
from support.cli.init import FILES, files
from support.tools import tfgrpo

from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.packs import load_packs
from pytest_tfgrpo.suite.scenario_files import Suite, load_scenarios

KEYS = {"tfgrpo_actor": "offline", "tfgrpo_group_size": 5, "tfgrpo_acceptance": "off"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_has_both_splits_and_a_pack_for_both_domains(folder: Path) -> None:
    tfgrpo("init")
    suite = [
        s
        for path in sorted(folder.glob("fixtures/*"))
        for s in load_scenarios(path, root=folder, kinds=KINDS)
    ]
    together = Suite()
    assert [problem for s in suite if (problem := together.add(s))] == []
    splits = [s.split for s in suite]
    assert (splits.count("train"), splits.count("eval")) == (12, 10)
    assert load_packs(folder / "prompt-packs").keys() == {"*"}


def test_another_folder_can_be_named(folder: Path) -> None:
    out = tfgrpo("init", "new/deep")
    assert files(folder) == {f"new/deep/{name}" for name in FILES | {"pyproject.toml"}}
    assert out.endswith("next: cd new/deep && pytest --tfgrpo\n")
    assert tfgrpo("init", "my suite").endswith("next: cd 'my suite' && pytest --tfgrpo\n")


def test_files_that_exist_are_kept_and_written_anew_only_by_force(folder: Path) -> None:
    mine = folder / "fixtures" / "words.scenario.yaml"
    mine.parent.mkdir()
    mine.write_text("mine")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntfgrpo_actor = "python:a:b"\n')
    out = tfgrpo("init")
    assert mine.read_text() == "mine"
    assert "kept   fixtures/words.scenario.yaml, which already exists" in out
    assert "kept   pyproject.toml, which already sets tfgrpo_actor" in out
    tfgrpo("init", "--force")
    assert "scenarios:" in mine.read_text()
    assert "python:a:b" in (folder / "pyproject.toml").read_text()


def test_pytests_own_order_of_ini_files_is_followed(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (folder / "tox.ini").write_text("[pytest]\naddopts = -q\n")
    tfgrpo("init")
    assert "tfgrpo_actor" in (folder / "tox.ini").read_text()
    assert "tfgrpo_actor" not in (folder / "pyproject.toml").read_text()


def test_a_suite_with_testpaths_is_told_where_the_scenarios_are(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    assert tfgrpo("init").endswith("next: pytest --tfgrpo fixtures\n")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("pyproject.toml", "[tool.pytest\n", "cannot be read"),
        ("pytest.ini", "no section\n", "cannot be read"),
        ("pyproject.toml", 'tool.pytest.ini_options.addopts = "-q"\n', "add these lines by hand"),
        ("pyproject.toml", '[tool.pytest]\nini_options = {addopts = "-q"}\n', "add these lines by hand"),
        ("pyproject.toml", "tool = 3\n", "add these lines by hand"),
        ("pytest.ini", "[pytest]\n\xff", "cannot be read"),
    ],
)
def test_an_ini_file_that_cannot_be_added_to_stops_before_anything_is_written(
    folder: Path, name: str, text: str, reason: str
) -> None:
    (folder / name).write_text(text, encoding="latin-1")
    err = tfgrpo("init", code=1)
    assert name in err
    assert reason in err
    assert files(folder) == {name}
    assert (folder / name).read_text(encoding="latin-1") == text


def test_a_multiline_string_that_looks_like_the_section_is_not_mistaken_for_it(folder: Path) -> None:
    text = '[tool.x]\ntext = """\n[tool.pytest.ini_options]\n"""\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    (folder / "pyproject.toml").write_text(text)
    tfgrpo("init", code=1)
    assert (folder / "pyproject.toml").read_text() == text


def test_a_folder_that_cannot_be_written_is_an_expected_error(folder: Path) -> None:
    (folder / "file").write_text("")
    assert "file" in tfgrpo("init", "file", code=1)


def test_the_ini_lines_are_what_toml_says(folder: Path) -> None:
    tfgrpo("init")
    keys = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert keys == KEYS


@pytest.mark.parametrize("end", ["", "\n"])
def test_what_is_added_to_an_ini_file_stands_behind_a_blank_line(folder: Path, end: str) -> None:
    (folder / "pyproject.toml").write_text(f'[project]\nname = "x"{end}')
    tfgrpo("init")
    text = (folder / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "x"\n\n[tool.pytest.ini_options]\ntfgrpo_actor = "offline"\n')


def test_the_output_folder_of_the_ini_file_is_the_one_that_git_ignores(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\ntfgrpo_out = results/agents\n")
    assert "wrote  results/agents/.gitignore" in tfgrpo("init")
    assert (folder / "results/agents/.gitignore").exists()
    assert not (folder / "out").exists()
