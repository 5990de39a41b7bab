"""The command ``tfgrpo import``."""

import json
from pathlib import Path

import pytest
from support.project import Project

from pytest_tfgrpo import cli
from pytest_tfgrpo.cli.suite import arguments
from pytest_tfgrpo.suite.documents.csv_text import ANSWERS
from pytest_tfgrpo.suite.imports.formats import FORMATS

NO_SPLIT = "no split is named, so plain pytest runs about 3 in 10; --split eval --force makes it all"


def test_the_command_offers_what_there_is() -> None:
    assert set(arguments.FORMATS) == set(FORMATS)
    assert set(arguments.EXPECTED) == {*ANSWERS, "similar", "rubric"}


def test_what_is_imported_runs_as_a_suite(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.root)
    Path("sums.csv").write_text("question,gold,part\nthree?,3,eval\nfour?,4,eval\n")
    options = ["--into", "suite", "--answer", "gold", "--split", "part"]
    assert cli.main(["import", "csv", "sums.csv", *options]) == 0
    assert capsys.readouterr().out == (
        "2 scenarios in suite/sums.scenarios.jsonl\n2 of 2 checks can fail\nnext: pytest suite\n"
    )
    done = (
        project.agent("def solve(context):\n    return '3'\n").ini(actor="python:agent2:solve").run("suite")
    )
    done.assert_outcomes(passed=1, failed=1)
    assert cli.main(["import", "csv", "sums.csv", *options]) == 1
    assert "sums.scenarios.jsonl exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "split", "said"),
    [
        ((), None, f"{NO_SPLIT}\n"),
        (("--split", "eval"), "eval", ""),
    ],
)
def test_all_that_is_imported_gets_the_split_that_you_name(
    options: tuple[str, ...],
    split: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\ntests: [{vars: {q: three?}, assert: [{type: equals, value: '3'}]}]\n"
    )
    assert cli.main(["import", "promptfoo", "promptfooconfig.yaml", "--into", "suite", *options]) == 0
    assert capsys.readouterr().out.endswith(f"can fail\n{said}next: pytest suite\n")
    (line,) = Path("suite/promptfooconfig.scenarios.jsonl").read_text().splitlines()
    assert json.loads(line).get("split") == split
    Path("promptfooconfig.yaml").rename(".yaml")
    assert cli.main(["import", "promptfoo", ".yaml", "--into", "hidden", *options]) == 0
    assert Path("hidden/promptfoo.scenarios.jsonl").is_file()


def test_a_column_that_holds_splits_is_pointed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sums.csv").write_text("question,answer,split\nthree?,3,eval\n")
    assert cli.main(["import", "csv", "sums.csv", "--into", "suite"]) == 0
    assert "\n--split split --force takes the column `split` along\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("my promptfooconfig.yaml", "tfgrpo import promptfoo 'my promptfooconfig.yaml' --into FOLDER\n"),
        ("goldens.csv", "tfgrpo import csv goldens.csv --into FOLDER\n"),
        (
            "PromptFoo.YAML",
            "tfgrpo import promptfoo PromptFoo.YAML --into FOLDER\n",
        ),
        (
            "goldens.json",
            "tfgrpo import FORMAT goldens.json --into FOLDER; FORMAT is one of promptfoo,",
        ),
    ],
)
def test_a_file_in_place_of_the_format_is_answered_with_the_command(
    file: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["import", file])
    assert f"argument FORMAT: is missing before the file: {command}" in capsys.readouterr().err
