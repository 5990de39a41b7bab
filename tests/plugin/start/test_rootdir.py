"""A command finds the same ini file and rootdir each time, whatever its options are."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.project import Project

from pytest_tfgrpo.plugin.start.rootdir import require_unmoved


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder outside the project, with which it shares no ini file."""
    return tmp_path_factory.mktemp("other")


def failing_gate(project: Project) -> Project:
    """Write a suite whose gate fails, by a rule that the ini file sets."""
    return project.ini(actor="python:agent:wrong", gate_min_mean=0.9).scenarios()


def test_an_output_folder_after_a_space_cannot_turn_a_failing_gate_green(
    project: Project, other: Path
) -> None:
    failing_gate(project)
    spaced = [project.learn("--tfgrpo-out", str(other / "out"), "--tfgrpo-actor=offline") for _ in range(2)]
    assert [result.ret for result in spaced] == [pytest.ExitCode.USAGE_ERROR] * 2
    for result in spaced:
        result.stderr.fnmatch_lines([f"*write --tfgrpo-out={other}/out*"])
    assert project.calls == []
    joined = [project.learn(f"--tfgrpo-out={other}/out") for _ in range(2)]
    assert [result.ret for result in joined] == [pytest.ExitCode.TESTS_FAILED] * 2


@pytest.mark.parametrize(
    ("flag", "name", "is_folder"),
    [
        ("--tfgrpo-out", "made-by-the-run", None),
        ("--tfgrpo-record", "made-by-the-run.jsonl", None),
        ("--tfgrpo-out", "out", True),
        ("--tfgrpo-resume", "out", True),
        ("--tfgrpo-prompt-packs", "packs", True),
        ("--tfgrpo-library", "library.json", False),
        ("--tfgrpo-baseline", "main.json", False),
        ("--tfgrpo-record", "recording.jsonl", False),
        ("--tfgrpo-models", "models.yaml", False),
        ("--tfgrpo-gates", "gates.yaml", False),
        ("--tfgrpo-tools", "tools.py", False),
        ("--tfgrpo-task-id", "task", True),
    ],
)
@pytest.mark.parametrize("by_environment", [False, True])
def test_any_value_after_a_space_that_moves_the_ini_file_is_refused(
    project: Project,
    other: Path,
    monkeypatch: pytest.MonkeyPatch,
    flag: str,
    name: str,
    is_folder: bool | None,
    by_environment: bool,
) -> None:
    path = other / name
    if is_folder is not None:
        path.mkdir() if is_folder else path.touch()
    arguments: tuple[str, ...] = (flag, str(path))
    if by_environment:
        monkeypatch.setenv("PYTEST_ADDOPTS", f"-p tfgrpo {flag} {path}")
        arguments = ()
    with pytest.raises(pytest.UsageError) as refused:
        require_unmoved(started(failing_gate(project), *arguments))
    said = str(refused.value)
    assert said.startswith(f"{flag} '{path}': ")
    assert said.endswith(f"write {flag}={path}")


def started(project: Project, *arguments: str, **options: object) -> pytest.Config:
    """Return what pytest knows of its command line when it has parsed it."""
    invocation = SimpleNamespace(dir=project.root, args=arguments)
    config = SimpleNamespace(
        invocation_params=invocation,
        rootpath=project.root,
        getoption=lambda name, default=None: options.get(name, default),
    )
    return cast("pytest.Config", config)


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_value_after_a_space_that_moves_the_ini_file_is_a_usage_error(
    project: Project, other: Path, monkeypatch: pytest.MonkeyPatch, by_environment: bool
) -> None:
    path = other / "library.json"
    path.touch()
    arguments: tuple[str, ...] = ("--tfgrpo-library", str(path))
    if by_environment:
        monkeypatch.setenv("PYTEST_ADDOPTS", f"-p tfgrpo --tfgrpo-library {path}")
        arguments = ()
    result = failing_gate(project).run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*: --tfgrpo-library '{path}': *write --tfgrpo-library={path}*"])
    assert "Traceback" not in result.stderr.str()


def test_a_relative_value_is_refused_where_it_moves_the_ini_file(project: Project, other: Path) -> None:
    failing_gate(project).write("sub/pytest.ini", "[pytest]\n").write("sub/test_x.py", "def test_x(): pass\n")
    (project.root / "packs").mkdir()
    spaced = project.run("sub", "--tfgrpo-prompt-packs", "packs")  # the ini file would be that of the project
    assert spaced.ret == pytest.ExitCode.USAGE_ERROR
    assert project.run("sub", "--tfgrpo-prompt-packs=packs").ret == 0


def test_a_file_of_arguments_counts_too(project: Project, other: Path) -> None:
    failing_gate(project).write("arguments.txt", f"--tfgrpo-out\n{other}\n")
    result = project.learn("@arguments.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*write --tfgrpo-out=*"])


def test_without_an_ini_file_the_rootdir_may_not_move(project: Project, other: Path) -> None:
    (project.root / "pytest.ini").unlink()
    project.scenarios()
    moved = project.learn("--tfgrpo-actor=python:agent:right", "--tfgrpo-out", str(other))
    assert moved.ret == pytest.ExitCode.USAGE_ERROR
    for out in (("--tfgrpo-out", "here"), (f"--tfgrpo-out={other}",)):
        result = project.learn("--tfgrpo-actor=python:agent:right", *out)
        assert result.ret == 0
        result.stdout.fnmatch_lines([f"rootdir: {project.root}"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tfgrpo-out", "out"),
        ("suite.scenario.json", "--tfgrpo-out", "out"),
        ("--tfgrpo-out", "deep/er/out", "."),
        ("--tfgrpo-actor", "python:agent:wrong"),
        ("-c", "pytest.ini", "--tfgrpo-out", "{other}"),
        ("--tfgrpo-out={other}",),
        ("--tfgrpo-task-id", "never-made"),
    ],
)
def test_a_value_after_a_space_that_moves_nothing_is_no_error(
    project: Project, other: Path, arguments: tuple[str, ...]
) -> None:
    words = [word.format(other=other) for word in arguments]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-c", dest="inifilename")
    for flag in ("out", "actor", "task-id"):
        parser.add_argument(f"--tfgrpo-{flag}")
    parser.add_argument("file_or_dir", nargs="*")
    config = started(failing_gate(project), *words, **vars(parser.parse_args(words)))
    require_unmoved(config)
    (project.root / "deep/er/out").mkdir(parents=True)  # as the first run makes it
    (project.root / "out").mkdir()
    require_unmoved(config)


@pytest.mark.parametrize(
    "arguments", [("--tfgrpo-out", "deep/er/out", "."), ("-c", "pytest.ini", "--tfgrpo-out", "{other}")]
)
def test_a_value_after_a_space_that_moves_nothing_is_taken_each_time(
    project: Project, other: Path, arguments: tuple[str, ...]
) -> None:
    failing_gate(project)
    found = [project.learn(*(word.format(other=other) for word in arguments)) for _ in range(2)]
    assert [result.ret for result in found] == [pytest.ExitCode.TESTS_FAILED] * 2
    for result in found:
        result.stdout.fnmatch_lines([f"rootdir: {project.root}", "configfile: pytest.ini"])


def test_addopts_of_the_ini_file_may_have_spaces_since_they_come_after_it(
    project: Project, other: Path
) -> None:
    failing_gate(project)
    ini = (project.root / "pytest.ini").read_text()
    project.write("pytest.ini", f"{ini}addopts = --tfgrpo-out {other}\n")
    for _ in range(2):
        result = project.learn()
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["configfile: pytest.ini"])


def test_the_advice_can_be_pasted_into_a_shell(project: Project, other: Path) -> None:
    folder = other / "my runs $1"
    with pytest.raises(pytest.UsageError) as refused:
        require_unmoved(started(failing_gate(project), "--tfgrpo-out", str(folder)))
    assert shlex.split(str(refused.value).rpartition("; write ")[2]) == [f"--tfgrpo-out={folder}"]


def test_a_value_may_not_lead_to_an_ini_file_below_where_there_is_none(project: Project) -> None:
    (project.root / "pytest.ini").unlink()
    project.write("tests/test_a.py", "def test_a(): pass\n").write("sub/pytest.ini", "[pytest]\n")
    project.write("sub/library.jsonl", "")
    result = project.run("tests", "--tfgrpo-library", "sub/library.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*write --tfgrpo-library=sub/library.jsonl*"])
