"""A line of JSON for each event, fit for Loki: what happened, without texts, users or sessions.

Nobody can forget a line that another system has, so none names anybody.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.sinks.facts import facts_of
from pytest_tfgrpo.production.sinks.removal import Removal
from pytest_tfgrpo.production.sinks.rows import SinkRow

KINDS: Mapping[str, str] = {
    "trajectories": "collection",
    "rewards": "reward",
    "training": "training",
    "deployments": "deployment",
}
"""By table."""
_TAIL = 1 << 20
"""Bytes at the end of a file that are searched for lines which are there already."""
_EVENT = re.compile(rb'"event_id":"([^"]*)".*\n')
"""Of a whole line: one that a full disk cut short comes again."""


class LogLines:
    """See `Sink`."""

    name, every_s, keeps = "logs", 1.0, False

    def __init__(self, to: Path | BinaryIO) -> None:
        """Lines go to a file, which may be renamed at any time, or to a stream that is open."""
        self._to = to

    def write(self, rows: Sequence[SinkRow], *, again: bool) -> int:
        """Add a line for each row."""
        try:
            if isinstance(self._to, Path):
                _append(self._to, rows, again)
            else:
                self._to.write(b"".join(map(_line, rows)))
                self._to.flush()
        except OSError as error:
            raise StoreError(f"logs {self._to}: {error}") from error
        return 0

    def remove(self, removal: Removal) -> None:
        """Do nothing: a line names nobody."""

    def expire(self, before: str) -> None:
        """Do nothing: whoever reads the file removes it."""

    def close(self) -> None:
        """Hold nothing between uses."""


def _append(path: Path, rows: Sequence[SinkRow], again: bool) -> None:
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL) if again else max(0, size - 1))
        tail = file.read()
        known = set(_EVENT.findall(tail)) if again else set()
        lines = [_line(row) for row in rows if row.id.encode() not in known]
        torn = b"\n" if tail and not tail.endswith(b"\n") else b""
        file.write(torn + b"".join(lines))


def _line(row: SinkRow) -> bytes:
    said = {"time": row.time, "kind": KINDS[row.table], "event_id": row.id}
    text = json.dumps({**said, **facts_of(row.subject, row.data)}, separators=(",", ":"))
    return f"{text}\n".encode("ascii")
