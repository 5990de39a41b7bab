"""The arguments of the commands that serve deployed versions, apart from their work."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.cli.loop.arguments import add_config
from pytest_tfgrpo.cli.parsers import Parser, words


def proxy(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.serving.proxy:proxy")
    add_config(command)


def tensorzero(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.serving.tensorzero:tensorzero")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the gateway's configuration")
    command.add_argument(
        "--function", type=words, metavar="NAME", required=True, help="function that your agent calls"
    )
    command.add_argument(
        "--model", type=words, metavar="M", required=True, help="model of all versions, by TensorZero's name"
    )
    command.add_argument("--domain", metavar="D", default="", help="of your suite, needed if it has several")
    add_config(command)
