"""Processes that write records of the audit at once, and are killed: one chain, without a hole."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from support import ROOT
from support.buses import BusPlace, EmbeddedPlace, NatsPlace
from support.campaign import Campaign

from pytest_tfgrpo.production.bus.streams import AUDIT
from pytest_tfgrpo.production.trust.audit_chain import verify_audit

WORKER = """
import sys, threading
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.trust.audit_records import note
from pytest_tfgrpo.core.errors import RevisionConflict
from pytest_tfgrpo.storage.event_store import TablePut, STATE
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.storage.event_store import BusEvent

bus, name = open_bus(sys.argv[1]), sys.argv[2]

def decide():  # a record beside a row, under an id that another process may give as well
    value, revision = bus.table(STATE).get("row")
    key = derived_id("decision", str(revision))
    event = BusEvent(id=key, subject="agent.rl.audit.v1", time=f"2026-01-01T00:00:00Z",
                     data=b'{"action": "decide", "what": "%s"}' % name.encode())
    try:
        bus.publish([event], [TablePut(key="row", value=b"x", revision=revision)])
    except RevisionConflict:
        pass

def work(act):
    while True:
        act()

print("ready", flush=True)
threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in
           (decide, lambda: note(bus, "read", "trajectory", actor=name, ref="x"))]
for thread in threads:
    thread.start()
threads[0].join()
"""


def url_of(place: BusPlace) -> str:
    """Return what `open_bus` takes."""
    if isinstance(place, EmbeddedPlace):
        return f"embedded:{place.path}"
    assert isinstance(place, NatsPlace)
    return f"nats:{place.server.url}"


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_writers_that_are_killed_leave_one_chain(place: BusPlace, campaign: Campaign) -> None:
    chance = campaign.random("audit")
    for attempt in range(campaign.count(3, 40)):
        pair = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, url_of(place), f"{attempt}{name}"],
                env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in "abc"
        ]
        for child in pair:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.2, 0.6))
        for child in pair:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()
    bus = place.open()
    found = verify_audit(bus)
    assert found.broken is None
    assert found.count == bus.last(AUDIT) > 60
    actors = {json.loads(one.data).get("actor") for one in bus.replay(AUDIT)}
    assert len(actors - {None}) > 4, "they took turns"
