"""Buses by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import STREAMS, StreamSpec


def open_bus(
    spec: str, streams: Sequence[StreamSpec] = STREAMS, options: Mapping[str, object] | None = None
) -> Bus:
    """Return a bus: ``embedded:<path>`` or ``nats:<url>``.

    `options` go to `nats.connect` as they are: credentials, TLS. Raises BusError.
    """
    kind, _, where = spec.partition(":")
    if kind == "embedded" and where:
        if options:
            raise BusError(f"the embedded bus takes no options, and got {', '.join(sorted(options))}")
        return open_embedded(Path(where), streams)
    if kind == "nats" and where:
        from pytest_tfgrpo.production.bus.nats.bus import open_nats

        return open_nats(where, streams, options)
    raise BusError(f"the bus {spec!r} is not known; use embedded:<path> or nats:<url>")
