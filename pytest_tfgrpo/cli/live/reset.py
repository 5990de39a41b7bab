"""The command ``tfgrpo live reset``: let a gate that holds pass again."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.live.live_store import add_config, opened
from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.live.selection.guard import reset as passing


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(reset)
    command.add_argument("--actor", required=True, metavar="A", help="who resets it, for the journal")
    command.add_argument("--reason", required=True, metavar="R", help="why, for the journal")
    add_config(command)


def reset(arguments: Arguments) -> Iterator[str]:
    """Let a gate that holds pass again, without its memory of failures."""
    import time

    now = time.time()
    with opened(arguments) as (_, store):
        before = store.gate()
        try:
            store.change_gate(lambda state: passing(state, arguments.actor, arguments.reason, now), now=now)
        except ValueError as error:
            raise SettingError(str(error)) from error
    held = f"it held by {before.reason}" if before.state == "hold" else "it did not hold"
    yield f"gate       passes, reset by {arguments.actor}: {arguments.reason}; {held}"
