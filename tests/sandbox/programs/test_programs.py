"""Where programs are found."""

import os
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox.programs import programs
from pytest_tfgrpo.sandbox.programs.programs import chain, needed, without_shims


@pytest.fixture
def pyenv(tmp_path: Path) -> Path:
    """A pyenv with four versions, and a project in a folder beside it."""
    for version in ("3.11.2", "3.12.9", "3.12.10", "pypy3"):
        (tmp_path / "pyenv" / "versions" / version / "bin").mkdir(parents=True)
    (tmp_path / "pyenv" / "shims").mkdir()
    (tmp_path / "project" / "sub").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({"pyenv/version": "3.11.2\n"}, ["3.11.2"]),
        ({"pyenv/version": "3.12\n"}, ["3.12.10"]),
        ({"pyenv/version": "3.11.2", "project/.python-version": "pypy3\n3.11.2\n"}, ["pypy3", "3.11.2"]),
        ({"project/sub/.python-version": "3.12.9", "project/.python-version": "pypy3"}, ["3.12.9"]),
        ({"pyenv/version": "system"}, []),
        ({}, []),
    ],
)
def test_shims_of_pyenv_give_way_to_the_versions_that_are_chosen(
    pyenv: Path, chosen: dict[str, str], found: list[str]
) -> None:
    for name, text in chosen.items():
        (pyenv / name).write_text(text)
    search = os.pathsep.join(["/bin", str(pyenv / "pyenv" / "shims"), "/opt/shims", "/usr/bin"])
    folders = without_shims(search, pyenv / "project" / "sub").split(os.pathsep)
    real = [str(pyenv / "pyenv" / "versions" / name / "bin") for name in found]
    assert folders == ["/bin", *real, "/opt/shims", "/usr/bin"]


def test_the_variable_of_pyenv_is_stronger_than_its_files(pyenv: Path) -> None:
    (pyenv / "pyenv" / "version").write_text("3.11.2")
    found = without_shims(str(pyenv / "pyenv" / "shims"), pyenv, "3.12.9:pypy3").split(os.pathsep)
    assert [Path(folder).parent.name for folder in found] == ["3.12.9", "pypy3"]


def script(path: Path, first: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return path


def shown(folder: Path, *argv: str) -> list[str]:
    """Return what a program needs of a folder, by name."""
    found = needed([str(folder / argv[0]), *argv[1:]], str(folder / "bin"), folder / "project")
    return [str(path.relative_to(folder)) for path in found if path.is_relative_to(folder)]


def test_interpreters_of_interpreters_are_found_four_deep(tmp_path: Path) -> None:
    for n in range(7):
        script(tmp_path / "bin" / f"s{n}", f"#!/usr/bin/env s{n + 1}")
    assert shown(tmp_path, "bin/s0") == [f"bin/s{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("first", "interpreter"),
    [
        ("#!/usr/bin/env tool", "bin/tool"),
        ("#!/usr/bin/env -S tool --flag", "bin/tool"),
        ("#!/usr/bin/env A=b -i tool", "bin/tool"),
        ("#! /usr/bin/env tool", "bin/tool"),
        ("#!/usr/bin/env", None),
        ("#!", None),
        ("tool", None),
    ],
)
def test_the_interpreter_of_a_script_is_named_by_its_first_line(
    tmp_path: Path, first: str, interpreter: str | None
) -> None:
    script(tmp_path / "bin" / "tool", "")
    script(tmp_path / "a", first)
    assert shown(tmp_path, "a") == ["a", *([interpreter] if interpreter else [])]


def test_files_that_a_command_line_names_are_needed_by_their_whole_path_alone(tmp_path: Path) -> None:
    script(tmp_path / "a", "")
    (tmp_path / "data").touch()
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "far").symlink_to("link")
    assert shown(tmp_path, "a", f"{tmp_path}/far", "data", f"{tmp_path}/none", "/" + "x" * 5000) == [
        *("a", "far", "link", "data"),
    ]
    assert shown(tmp_path, "a", f"{tmp_path}/bin") == ["a"]


def test_a_chain_of_links_ends_at_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "l0").touch()
    for n in range(1, 30):
        (tmp_path / f"l{n}").symlink_to(f"l{n - 1}")
    found = [path.name for path in chain(tmp_path / "l20")]
    assert found == [*(f"l{n}" for n in range(20, 4, -1)), "l0"]


def test_the_home_of_a_python_is_never_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lib/python3.12/os.py", "bin/python", "secret"):
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).touch()
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    assert "home" in shown(tmp_path, "home/bin/python")
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    assert shown(tmp_path, "home/bin/python") == ["home/bin/python", "home/bin", "home/lib"]


def test_an_environment_whose_python_is_its_own_names_no_other(tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    script(tmp_path / "venv" / "bin" / "x", "")
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"HOME = {tmp_path}\nhome = {tmp_path}/venv/bin\n")
    assert shown(tmp_path, "venv/bin/x") == ["venv/bin/x", "venv"]


def test_of_a_first_line_the_program_counts_and_none_of_its_options(tmp_path: Path) -> None:
    for line, words in (
        ("#! /bin/sh -e", ("/bin/sh",)),
        ("#!/usr/bin/env -S A=1 python -I", ("/usr/bin/env", "python")),
        ("#!/usr/bin/env", ("/usr/bin/env",)),
        ("#!", ()),
        ("/bin/sh", ()),
    ):
        (tmp_path / "a").write_text(f"{line}\n")
        assert programs._interpreter(tmp_path / "a") == words
    assert programs._interpreter(tmp_path / "none") == ()


def test_a_file_that_is_named_from_where_you_are_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").touch()
    assert Path("x.py") not in needed(["tool", "x.py"], "", tmp_path / "project")
    assert tmp_path / "x.py" in needed(["tool", str(tmp_path / "x.py")], "", tmp_path / "project")
