"""Spans of many files, trace by trace, on a disk that only this process sees.

Exports are in no order: a root may come first, and parts of a trace may be in several files. The traces are
given in the order of their starts, and in each the spans around others after those.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, TraceSpan

_LARGEST = 2**63 - 1
"""Nanoseconds since 1970 in a column: in the year 2262, while a row may say that something never ends."""


class TraceOrder:
    """Takes spans, of which the last of a key counts, and gives them by traces.

    What does not fit into memory is in a file without a name, which the system removes with the process.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        try:
            self._file.execute("PRAGMA journal_mode = OFF")
            self._file.execute(
                "CREATE TABLE spans (trace TEXT, id TEXT, start INTEGER, data TEXT, PRIMARY KEY (trace, id)) "
                "WITHOUT ROWID"
            )
        except BaseException:
            self._file.close()
            raise
        self.repeated = 0
        """Spans that came again."""

    def add(self, span: TraceSpan) -> None:
        """Take a span."""
        known = "SELECT 1 FROM spans WHERE (trace, id) = (?, ?)"
        if self._file.execute(known, span.key).fetchone():
            self.repeated += 1
        row = (*span.key, min(span.start_ns, _LARGEST), _encoded(span))
        self._file.execute("INSERT OR REPLACE INTO spans VALUES (?, ?, ?, ?)", row)

    def traces(self) -> Iterator[list[TraceSpan]]:
        """Yield the spans of each trace: those of its root's resource last, and the root at the end."""
        starts = "SELECT trace FROM spans GROUP BY trace ORDER BY MIN(start), trace"
        with closing(self._file.execute(starts)) as traces:
            for (trace,) in traces:
                rows = self._file.execute("SELECT id, data FROM spans WHERE trace = ?", (trace,))
                yield _in_order(trace, rows.fetchall())

    def close(self) -> None:
        """Remove what is kept."""
        self._file.close()


def _in_order(trace: str, rows: list[tuple[str, str]]) -> list[TraceSpan]:
    resources: dict[str, dict[str, Json]] = {}
    found = [_decoded((trace, identity), data, resources) for identity, data in rows]
    roots = {span.key for span in found if not span.parent}
    last = next((span.resource for span in found if span.key in roots), None)
    return sorted(
        found,
        key=lambda span: (span.resource is last, span.key in roots, span.end_ns, -span.start_ns, span.key),
    )


def _encoded(span: TraceSpan) -> str:
    events = [(event.name, event.at_ns, dict(event.attributes)) for event in span.events]
    row = (span.parent, span.name, span.start_ns, span.end_ns, dict(span.attributes), events, span.failed)
    resource = json.dumps(dict(span.resource), sort_keys=True)
    return json.dumps((*row, span.message, span.place, resource))


def _decoded(key: tuple[str, str], data: str, resources: dict[str, dict[str, Json]]) -> TraceSpan:
    parent, name, start_ns, end_ns, attributes, events, failed, message, place, resource = json.loads(data)
    if resource not in resources:
        resources[resource] = json.loads(resource)
    return TraceSpan(
        key=key,
        parent=parent,
        name=name,
        start_ns=start_ns,
        end_ns=end_ns,
        attributes=attributes,
        events=tuple(SpanEvent(*event) for event in events),
        failed=failed,
        message=message,
        place=place,
        resource=resources[resource],
    )
