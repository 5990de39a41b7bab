"""What holds for the bus in a file beyond the contract: time, space, damage and sudden ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT
from support.buses import (
    STREAM,
    EmbeddedPlace,
    event,
)
from support.campaign import Campaign

from pytest_tfgrpo.production.bus.protocol import Bus


@pytest.fixture
def bus(embedded: EmbeddedPlace) -> Bus:
    return embedded.open()


# processes

PUBLISHER = """
import sys
from pathlib import Path
from support.buses import event
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.storage.event_store import TablePut

bus, start = open_embedded(Path(sys.argv[1])), int(sys.argv[2])
revision = bus.table("state").get("count")[1]
for number in range(start, start + 100_000, 3):
    put = TablePut(key="count", value=b"%d" % (number + 3), revision=revision)
    bus.publish([event(number + n, b"x" * 20_000) for n in range(3)], [put])
    revision = bus.table("state").get("count")[1]
    print(number + 3, flush=True)
"""


def publisher(path: Path, start: int, program: str = PUBLISHER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path), str(start)],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_a_publisher_that_is_killed_loses_nothing_that_was_acknowledged(
    embedded: EmbeddedPlace, campaign: Campaign
) -> None:
    done, chance = 0, campaign.random("publisher")
    for _ in range(campaign.count(4, 100)):
        child = publisher(embedded.path, done)
        assert child.stdout is not None
        assert child.stdout.readline()
        time.sleep(chance.random() / 10)
        child.send_signal(signal.SIGKILL)
        printed, _ = child.communicate()
        acknowledged = max([done + 3, *(int(line) for line in printed.splitlines() if line.isdigit())])
        bus = embedded.open()
        stored = [e.id for e in bus.replay(STREAM)]
        assert stored == [event(n).id for n in range(len(stored))]
        assert len(stored) >= acknowledged
        # events and row were one transaction
        assert bus.table("state").get("count")[0] == b"%d" % len(stored)
        done = len(stored)
        bus.close()


def test_processes_that_publish_the_same_store_it_once(embedded: EmbeddedPlace) -> None:
    program = PUBLISHER.replace(", [put])", ")").replace("100_000, 3", "60, 3")
    children = [publisher(embedded.path, start, program) for start in (0, 0, 30)]
    for child in children:
        _, errors = child.communicate(timeout=100)
        assert child.returncode == 0, errors
    stored = [e.id for e in embedded.open().replay(STREAM)]
    assert sorted(stored) == sorted(event(n).id for n in range(90))


@pytest.mark.faults
def test_a_full_disk_is_an_error_and_leaves_what_was_stored(embedded: EmbeddedPlace) -> None:
    program = """
import resource, signal
from pytest_tfgrpo.core.errors import BusError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
""" + PUBLISHER.replace(
        "for number",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))\nfor number",
    ).replace(
        '    bus.publish([event(number + n, b"x" * 20_000) for n in range(3)], [put])',
        """    try:
        bus.publish([event(number + n, b"x" * 20_000) for n in range(3)], [put])
    except BusError as error:
        print(error, flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        bus.publish([event(number + n, b"x" * 20_000) for n in range(3)], [put])
        print(number + 3, flush=True)
        break""",
    )
    child = publisher(embedded.path, 0, program)
    printed, errors = child.communicate(timeout=100)
    assert child.returncode == 0, errors
    *_, last, message, after = printed.splitlines()
    assert "free space on its disk" in message
    assert int(after) == int(last) + 3
    bus = embedded.open()
    assert len(list(bus.replay(STREAM))) == int(after)
    assert bus.table("state").get("count")[0] == after.encode()
