"""The commands ``tfgrpo loop audit ...``: who did what, and whether the records of it are whole."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import line, table
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.chain import fields_of
from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.trust.audit_chain import AuditChain, head_of, verify_audit
from pytest_tfgrpo.production.trust.audit_records import read_ref
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def verify(arguments: Arguments) -> Iterator[str]:
    """Check that no record was changed or taken out, and print the head, for you to keep elsewhere."""
    anchor = head_of(arguments.anchor) if arguments.anchor else None
    with existing_bus(arguments.config) as (_, bus):
        found = verify_audit(bus, anchor)
    yield from _lines(found)
    if found.broken is not None:
        raise StoreError(f"the chain of the audit is broken: {found.broken}")
    if anchor is not None and not found.anchored:
        raise StoreError(
            f"the record of the anchor, {anchor.sequence}, is older than those that are kept; use a newer one"
        )


def list_(arguments: Arguments) -> Iterator[str]:
    """Print who read, wrote out, decided, left out or forgot what, the newest last."""
    with existing_bus(arguments.config) as (config, bus):
        ref = ""
        if arguments.trajectory is not None:
            with current_view(config, bus) as view:
                ref = read_ref(_whole_id(view, arguments.trajectory))
        since = 1 if ref else max(1, bus.last(AUDIT) - arguments.last + 1)
        all_said = ((one, fields_of(one)) for one in bus.replay(AUDIT, since_sequence=since))
        said = deque(
            (pair for pair in all_said if not ref or pair[1].get("ref") == ref), maxlen=arguments.last
        )
    if arguments.json:
        for one, value in said:
            yield json.dumps({"sequence": one.sequence, "id": one.id, "time": one.time, "record": value})
        return
    yield from _table([*said]) if said else ["none"]


def _table(said: Sequence[tuple[BusEvent, Json]]) -> Iterator[str]:
    """Yield a row for each record, and its reason below it."""
    rows = [
        [
            str(one.sequence),
            line(one.time[:19], 19),
            line(str(value.get("actor") or "the loop"), 16),
            line(str(value.get("action", "?")), 20),
            line(" ".join([str(value.get("what") or ""), str(value.get("ref") or "")[:8]]).strip(), 19),
        ]
        for one, value in said
    ]
    head, *shown = table(["", "time (UTC)", "who", "did", "what"], rows, left=5)
    yield head
    for row, (_, value) in zip(shown, said, strict=True):
        yield row
        if value.get("reason"):
            yield from labelled("", line(str(value["reason"])))


def _whole_id(view: LoopView, id_: str) -> str:
    """Return the id of the trajectory whose id starts so, also of one that is gone if it is whole.

    Raises StoreError where it is not whole, and stands for none or for several.
    """
    found = queries.find(view, wanted := id_.strip().lower())
    if len(found) == 1:
        return str(found[0].id)
    if not _ID.fullmatch(wanted):
        stands = "several trajectories" if found else "no trajectory on the bus"
        raise StoreError(f"{id_!r} stands for {stands}; write the whole id, which may be of one that is gone")
    return wanted


def _lines(found: AuditChain) -> Iterator[str]:
    if found.head is None or found.first is None:
        yield from labelled(
            "audit", f"no record is kept; {found.gone:,} were" if found.gone else "no record yet"
        )
        return
    yield from labelled(
        "audit", f"{found.count:,} records, from {found.first.sequence} to {found.head.sequence}"
    )
    if found.gone:
        said = (
            f"{found.gone:,} older ones are gone, as those of more than a year go; only an anchor shows more"
        )
        yield from labelled("before", said)
    if found.unlinked:
        yield from labelled("unlinked", f"the first {found.unlinked:,} were written before there was a chain")
    if found.broken is None:
        yield from labelled(
            "chain",
            "whole"
            + (
                ", and the record of the anchor is in it"
                if found.anchored
                else "; only --anchor shows whether its end was cut off"
            ),
        )
        yield from labelled("head", str(found.head))
