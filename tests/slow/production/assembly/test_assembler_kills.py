"""Assemblers that are killed at random moments leave what one that is not leaves."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.buses import BusPlace, EmbeddedPlace, NatsPlace
from support.campaign import Campaign
from support.loop_spans import (
    AGENT,
    a_span,
    agent_trace,
    evaluation,
    letters,
    opt_out_event,
    payloads,
    published,
    spans_event,
    trace_id,
)
from support.loop_spans import (
    ROOT as ROOT_SPAN,
)

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import STATE, BusEvent

OPTED_OUT = range(40, 400, 40)
pytestmark = pytest.mark.faults


def stream(chance: random.Random, traces: int) -> list[BusEvent]:
    """Return the spans of many traces in one stream: whole, torn, late, twice, looping, judged, opted out."""
    queues: list[list[BusEvent]] = []
    for trace in range(1, traces):
        *inner, root = agent_trace(trace, policy_version="v1")
        chance.shuffle(inner)
        given = [spans_event(*inner[:2]), *(spans_event(one) for one in inner[2:]), spans_event(root)]
        if trace % 7 == 0:
            given.pop()
        if trace % 9 == 0:
            judged = a_span(trace, 30, parent=AGENT, at=100, events=(evaluation(trace / traces),))
            given.insert(chance.randrange(len(given) + 1), spans_event(judged))
        if trace % 11 == 0:
            given.append(spans_event(a_span(trace, 31, "execute_tool", parent=AGENT)))
        if trace % 13 == 0:
            given.append(spans_event(inner[0], root))
        if trace % 17 == 0:
            given = [spans_event(a_span(trace, 5, "chat", parent=6), a_span(trace, 6, "chat", parent=5))]
        if trace % 19 == 0:
            given = [spans_event(a_span(trace, 5, "chat", parent=ROOT_SPAN))]
        if trace in OPTED_OUT:
            given.append(opt_out_event(trace))
        queues.append(given)
    found = []
    ready = queues[:30]
    waiting = queues[30:]
    while ready:
        queue = chance.choice(ready)
        found.append(queue.pop(0))
        if not queue:
            ready.remove(queue)
            ready += waiting[:1]
            del waiting[:1]
    return found


def assemble(place: BusPlace, spec: str, events: list[BusEvent], kills: int) -> tuple[list[Any], int]:
    """Return what is published of events, and how many spans were late."""
    bus: Bus = place.open()
    bus.publish(events)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    subprocess.run(
        [sys.executable, "-m", "support.assembler_kills", spec, str(kills), str(kills)],
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
        timeout=600,
    )
    value, _ = bus.table(STATE).get("lease.assembler")
    assert value is not None
    found = [(one["metadata"]["trace_id"], one["metadata"].get("revision", 1)) for one in payloads(bus)]
    assert len(set(found)) == len(found)
    traces = {trace for trace, _ in found}
    late = {
        trace for trace in traces if int(trace, 16) % 11 == 0 and all(int(trace, 16) % n for n in (7, 17, 19))
    }
    assert {trace for trace, revision in found if revision > 1} == late != set()
    assert {one.code for one in letters(bus)} == {"loop"}
    kept = b"".join(event.data for event in bus.replay("RL_SPANS")).decode()
    assert not any(f'"{trace_id(trace)}"' in kept for trace in OPTED_OUT)
    assert not {trace_id(trace) for trace in OPTED_OUT} & traces
    return published(bus), json.loads(value)["state"]["late"]


def test_kills_change_nothing_of_what_is_published(tmp_path: Path, campaign: Campaign) -> None:
    many = campaign.count(20, 200)
    events = stream(campaign.random("assembler"), 20 * many)
    found = []
    for kills in (0, many):
        folder = tmp_path / str(kills)
        folder.mkdir()
        place = EmbeddedPlace(folder)
        found.append(assemble(place, f"embedded:{place.path}", events, kills))
        place.close()
    whole, killed = found
    assert len(whole[0]) > 16 * many
    assert killed == whole


def test_kills_change_nothing_on_a_server_either(on_nats: NatsPlace, campaign: Campaign) -> None:
    events = stream(campaign.random("assembler"), 120)
    url = on_nats.server.url
    whole = assemble(on_nats, f"nats:{url}", events, 0)
    on_nats.close()
    killed = assemble(on_nats, f"nats:{url}", events, campaign.count(6, 100))
    assert sorted(killed[0]) == sorted(whole[0])
    assert killed[1] == whole[1]
