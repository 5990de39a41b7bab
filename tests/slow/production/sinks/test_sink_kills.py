"""Processes that fill an archive and a log are killed at any moment: each event is there, once."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support import ROOT
from support.buses import EmbeddedPlace
from support.campaign import Campaign
from support.loop_events import publish, trajectory
from support.loop_sinks import SCRUBBER

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.sinks.archive import Archive
from pytest_tfgrpo.production.sinks.figures import sinks_status
from pytest_tfgrpo.production.sinks.follower import SinkFollower
from pytest_tfgrpo.production.sinks.log_lines import LogLines

WORKER = """
import sys
from pathlib import Path
from support.loop_sinks import SCRUBBER, TODAY
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.sinks import follower
from pytest_tfgrpo.production.sinks.archive import Archive
from pytest_tfgrpo.production.sinks.log_lines import LogLines

follower.AT_ONCE = 7
bus, folder = open_embedded(Path(sys.argv[1])), Path(sys.argv[2])
archive, log = Archive(folder / "archive"), LogLines(folder / "loop.log")
archive.every_s = log.every_s = 0.0
more = {"ttl_s": 0.1, "wall": lambda: TODAY}
roles = [follower.SinkFollower(bus, one, SCRUBBER, sys.argv[3], **more) for one in (archive, log)]
print("ready", flush=True)
while True:
    for role in roles:
        role.step()
"""


def worker(path: Path, folder: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), str(folder), name],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_leaves_each_event_once(
    embedded: EmbeddedPlace, campaign: Campaign, tmp_path: Path
) -> None:
    chance, bus = campaign.random("sinks"), embedded.open()
    places = Archive(tmp_path / "archive"), LogLines(tmp_path / "loop.log")
    for place in places:  # the log begins with what comes
        role = SinkFollower(bus, place, SCRUBBER, "first")
        role.step()
        role.close()
    names: list[str] = []
    for attempt in range(campaign.count(4, 50)):
        pair = [worker(embedded.path, tmp_path, f"{attempt}-{name}") for name in "ab"]
        for child in pair:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        until = time.monotonic() + chance.uniform(0.05, 0.6)
        while time.monotonic() < until:
            some = [f"{len(names) + n}-run" for n in range(20)]
            publish(bus, [trajectory(name) for name in some])
            names += some
        for child in pair:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()
    _finish(embedded.path, tmp_path, bus)
    wanted = Counter(trajectory(name).id for name in names)
    assert len(wanted) > 50
    (file,) = (tmp_path / "archive").glob("*.gz")
    assert (
        Counter(json.loads(line)["id"] for line in gzip.decompress(file.read_bytes()).splitlines()) == wanted
    )
    whole = []
    for line in (tmp_path / "loop.log").read_text().splitlines():
        try:
            whole.append(json.loads(line)["event_id"])
        except ValueError:  # a kill tore it, and it came again
            continue
    assert set(whole) == set(wanted)
    if shutil.which("zcat"):
        shown = subprocess.run(["zcat", str(file)], capture_output=True, check=True)
        assert shown.stdout.count(b"\n") == len(wanted)


def _finish(path: Path, folder: Path, bus: Bus) -> None:
    last = worker(path, folder, "last")
    until = time.monotonic() + 60
    while any(sink.behind for sink in sinks_status(bus).values()):
        assert time.monotonic() < until
        time.sleep(0.05)
    last.kill()
    last.wait()
    assert last.stdout is not None
    last.stdout.close()
