"""The command ``tfgrpo live init``: a first live.toml and an example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.cli.project import cd_to
from pytest_tfgrpo.cli.suite.init import copy_files, example_folder


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(init)
    command.add_argument("folder", nargs="?", default=".", metavar="DIR", help="folder (default: here)")
    command.add_argument("--force", action="store_true", help="overwrite files that exist")


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first live.toml, and an example service that uses it."""
    folder = Path(arguments.folder)
    yield from copy_files(example_folder("live"), folder, force=arguments.force)
    yield f"next: {cd_to(folder)}TFGRPO_LIVE_RL_ENABLED=1 python service.py 400, then tfgrpo live status"
