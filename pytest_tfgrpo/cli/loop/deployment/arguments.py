"""The arguments of the commands with which a person decides about a version, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.loop.arguments import add_config
from pytest_tfgrpo.cli.parsers import Parser, person, words


def add_decision(command: Parser) -> None:
    """Add what names the version, the person and the reason."""
    command.add_argument("version", metavar="VERSION", help="such as v2")
    command.add_argument(
        "--by", type=person, metavar="NAME", required=True, help="who decides; the audit keeps it"
    )
    command.add_argument(
        "--reason", type=words, metavar="TEXT", required=True, help="why; the audit keeps it"
    )
    add_config(command)


def advance(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.deployment.advance:advance")
    add_decision(command)


def approve(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.deployment.approve:approve")
    command.add_argument(
        "--emergency-override", action="store_true", help="deploy it though its validation is against it"
    )
    command.add_argument(
        "--at-once",
        action="store_true",
        help="let all sessions but a hold-out of 5 %% meet it now; only with --emergency-override",
    )
    add_decision(command)


def hold(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.deployment.hold:hold")
    add_decision(command)


def pin(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.deployment.pin:pin")
    command.add_argument("--off", action="store_true", help="let them go once the version is old and unused")
    add_decision(command)


def reject(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.deployment.reject:reject")
    add_decision(command)


def rollback(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("loop.deployment.rollback:rollback")
    add_decision(command)
