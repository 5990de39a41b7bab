"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from pytest_tfgrpo.cli.project import Project

Arguments: TypeAlias = argparse.Namespace
Command: TypeAlias = Callable[[Arguments], Iterator[str]]
Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"

INVALID = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)")
"""What argparse says of a command that there is not."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the nearest command or option."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and `message`, and exit with 2."""
        from pytest_tfgrpo.core.wire.schema import nearest

        found = INVALID.search(message)
        hint = nearest(found["word"], re.findall(r"[\w-]+", found["known"])) if found else ""
        super().error(message + hint)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Print the usage and which arguments are unknown, and exit with 2."""
        from pytest_tfgrpo.core.wire.schema import nearest

        options = re.findall(r"--([a-z-]+)", self.format_help())
        words = (word[2:].partition("=")[0] for word in unknown if word.startswith("--"))
        hint = nearest(next(words, ""), options).replace(" '", " '--")
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def add_task(self) -> None:
        """Add what names the output folder and the task."""
        self.add_argument(
            "--out", metavar="DIR", help="output folder (default: from pytest's ini file, else out)"
        )
        self.add_argument(
            "--task-id",
            metavar="ID",
            help="task id (default: from the ini file, else the name of its folder)",
        )

    def add_run(self, name: str, **more: Any) -> None:
        """Add what names a run."""
        text = "run id, its beginning or end, 'latest' or 'previous' (default: latest)"
        self.add_argument(name, **{"default": "latest", "metavar": "RUN", "help": text, **more})


def add_command(parent: Subparsers, name: str, command: Command, *aliases: str) -> Parser:
    """Add a command to `parent`; the first line of its docstring is the help."""
    text = (command.__doc__ or "").partition("\n")[0]
    parser = parent.add_parser(name, aliases=aliases, help=text, description=text)
    parser.set_defaults(command=command, parser=parser)
    return parser


def add_group(parent: Subparsers, name: str, text: str) -> Subparsers:
    """Add a group of commands to `parent`."""
    parser = parent.add_parser(name, help=text, description=text)
    return parser.add_subparsers(title="commands", required=True, metavar="COMMAND")


def project_of(arguments: Arguments) -> Project:
    """Return the project in the current folder; raises SettingError."""
    from pytest_tfgrpo.cli.project import open_project

    flags = {name: value for name in ("out", "task_id") if (value := getattr(arguments, name, None))}
    return open_project(Path.cwd(), flags, os.environ)


def whole(text: str, least: int = 0) -> int:
    """Return a whole number from `least` on; raises ArgumentTypeError."""
    number = int(text) if text.isdecimal() and len(text) <= 18 else -1
    if number < least:
        limit = " of at most 18 digits" * (len(text) > 18)
        raise argparse.ArgumentTypeError(f"must be a whole number{limit} from {least} on, not {text!r}")
    return number


def positive(text: str) -> int:
    """Return a whole number from 1 on; raises ArgumentTypeError."""
    return whole(text, 1)
