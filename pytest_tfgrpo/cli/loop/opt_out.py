"""The commands ``tfgrpo loop opt-out ...``: who is left out from now on."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.open_loop import (
    opened_door,
)
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.texts.text import table


def opt_out_add(arguments: Arguments) -> Iterator[str]:
    """Take nothing of a user or session from now on; see also forget."""
    with opened_door(arguments) as (_, _, rows):
        rows.add(session=arguments.session, user=arguments.user)
    yield "opted out  from now on; tfgrpo loop forget overwrites what was stored before"


def opt_out_remove(arguments: Arguments) -> Iterator[str]:
    """Take data of a user or session again."""
    with opened_door(arguments) as (_, _, rows):
        found = rows.remove(session=arguments.session, user=arguments.user)
    yield "opted in   from now on" if found else "unchanged  had not opted out"


def opt_out_list(arguments: Arguments) -> Iterator[str]:
    """Print who opted out and when, by pseudonym."""
    with opened_door(arguments) as (_, _, rows):
        listed = rows.listed()
    yield from (
        table(["whose", "pseudonym", "since"], [list(one) for one in listed], left=3) if listed else ["none"]
    )
