"""Programs in a workspace find what its environment has first."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox.programs.environment_variables import with_environment
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.programs.programs import started

HERE = Path("/work-folder")
BUILT = BuiltEnvironment(
    stamp="a" * 64,
    folder=Path("/cache/a"),
    python=Path("/cache/a/venv/bin/python"),
    programs=(Path("/cache/a/venv/bin"), Path("/cache/a/setup/node_modules/.bin")),
    imports=("src", "."),
    variables={"TZ": "UTC", "LANG": "C"},
    links={},
    readable=(Path("/cache/a"),),
)


def test_its_programs_and_folders_come_first() -> None:
    found = with_environment({"PATH": "/usr/bin", "PYTHONPATH": "/own", "LANG": "de"}, BUILT, HERE)
    assert found == {
        "PATH": "/cache/a/venv/bin:/cache/a/setup/node_modules/.bin:/usr/bin",
        "PYTHONPATH": "/work-folder/src:/work-folder:/own",
        "LANG": "C",
        "TZ": "UTC",
        "VIRTUAL_ENV": "/cache/a/venv",
    }


def test_one_without_python_names_no_virtual_environment() -> None:
    found = with_environment({}, replace(BUILT, python=None, programs=(), imports=()), HERE)
    assert found == {"TZ": "UTC", "LANG": "C"}


def test_an_empty_path_adds_no_current_folder() -> None:
    found = with_environment({"PATH": ""}, BUILT, HERE)
    assert "" not in found["PATH"].split(":") + found["PYTHONPATH"].split(":")


def test_a_folder_that_is_there_already_comes_once() -> None:
    first = with_environment({"PATH": "/usr/bin:/bin:/usr/bin"}, BUILT, HERE)
    assert with_environment(first, BUILT, HERE) == first
    assert first["PATH"].endswith(":/usr/bin:/bin")


def test_without_an_environment_nothing_changes() -> None:
    assert with_environment({"PATH": "/usr/bin"}, None, HERE) == {"PATH": "/usr/bin"}


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("#!/usr/bin/env tool\n", ["tool", "script"]),
        ("#!/usr/bin/env none\n", ["script"]),
        ("#!/usr/bin/env -S tool -x\n", ["script"]),
        ("#!/bin/sh\n", ["script"]),
        ("\x7fELF", ["script"]),
    ],
)
def test_a_script_is_started_by_the_interpreter_of_the_machine(
    tmp_path: Path, first: str, words: list[str]
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "script").write_text(first)
    found = started(str(tmp_path / "script"), str(tmp_path))
    assert [Path(word).name for word in found] == words
