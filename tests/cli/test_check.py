"""The command ``tfgrpo check``."""

from pathlib import Path

import pytest

from pytest_tfgrpo import cli

GOOD = "id: {id}\nsplit: {split}\nprompt: Say {id}.\nchecks: [{{kind: {kind}}}]\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = 'own code' more\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scenario(file: str, id_: str, kind: str, split: str = "eval") -> None:
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(GOOD.format(id=id_, split=split, kind=kind))


def check(*args: str) -> int:
    return cli.main(["check", *args])


def test_a_suite_is_read_whole_or_in_part_from_any_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario("a.scenario.yaml", "a", "exact, value: a")
    scenario("deep/b.scenario.yaml", "b", "exact, value: b", split="train")
    assert check() == 0
    assert capsys.readouterr().out == "ok  2 scenarios in 2 files: 1 train, 1 eval\n"
    monkeypatch.chdir(here / "deep")
    assert check("b.scenario.yaml") == 0
    assert capsys.readouterr().out == "ok  1 scenario in 1 file: 1 train\n"
    assert check() == 0
    assert capsys.readouterr().out == "ok  2 scenarios in 2 files: 1 train, 1 eval\n"
    monkeypatch.chdir(here)
    scenario("c.scenario.yaml", "c", "exact, value: c", split="dev")
    assert check("c.scenario.yaml", "deep") == 0
    assert capsys.readouterr().out == "ok  2 scenarios in 2 files: 1 train, 1 dev\n"


def test_all_that_is_wrong_is_said_with_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    scenario("a.scenario.yaml", "a", "exact")
    scenario("b.scenario.yaml", "b", "exact, value: b")
    scenario("deep/b.scenario.yaml", "b", "exact, value: c")
    assert check() == 1
    told = capsys.readouterr().err
    assert "a.scenario.yaml:4: #/checks/0: missing key 'value'" in told
    assert "deep/b.scenario.yaml:1: the id 'b' is taken by b.scenario.yaml:1" in told


def test_a_folder_without_scenarios_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert check() == 1
    assert "no scenario was found in" in capsys.readouterr().err


def test_a_file_of_another_name_is_named_with_that_of_a_scenario_file(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "suite").mkdir()
    (here / "suite" / "first.yaml").touch()
    (here / "suite" / "old.csv").touch()
    assert check("suite") == 1
    told = capsys.readouterr().err
    assert f"no scenario was found in {here}/suite (looked for" in told
    assert "rename first.yaml to first.scenario.yaml, rename old.csv to old.scenarios.csv if" in told


def test_a_kind_that_only_the_project_knows_is_passed_over_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario("a.scenario.yaml", "a", "polite, least: 3")
    assert check() == 1
    assert capsys.readouterr().err.endswith(
        "\n--kind NAME passes over a kind that your conftest.py supplies\n"
    )
    assert check("--kind", "polite") == 0


def test_code_is_found_where_pytest_finds_it(here: Path) -> None:
    scenario("a.scenario.yaml", "a", "python, target: 'checks_of_cli_check:right'")
    assert check() == 1
    (here / "own code").mkdir()
    (here / "own code" / "checks_of_cli_check.py").write_text("def right(context): return True\n")
    assert check() == 0


def test_code_is_found_in_each_folder_of_a_list(here: Path) -> None:
    (here / "pytest.ini").unlink()
    (here / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["none", "later code"]\n')
    scenario("a.scenario.yaml", "a", "python, target: 'checks_of_a_later_folder:right'")
    (here / "later code").mkdir()
    (here / "later code" / "checks_of_a_later_folder.py").write_text("def right(context): return True\n")
    assert check() == 0
