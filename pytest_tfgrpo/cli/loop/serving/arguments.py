"""The arguments of the commands that serve deployed versions, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.loop.arguments import add_config
from pytest_tfgrpo.cli.parsers import Parser


def proxy(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.serving.proxy:proxy")
    add_config(command)
