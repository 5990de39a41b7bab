"""The commands ``tfgrpo loop ...``: what an agent in production did, and how good it was."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments, Subparsers, add_command, add_group
from pytest_tfgrpo.core.errors import SettingError

ABOUT = (
    "Take the traces of an agent in production, without secrets, and score each run of the agent: by kind of "
    "task and by version. Nothing learns from it here."
)


def declare(commands: Subparsers) -> None:
    """Add the group."""
    group = add_group(commands, "loop", ABOUT)
    command = add_command(group, "init", init)
    command.add_argument("folder", nargs="?", default=".", metavar="DIR", help="folder (default: here)")
    command.add_argument("--force", action="store_true", help="overwrite a loop.toml that exists")
    _add_config(add_command(group, "config", config))


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config", metavar="FILE", help="configuration (default: TFGRPO_LOOP_CONFIG, else loop.toml)"
    )


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first loop.toml, and the key of its pseudonyms, which only you can read."""
    from pytest_tfgrpo.feedback.config import LOOP_FILE
    from pytest_tfgrpo.feedback.loop_file import write_key, write_loop_file
    from pytest_tfgrpo.feedback.settings import LOOP_TABLE

    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    file, key = folder / LOOP_FILE, folder / LOOP_TABLE["privacy.key_file"].default
    if file.exists() and not arguments.force:
        raise SettingError(f"{file} exists; overwrite it with --force")
    write_loop_file(file)
    yield f"wrote  {file}"
    yield f"wrote  {key}" if write_key(key) else f"kept   {key}"
    yield f"next: keep {key.name} out of version control, then " + _hint(folder, "tfgrpo loop serve")


def _hint(folder: Path, command: str) -> str:
    return command if folder.resolve() == Path.cwd() else f"cd {folder} && {command}"


def config(arguments: Arguments) -> Iterator[str]:
    """Print the value of every setting and where it comes from; secrets are not shown."""
    from pytest_tfgrpo.feedback.config import config_lines, load_loop_config

    yield from config_lines(load_loop_config(arguments.config, os.environ))
