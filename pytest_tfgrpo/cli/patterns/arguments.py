"""The arguments of ``tfgrpo patterns``, apart from its work."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import Parser, add_command


def patterns(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    about = "List the patterns of the repository by status: name, whether it was tried, lesson."
    command = add_command(group, "list", "patterns.listing:list_", about)
    command.add_argument("--json", action="store_true", help="print whole patterns, a line each")
    add_repository(command)
    about = "Print a pattern: its file, and what was decided and said about it."
    command = add_command(group, "show", "patterns.listing:show", about)
    command.add_argument("name", metavar="NAME")
    add_repository(command)
    about = "Check the files of all patterns and their log; exit 1 if something is wrong."
    command = add_command(group, "lint", "patterns.lint:lint_command", about)
    add_repository(command)


def add_repository(command: Parser) -> None:
    """Add what names the repository."""
    command.add_argument(
        "--repo", metavar="DIR", help="repository with the patterns (default: the one that you are in)"
    )
