"""The arguments of the commands of harvest, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import CommandRow, Parser

COMMANDS = (
    CommandRow("init", "Write a first harvest.toml, which says how tests run.", "harvest.init"),
    CommandRow("env", "Build the environments of a harvested suite on this machine.", "harvest.env"),
    CommandRow(
        "verify", "Prove the scenarios of a harvested suite again, from its own files.", "harvest.verify"
    ),
)


def add_sandbox(parser: Parser) -> None:
    """Add the choice."""
    parser.add_argument(
        "--check-sandbox",
        choices=("bwrap", "none"),
        default="bwrap",
        help="run the tests in bubblewrap, or without isolation: only where you trust the repository",
    )


def env(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("harvest.env:env")
    command.add_argument("suite", metavar="SUITE", help="folder of the suite")
    add_sandbox(command)


def harvest(parser: Parser) -> None:
    """Add the arguments of the command, and the commands beside it."""
    parser.calls("harvest.harvest:harvest_command")
    parser.add_argument("--repo", metavar="DIR", help="git repository whose fixes become scenarios")
    parser.add_argument("--from-git", metavar="A..B", help="range of commits: what B has and A has not")
    parser.add_argument("--into", metavar="SUITE", help="folder of the suite")
    parser.add_argument(
        "--each-commit",
        action="store_true",
        help="every commit but merges is a change, also those of branches",
    )
    parser.add_argument(
        "--path", action="append", default=[], metavar="PATH", help="only changes that touch it; repeatable"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the newest N changes")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="validate so many at once (default: 1)"
    )
    parser.add_argument(
        "--budget-s", type=float, metavar="N", help="stop after N seconds; the same command then goes on"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the candidates and write nothing")
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave files out of every tree; repeatable",
    )
    parser.add_argument(
        "--issues", metavar="FILE", help="JSON lines with number, title and body: prompts of what fixes them"
    )
    parser.add_argument(
        "--statement", choices=("model",), help="have the model of tfgrpo_teacher write the prompts"
    )
    parser.add_argument("--retry", action="store_true", help="do again what failed, or needed a person")
    parser.add_argument(
        "--domain", metavar="NAME", help="domain of the scenarios (default: the project's name)"
    )
    add_sandbox(parser)
    parser.add_commands(COMMANDS, required=False)


def init(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("harvest.init:init")
    command.add_argument("--repo", default=".", metavar="DIR", help="git repository (default: here)")
    command.add_argument("--commit", default="HEAD", metavar="C", help="guess from its files (default: HEAD)")
    command.add_argument("--force", action="store_true", help="overwrite a harvest.toml that exists")


def verify(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("harvest.verify:verify")
    command.add_argument("suite", metavar="SUITE", help="folder of the suite")
    add_sandbox(command)
