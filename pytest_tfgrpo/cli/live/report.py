"""The command ``tfgrpo live report``: what the selector brings."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.live.live_store import add_config, add_last, opened
from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.production.live.report import report_lines


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(report)
    add_last(command)
    add_config(command)


def report(arguments: Arguments) -> Iterator[str]:
    """Print what the selector gains over its control, by category, and the last updates."""
    with opened(arguments) as (_, store):
        yield from report_lines(store, arguments.last)
