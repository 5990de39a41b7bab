"""Parsers of commands, which get their arguments when they are called; arguments that several share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, TypeAlias

from pytest_tfgrpo.core.texts.named_values import nearest

Arguments: TypeAlias = argparse.Namespace
Command: TypeAlias = Callable[[Arguments], Iterator[str]]
Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"
FOLDER = "pytest_tfgrpo.cli"


class CommandRow(NamedTuple):
    """A command as the help of its parent lists it."""

    name: str
    about: str
    module: str
    """Below ``pytest_tfgrpo.cli``, without its arguments: the function of its name in the module `arguments`
    beside it completes the parser of the command, so that help loads nothing of the work."""
    aliases: tuple[str, ...] = ()


INSTEAD = {
    ("run", "test", "eval", "evaluate", "start"): (
        "pytest --tfgrpo runs and learns, pytest tests the eval scenarios once"
    ),
    ("cost", "costs", "price", "prices"): (
        "tfgrpo report -v says what a run cost, pytest --tfgrpo --tfgrpo-dry-run what one will cost; "
        "prices of yours are in the file of the setting models"
    ),
    ("diff", "compare"): (
        "tfgrpo report --compare RUN compares runs, tfgrpo library diff A B lessons, and "
        "pytest --tfgrpo-actor=A,B runs agents side by side"
    ),
    ("ci",): "copy a workflow from docs/ci.md",
    ("tools", "mcp"): "set tfgrpo_tools in pytest's ini file; pytest --help describes it",
    ("prompt", "answers", "explain", "why"): (
        "tfgrpo show SCENARIO lists its attempts, tfgrpo show ID has the prompt, answer and checks of one"
    ),
    ("label", "annotate", "mark"): (
        "mark answers on the page that tfgrpo view opens, save the marks, then tfgrpo review --marks FILE"
    ),
    ("remove", "rm", "delete", "drop", "edit"): (
        "delete lessons from the library file; tfgrpo library show committed then says which hash to set"
    ),
}
"""What does the work of commands that others have, by their names."""
REQUIRED = "the following arguments are required: "
INVALID = re.compile(
    r"argument (?P<what>.*): invalid choice: '(?P<word>[^']*)'.*\(choose from (?P<known>.*)\)"
)
"""What argparse says of a command or value that there is not."""


class Parser(argparse.ArgumentParser):
    """A parser that loads its command when it parses, and whose errors name the nearest command or option."""

    module: str = ""
    """What is still to be loaded; empty where nothing is."""

    def add_commands(self, rows: Iterable[CommandRow], *, required: bool = True) -> None:
        """Add the commands of a table; none is loaded."""
        group = self.add_subparsers(title="commands", required=required, metavar="COMMAND")
        for row in rows:
            parser = group.add_parser(row.name, aliases=row.aliases, help=row.about, description=row.about)
            parser.module = row.module

    def add_group(self) -> Subparsers:
        """Return what takes commands that share the module of this one."""
        return self.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def load(self) -> None:
        """Add the arguments of the command."""
        module, self.module = self.module, ""
        if module:
            folder, _, name = module.rpartition(".")
            getattr(import_module(f"{FOLDER}.{folder}.arguments"), name)(self)

    def calls(self, work: str) -> None:
        """Set what runs when this parser has parsed: a function, as ``module:name`` below this folder."""
        self.set_defaults(work=work, parser=self)

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Load the command, then parse."""
        self.load()
        return super().parse_known_args(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Print the usage and `message`, and exit with 2."""
        lists = f"; '{self.prog} --help' lists them"
        if message.endswith(" required: COMMAND"):
            message += lists
        elif REQUIRED in message:
            names = message.partition(REQUIRED)[2].split(", ")
            told = (one.help for one in self._actions if {*one.option_strings, one.metavar} & {*names})
            message += "".join(f"\n  {name}: {text}" for name, text in zip(names, told, strict=False) if text)
        elif found := INVALID.search(message):
            hint = nearest(found["word"], re.findall(r"[\w-]+", found["known"]))
            is_command = found["what"] == "COMMAND"
            other = (f"; {text}" for names, text in INSTEAD.items() if found["word"] in names)
            hint = next(other, hint or lists) if is_command else hint
            message = f"no command {found['word'][:60]!r}{hint}" if is_command else message + hint
        super().error(message)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Print the usage and which arguments are unknown, and exit with 2."""
        options = re.findall(r"--([a-z-]+)", self.format_help())
        words = (word[2:].partition("=")[0] for word in unknown if word.startswith("--"))
        hint = nearest(next(words, ""), options).replace(" '", " '--") or f"; see '{self.prog} --help'"
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


def add_command(parent: Subparsers, name: str, work: str, about: str) -> Parser:
    """Add a command to `parent` that calls `work`."""
    parser = parent.add_parser(name, help=about, description=about)
    parser.calls(work)
    return parser


def command_of(work: str) -> Command:
    """Return the function that a parser calls by this name."""
    module, _, name = work.partition(":")
    command: Command = getattr(import_module(f"{FOLDER}.{module}"), name)
    return command


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


def words(text: str, most: int = 10_000) -> str:
    """Return a text that says something; raises ArgumentTypeError."""
    found = text.strip()
    if not 0 < len(found) <= most or not found.isprintable():
        raise argparse.ArgumentTypeError(f"must be 1 to {most:,} printable characters, not {text[:40]!r}")
    return found


def person(text: str) -> str:
    """Return the name of who decides, as events can hold it; raises ArgumentTypeError."""
    return words(text, 256)
