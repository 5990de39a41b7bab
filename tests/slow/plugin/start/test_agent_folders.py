"""What agents leave behind is never collected, and does not run."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support.plugin.agent_folders import own_test, run_of_an_earlier_version
from support.project import Project
from support.tools import run_pytest

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
    found = ""
    while not found and process.poll() is None:
        time.sleep(0.01)
        found = told.read_text() if told.exists() else ""
    process.send_signal(signal.SIGKILL)  # which may come while another agent writes the file
    process.communicate()
    return Path(found)


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


def test_pytest_started_in_a_folder_of_a_run_is_a_usage_error(project: Project) -> None:
    run = run_of_an_earlier_version(project.root)
    (workspace,) = (run / "work").iterdir()
    for folder in (run, workspace):
        done = run_pytest(folder)
        assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert not (project.root / "planted-code-ran").exists()


def test_an_agent_can_run_its_own_tests_in_its_workspace(project: Project, temporary: Path) -> None:
    folder = temporary / "tfgrpo-workspaces-20260101T000000-00000000.01234567" / "r0"
    folder.mkdir(parents=True)
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    for arguments in ([], ["test_own.py"], ["."], [str(folder)]):
        done = run_pytest(folder, *arguments)
        assert "1 passed" in done.stdout, done.stdout + done.stderr
    (temporary / "pytest.ini").write_text("[pytest]\n")  # rootdir is above the workspace
    assert "1 passed" in run_pytest(folder, "test_own.py").stdout


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
