"""How far the sinks are, for status and for whoever forgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.sinks.removal import is_forget
from pytest_tfgrpo.production.sinks.rows import TABLES
from pytest_tfgrpo.production.sinks.state import SINKS, SinkState, lease_name
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import lease_holder, lease_state


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkStatus:
    """How far one sink is."""

    behind: int
    """Events that it has not taken yet."""
    to_forget: int
    """Users and sessions that were forgotten, whose rows it may still have."""
    lost: int
    """Events that the streams let go of before it took them, at most."""
    refused: int
    """Events that are no JSON, or that it never takes."""
    old: int
    """Events that were older than it keeps any when they came."""
    error: str
    """Why it waits; empty: it does not."""
    since: str
    holder: str
    """Machine and process that took it last; empty where the last one let go of it."""


def sinks_status(bus: Bus) -> dict[str, SinkStatus]:
    """Return how far each sink is that there ever was on a bus; raises BusError."""
    table = bus.table(STATE)
    found = {}
    for name in SINKS:
        state = SinkState.of(lease_state(table, lease_name(name)))
        if state is None:
            continue
        behind = sum(max(0, bus.last(stream) - state.positions.get(stream, 0)) for stream in TABLES)
        # lines of a log name nobody
        audit = () if name == "logs" else bus.replay(AUDIT, since_sequence=state.positions[AUDIT] + 1)
        found[name] = SinkStatus(
            behind=behind,
            to_forget=sum(map(is_forget, audit)),
            lost=state.lost,
            refused=state.refused,
            old=state.old,
            error=state.error,
            since=state.since,
            holder=lease_holder(table, lease_name(name)),
        )
    return found


def sink_lines(found: Mapping[str, SinkStatus]) -> Iterator[str]:
    """Yield a line for each sink, and what it waits for, lost and left out."""
    for name, sink in found.items():
        behind = "up to date" if not sink.behind else f"{sink.behind:,} events behind"
        holder = f"lease of {line(sink.holder, 120)}" if sink.holder else "nobody holds its lease"
        yield from labelled(name, f"{behind}; {holder}")
        if sink.error:
            yield from labelled("", f"waits since {sink.since}: {line(sink.error)}")
        if sink.to_forget:
            yield from labelled("", f"still has rows of {sink.to_forget:,} that are to be forgotten")
        if sink.lost:
            yield from labelled("", f"lost at most {plural(sink.lost, 'event')}, older than the streams keep")
        if sink.refused:
            yield from labelled("", f"refused {plural(sink.refused, 'event')}")
        if sink.old:
            yield from labelled("", f"left out {plural(sink.old, 'event')} of more than 90 days ago")
