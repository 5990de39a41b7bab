"""What help, and errors in arguments, load: only the arguments of commands."""

import subprocess
import sys

import pytest

PROGRAM = """
import argparse, contextlib, io, sys
from pytest_tfgrpo import cli

def helped(parser):
    parser.load()
    parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                helped(command)

helped(cli.parser())
for words in (["loop", "train", "--priority", "x"], ["runs", "--nope"], ["--version"]):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        with contextlib.redirect_stderr(io.StringIO()):
            cli.main(words)
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that are loaded after the help of all commands, and a few errors."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_help_loads_nothing_heavy(loaded: set[str]) -> None:
    heavy = {"asyncio", "email", "http", "inspect", "jinja2", "jsonschema", "numpy", "pytest", "yaml"}
    assert "argparse" in loaded
    assert loaded.isdisjoint(heavy | {"sqlite3", "uuid"})


def test_help_loads_no_work_of_a_command(loaded: set[str]) -> None:
    own = {name for name in loaded if name.startswith("pytest_tfgrpo.")}
    folders = ("harvest", "live", "loop", "loop.training", "runs", "suite")
    assert {f"pytest_tfgrpo.cli.{folder}.arguments" for folder in folders} <= own
    assert {name.split(".")[1] for name in own} == {"cli", "core"}
    assert not any(
        name.startswith(("pytest_tfgrpo.core.wire", "pytest_tfgrpo.core.settings")) for name in own
    )
    assert len(own) < 40
