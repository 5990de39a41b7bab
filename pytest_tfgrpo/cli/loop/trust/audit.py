"""The commands ``tfgrpo loop audit ...``: who did what, and whether the records of it are whole."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.open_loop import existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import line, table
from pytest_tfgrpo.production.bus.chain import fields_of
from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.production.report.figure_lines import labelled
from pytest_tfgrpo.production.trust.audit_chain import AuditChain, head_of, verify_audit
from pytest_tfgrpo.production.trust.audit_records import read_ref


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
    with existing_bus(arguments.config) as (_, bus):
        ref = read_ref(arguments.trajectory) if arguments.trajectory else ""
        since = 1 if ref else max(1, bus.last(AUDIT) - arguments.last + 1)
        all_said = ((one, fields_of(one)) for one in bus.replay(AUDIT, since_sequence=since))
        said = deque(
            (pair for pair in all_said if not ref or pair[1].get("ref") == ref), maxlen=arguments.last
        )
    if arguments.json:
        for one, value in said:
            yield json.dumps({"sequence": one.sequence, "id": one.id, "time": one.time, "record": value})
        return
    rows = [
        [
            str(one.sequence),
            line(one.time, 25),
            line(str(value.get("actor") or "the loop"), 20),
            line(str(value.get("action", "?")), 20),
            line(" ".join(str(value[key]) for key in ("what", "ref") if value.get(key)), 50),
            line(str(value.get("reason") or ""), 60),
        ]
        for one, value in said
    ]
    yield from table(["", "time", "who", "did", "what", "reason"], rows, left=6) if rows else ["none"]


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
            "chain", "whole" + ", and the record of the anchor is in it" * bool(found.anchored)
        )
        yield from labelled("head", str(found.head))
