"""Arguments that several commands of the loop share."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import Parser


def add_config(command: Parser) -> None:
    """Add what names the configuration."""
    command.add_argument(
        "--config", metavar="FILE", help="configuration (default: TFGRPO_LOOP_CONFIG, else loop.toml)"
    )


def add_whose(command: Parser) -> None:
    """Add what names a session or a user."""
    whose = command.add_mutually_exclusive_group(required=True)
    whose.add_argument("--session", metavar="S", default="", help="id of a session, as your service sends it")
    whose.add_argument("--user", metavar="U", default="", help="id of a user, as your service sends it")
