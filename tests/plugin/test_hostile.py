"""What hostile actors, names and files can do to a terminal, a path or an exit code: nothing."""

import shutil

import pytest
from support.project import Project

from pytest_tfgrpo.core.errors import JournalError

MARKED = """
import pytest

@pytest.mark.tfgrpo(domain="d", prompt="one", split="eval")
def test_it(rollout):
    pass
"""


def test_what_a_crashing_actor_says_reaches_the_terminal_without_its_codes(project: Project) -> None:
    project.write(
        "loud.py", 'def solve(context):\n    raise RuntimeError("\\x1b[2J\\x1b]0;mine\\x07 \\u202e")\n'
    )
    project.write("test_it.py", MARKED)
    result = project.run("--tfgrpo-actor", "python:loud:solve", "--color=no")
    result.stdout.fnmatch_lines(["*crash: RuntimeError:*", "run it again: *"])
    text = result.stdout.str()
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_a_run_to_resume_is_a_name_not_a_path(project: Project) -> None:
    project.ini(actor="python:agent:crash").scenarios(train=0)
    project.learn("--tfgrpo-budget-s", "0.001")
    (folder,) = project.runs()
    shutil.move(folder, project.root / "elsewhere")
    result = project.learn("--tfgrpo-resume", "../../../elsewhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no run '../../../elsewhere'*"])


@pytest.mark.parametrize("learning", [True, False])
def test_a_report_that_cannot_be_written_fails_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, learning: bool
) -> None:
    def full(*args: object) -> None:
        raise JournalError("cannot write report.html: the disk is full")

    monkeypatch.setattr("pytest_tfgrpo.launch.conclusion.write", full)
    project.scenarios(train=0)
    result = project.run("--tfgrpo-out", "out", *(["--tfgrpo"] if learning else []))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*cannot write report.html: the disk is full*"])
