"""What comes to the door of the feedback loop, and what is behind it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pytest_tfgrpo.core.events import SCHEMAS
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.span_events import decode_spans
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan

TRACE = "0af7651916cd43dd8448eb211c80319c"
KEY = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
NOW = 1_764_000_000


@pytest.fixture
def scrubber() -> LoopScrubber:
    return LoopScrubber(b"k" * 32)


@pytest.fixture
def opt_outs(bus: Bus, scrubber: LoopScrubber) -> OptOuts:
    return OptOuts(bus, scrubber)


@pytest.fixture
def intake(bus: Bus, scrubber: LoopScrubber, opt_outs: OptOuts) -> Intake:
    return Intake(bus, scrubber, opt_outs)


def span(
    number: int = 1, trace: str = TRACE, resource: dict[str, Any] | None = None, **attributes: object
) -> TraceSpan:
    """Return a span with these attributes; two underscores are a dot."""
    return TraceSpan(
        key=(trace, f"{number:016x}"),
        parent="",
        name="chat",
        start_ns=NOW * 10**9,
        end_ns=(NOW + 1) * 10**9,
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
        resource={} if resource is None else resource,
    )


def payload(subject: str, **changes: object) -> dict[str, Any]:
    """Return the example of a payload with other values."""
    return {**copy.deepcopy(load_schema(SCHEMAS[subject])["examples"][0]), **changes}


def stored(bus: Bus, stream: str = "RL_SPANS") -> list[Any]:
    """Return traces and spans of the events that are stored."""
    return [decode_spans(event.data) for event in bus.replay(stream)]


def audits(bus: Bus) -> list[tuple[str, str]]:
    """Return what opted out, and why."""
    found = [json.loads(event.data) for event in bus.replay("RL_AUDIT")]
    return [(one["what"], one["reason"]) for one in found if one["action"] == "opt_out"]
