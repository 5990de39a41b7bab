"""The command ``tfgrpo import``."""

from pathlib import Path

import pytest
from support.project import Project

from pytest_tfgrpo import cli
from pytest_tfgrpo.cli.suite import arguments
from pytest_tfgrpo.suite.documents.csv_text import ANSWERS
from pytest_tfgrpo.suite.imports.formats import FORMATS


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
    assert capsys.readouterr().out == ("2 scenarios in suite/sums.scenarios.jsonl\n2 of 2 checks can fail\n")
    done = (
        project.agent("def solve(context):\n    return '3'\n").ini(actor="python:agent2:solve").run("suite")
    )
    done.assert_outcomes(passed=1, failed=1)
    assert cli.main(["import", "csv", "sums.csv", *options]) == 1
    assert "sums.scenarios.jsonl exists" in capsys.readouterr().err
