"""The commands ``tfgrpo loop opt-out ...``: who is left out from now on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import opened_door, operator_name
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.texts.text import table
from pytest_tfgrpo.production.trust.audit_records import PersonAction, note

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.door.scrubber import LoopScrubber


def opt_out_add(arguments: Arguments) -> Iterator[str]:
    """Take nothing of a user or session from now on; see also forget."""
    with opened_door(arguments) as (bus, scrubber, rows):
        rows.add(session=arguments.session, user=arguments.user)
        _note(bus, scrubber, arguments, "opt_out_added")
    yield "opted out  from now on; tfgrpo loop forget overwrites what was stored before"


def opt_out_remove(arguments: Arguments) -> Iterator[str]:
    """Take data of a user or session again."""
    with opened_door(arguments) as (bus, scrubber, rows):
        _note(bus, scrubber, arguments, "opt_out_removed")
        found = rows.remove(session=arguments.session, user=arguments.user)
    yield "opted in   from now on" if found else "unchanged  had not opted out"


def opt_out_list(arguments: Arguments) -> Iterator[str]:
    """Print who opted out and when, by pseudonym."""
    with opened_door(arguments) as (_, _, rows):
        listed = rows.listed()
    yield from (
        table(["whose", "pseudonym", "since"], [list(one) for one in listed], left=3) if listed else ["none"]
    )


def _note(bus: Bus, scrubber: LoopScrubber, arguments: Arguments, action: PersonAction) -> None:
    """Store who said it, and of whom, by pseudonym."""
    session = bool(arguments.session)
    ref = scrubber.session_ref(arguments.session) if session else scrubber.user_ref(arguments.user)
    note(bus, action, "session" if session else "user", actor=operator_name(), ref=ref)
