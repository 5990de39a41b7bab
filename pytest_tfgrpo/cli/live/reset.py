"""The command ``tfgrpo live reset``: let a gate that holds pass again."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.live.live_store import opened
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.live.selection.guard import reset as passing


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
