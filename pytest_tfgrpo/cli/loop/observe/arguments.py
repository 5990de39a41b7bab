"""The arguments of the commands that let others see the loop, apart from their work."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.cli.parsers import Parser


def dashboards(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.observe.dashboards:dashboards")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="folder for the files")
    command.add_argument("--force", action="store_true", help="overwrite files that exist")
