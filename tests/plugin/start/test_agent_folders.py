"""What agents leave behind is never collected, and does not run."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.plugin.agent_folders import own_test, run_of_an_earlier_version
from support.project import Project

from pytest_tfgrpo.plugin.start.agent_folders import CONFIGURED, refuse_arguments


@pytest.mark.parametrize("where", ["out", "results/agents", "elsewhere/deep/in/the/project"])
def test_folders_of_runs_are_not_collected_wherever_they_are(project: Project, where: str) -> None:
    run_of_an_earlier_version(project.root, where)
    own_test(project).run().assert_outcomes(passed=1)
    assert not (project.root / "planted-code-ran").exists()


def test_nothing_else_in_the_output_folder_is_collected(project: Project) -> None:
    run_of_an_earlier_version(project.root, "results")
    project.write("results/conftest.py", "raise AssertionError\n")
    project.write("results/demo/test_planted.py", "def test_planted(): pass\n")
    own_test(project).ini(out="results").run().assert_outcomes(passed=1)
    own_test(project).ini().run("--tfgrpo-out=results").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("where", "argument"),
    [
        ("out", "out"),
        ("out", "out/demo/runs"),
        ("out", "{run}"),
        ("out", "{run}/work"),
        ("out", "{workspace}"),
        ("out", "{workspace}/test_planted.py"),
        ("out", "{workspace}/test_planted.py::test_planted"),
        ("out", "{workspace}/planted.scenario.json"),
        ("out", "out/../{run}"),
        ("elsewhere", "{run}"),
        ("elsewhere", "{workspace}/test_planted.py"),
    ],
)
def test_a_folder_of_runs_as_an_argument_is_an_error(project: Project, where: str, argument: str) -> None:
    run = run_of_an_earlier_version(project.root, where)
    (workspace,) = (run / "work").iterdir()
    places = {"run": run.relative_to(project.root), "workspace": workspace.relative_to(project.root)}
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=project.root),
        known_args_namespace=SimpleNamespace(file_or_dir=["tests", argument.format(**places)]),
        rootpath=project.root,
        stash=pytest.Stash(),
        pluginmanager=pytest.PytestPluginManager(),
    )
    with pytest.raises(pytest.UsageError, match=r"to which runs and their agents write.*pass other paths"):
        refuse_arguments(cast("pytest.Config", config))


def test_a_folder_of_runs_as_an_argument_is_a_usage_error_before_any_conftest(project: Project) -> None:
    run = run_of_an_earlier_version(project.root)
    (workspace,) = (run / "work").iterdir()
    planted = f"{workspace.relative_to(project.root)}/test_planted.py::test_planted"
    result = own_test(project).run("tests", planted)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*to which runs and their agents write*pass other paths*"])
    assert not (project.root / "planted-code-ran").exists()


def test_nor_is_a_run_collected_from_a_folder_above_the_project(project: Project) -> None:
    run_of_an_earlier_version(project.root / "one")
    own_test(project).write("one/pytest.ini", "[pytest]\n").run().assert_outcomes(passed=1)
    assert not list(project.root.rglob("planted-code-ran"))


def test_workspaces_in_a_project_above_the_temporary_folder_are_not_collected(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("tmp/tfgrpo-workspaces-20260101T000000-00000000.01234567/r0/conftest.py", "1 / 0\n")
    own_test(project).run().assert_outcomes(passed=1)


def test_a_journal_of_somebody_else_hides_no_tests(project: Project) -> None:
    project.write("tests/journal.jsonl", '{"entry": 1}\n')
    project.write("out/demo/test_built.py", "def test_built(): pass\n")
    own_test(project).run().assert_outcomes(passed=2)
    own_test(project).run("out").assert_outcomes(passed=1)
    (project.root / "tests/journal.jsonl").unlink()
    os.mkfifo(project.root / "tests/journal.jsonl")
    own_test(project).run().assert_outcomes(passed=2)


def test_a_project_in_its_own_output_folder_is_collected(project: Project) -> None:
    run_of_an_earlier_version(project.root, ".")
    own_test(project).ini(out=".").run().assert_outcomes(passed=1)
    assert not (project.root / "planted-code-ran").exists()
    shutil.rmtree(project.root / "demo")
    own_test(project).ini(out="..").run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("given", "testpaths", "refused"),
    [
        (["tests", "tests/a", "other"], [], False),
        (["tests", "tests/a", "{run}"], [], True),
        (["{run}/work", "tests"], [], True),
        ([], [], False),
        ([], ["tests"], False),
        ([], ["tests", "{run}"], True),
    ],
)
def test_each_folder_that_pytest_would_start_in_is_looked_at(
    tmp_path: Path, given: list[str], testpaths: list[str], refused: bool
) -> None:
    run = run_of_an_earlier_version(tmp_path, "elsewhere").relative_to(tmp_path).as_posix()
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=tmp_path),
        known_args_namespace=SimpleNamespace(file_or_dir=[word.format(run=run) for word in given]),
        getini=lambda name: [word.format(run=run) for word in testpaths] if name == "testpaths" else "",
        rootpath=tmp_path,
        stash=pytest.Stash(),
        pluginmanager=pytest.PytestPluginManager(),
    )
    with pytest.raises(pytest.UsageError) if refused else nullcontext():
        refuse_arguments(cast("pytest.Config", config))


@pytest.mark.parametrize(
    ("flag", "environment", "ini", "refused"),
    [
        ("mine", "other", "other", True),
        (None, "mine", "other", True),
        (None, "", "mine", True),
        ("other", "mine", "mine", False),
        (None, "other", "mine", False),
    ],
)
def test_the_output_folder_is_that_of_the_flag_then_of_the_environment_then_of_the_ini_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flag: str | None,
    environment: str,
    ini: str,
    refused: bool,
) -> None:
    (tmp_path / "mine" / "demo" / "runs").mkdir(parents=True)
    monkeypatch.setenv("TFGRPO_OUT", environment)
    plugins = pytest.PytestPluginManager()
    plugins.register(object(), CONFIGURED)
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=tmp_path),
        known_args_namespace=SimpleNamespace(file_or_dir=["mine"], tfgrpo_out=flag),
        getini=lambda name: ini if name == "tfgrpo_out" else [],
        rootpath=tmp_path,
        stash=pytest.Stash(),
        pluginmanager=plugins,
    )
    with pytest.raises(pytest.UsageError) if refused else nullcontext():
        refuse_arguments(cast("pytest.Config", config))
