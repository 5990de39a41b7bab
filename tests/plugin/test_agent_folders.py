"""What agents leave behind is never collected, and does not run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.project import Project
from support.tools import run_pytest

from pytest_tfgrpo.plugin.agent_folders import refuse_arguments

PLANTER = """\
import os
import sys
import time
from pathlib import Path

ran = f"from pathlib import Path\\nPath({str(Path(sys.argv[1]) / 'planted-code-ran')!r}).touch()\\n"
Path("conftest.py").write_text(ran)
Path("test_planted.py").write_text(ran + "def test_planted(): pass\\n")
Path("sub").mkdir()
Path("sub/test_deeper.py").write_text(ran + "def test_deeper(): pass\\n")
Path("planted.scenario.json").write_text(
    '{"id": "planted", "split": "eval", "prompt": "p", "checks": [{"kind": "exact", "value": "3"}]}'
)
Path(sys.argv[1], "planted").write_text(os.getcwd())
time.sleep(600)
"""
"""An agent that writes tests, tells where, and hangs."""


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the temporary folder of all that the test runs, outside the project."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def killed_while_an_agent_plants_tests(project: Project) -> Path:
    """Kill a run, and return the folder that its agent worked in."""
    project.scenarios(train=0, sweep=1).write("plant.py", PLANTER)
    actor = shlex.join([sys.executable, "plant.py", str(project.root)])
    process = project.start(f"--tfgrpo-actor=command:{actor}")
    told = project.root / "planted"
    while not (told.exists() and told.read_text()) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return Path(told.read_text())


def outcomes(done: str) -> list[str]:
    return [line for line in done.splitlines() if "::" in line]


def test_tests_that_a_killed_agent_left_do_not_run(project: Project, temporary: Path) -> None:
    folder = killed_while_an_agent_plants_tests(project)
    assert (folder / "test_planted.py").exists()
    assert not folder.is_relative_to(project.root)
    done = run_pytest(project.root, "-v", "--tfgrpo-actor=python:agent:right")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project.root / "planted-code-ran").exists()
    assert {line.partition("::")[0] for line in outcomes(done.stdout)} == {"suite.scenario.json"}


def run_of_an_earlier_version(root: Path, out: str = "out") -> Path:
    """Write a killed run, with a workspace in its folder, as earlier versions left it; return its folder."""
    run = root / out / "demo" / "runs" / "20260101T000000-00000000"
    workspace = run / "work" / "20260101T000000-00000000.e1.one.r0"
    workspace.mkdir(parents=True)
    header = '{"n":1,"event":"run","data":{"schema":"tfgrpo.journal/1","run_id":"r"},"crc":"00000000"}\n'
    (run / "journal.jsonl").write_text(header)
    code = f"from pathlib import Path\nPath({str(root / 'planted-code-ran')!r}).touch()\n"
    (workspace / "conftest.py").write_text(code)
    (workspace / "test_planted.py").write_text(f"{code}def test_planted(): pass\n")
    (workspace / "planted.scenario.json").write_text(
        json.dumps({"id": "planted", "split": "eval", "prompt": "p", "checks": []})
    )
    return run


def own_test(project: Project) -> Project:
    return project.write("tests/test_own.py", "def test_own(): pass\n")


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
    "argument",
    [
        "out",
        "out/demo/runs",
        "{run}",
        "{run}/work",
        "{workspace}",
        "{workspace}/test_planted.py",
        "{workspace}/test_planted.py::test_planted",
        "{workspace}/planted.scenario.json",
        "out/../{run}",
    ],
)
def test_a_folder_of_runs_as_an_argument_is_an_error(project: Project, argument: str) -> None:
    run = run_of_an_earlier_version(project.root)
    (workspace,) = (run / "work").iterdir()
    places = {"run": run.relative_to(project.root), "workspace": workspace.relative_to(project.root)}
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=project.root),
        known_args_namespace=SimpleNamespace(file_or_dir=["tests", argument.format(**places)]),
        rootpath=project.root,
        stash=pytest.Stash(),
        pluginmanager=pytest.PytestPluginManager(),
    )
    with pytest.raises(pytest.UsageError, match=r"to which runs and their agents write.*give other paths"):
        refuse_arguments(cast("pytest.Config", config))


def test_a_folder_of_runs_as_an_argument_is_a_usage_error_before_any_conftest(project: Project) -> None:
    run = run_of_an_earlier_version(project.root)
    (workspace,) = (run / "work").iterdir()
    planted = f"{workspace.relative_to(project.root)}/test_planted.py::test_planted"
    result = own_test(project).run("tests", planted)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*to which runs and their agents write*give other paths*"])
    assert not (project.root / "planted-code-ran").exists()


def test_pytest_started_in_a_folder_of_a_run_is_a_usage_error(project: Project) -> None:
    run = run_of_an_earlier_version(project.root)
    (workspace,) = (run / "work").iterdir()
    for folder in (run, workspace):
        done = run_pytest(folder)
        assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
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


def test_an_agent_can_run_its_own_tests_in_its_workspace(project: Project, temporary: Path) -> None:
    folder = temporary / "tfgrpo-workspaces-20260101T000000-00000000.01234567" / "r0"
    folder.mkdir(parents=True)
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    for arguments in ([], ["test_own.py"], ["."], [str(folder)]):
        done = run_pytest(folder, *arguments)
        assert "1 passed" in done.stdout, done.stdout + done.stderr
    (temporary / "pytest.ini").write_text("[pytest]\n")  # rootdir is above the workspace
    assert "1 passed" in run_pytest(folder, "test_own.py").stdout


def test_a_journal_of_somebody_else_hides_no_tests(project: Project) -> None:
    project.write("tests/journal.jsonl", '{"entry": 1}\n')
    project.write("out/demo/test_built.py", "def test_built(): pass\n")
    own_test(project).run().assert_outcomes(passed=2)
    own_test(project).run("out").assert_outcomes(passed=1)
    (project.root / "tests/journal.jsonl").unlink()
    os.mkfifo(project.root / "tests/journal.jsonl")
    own_test(project).run().assert_outcomes(passed=2)


@pytest.mark.parametrize("arguments", [(), ("-n", "1")])
@pytest.mark.parametrize("file", ["suite.scenario.json", "deep/test_it.py"])
def test_an_output_folder_that_holds_a_part_of_the_suite_is_a_usage_error(
    project: Project, file: str, arguments: tuple[str, ...]
) -> None:
    """The second run would go without it, and say nothing."""
    own_test(project).plugins("xdist").scenarios(train=0).write(f"results/{file}", "def test_it(): pass\n")
    if file == "suite.scenario.json":
        (project.root / file).rename(project.root / "results" / file)
    result = project.learn(*arguments, "--tfgrpo-out=results")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    held = project.root / "results"
    assert f"out: {str(held)!r} holds a part of the suite, {str(held / file)!r}, and pytest" in error
    assert "set tfgrpo_out to another folder" in error
    assert project.calls == []
    assert project.run("--tfgrpo-out=other").ret == 0


def test_a_project_in_its_own_output_folder_is_collected(project: Project) -> None:
    run_of_an_earlier_version(project.root, ".")
    own_test(project).ini(out=".").run().assert_outcomes(passed=1)
    assert not (project.root / "planted-code-ran").exists()
    shutil.rmtree(project.root / "demo")
    own_test(project).ini(out="..").run().assert_outcomes(passed=1)
