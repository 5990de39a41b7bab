"""Processes that move the same things on and are killed: each transition has its event, once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT
from support.buses import EmbeddedPlace, texts
from support.campaign import Campaign
from support.job_states import JOB_STREAM, jobs

PATH = {"request": "queued", "start": "running", "finish": "completed"}
WORKER = """
import itertools, sys
from pathlib import Path
from support.job_states import NOON, jobs
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded

states = jobs(open_embedded(Path(sys.argv[1])), sys.argv[2])
for number in itertools.count(int(sys.argv[3])):
    for trigger in ("request", "start", "finish"):
        states.take(states.at(f"j{number}"), trigger, time=NOON, data=f"j{number} {trigger}".encode())
    print(number, flush=True)
"""


def worker(path: Path, owner: str, start: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), owner, str(start)],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_leaves_each_state_with_its_events(
    embedded: EmbeddedPlace, campaign: Campaign
) -> None:
    chance, start = campaign.random("states"), 0
    for attempt in range(campaign.count(3, 50)):
        pair = [worker(embedded.path, f"{attempt}-{name}", start) for name in "ab"]
        for child in pair:
            assert child.stdout is not None
            assert child.stdout.readline()
        time.sleep(chance.random() / 5)
        for child in pair:
            child.kill()
            child.communicate()
        bus = embedded.open()
        seen: dict[str, list[str]] = {}
        for text in texts(list(bus.replay(JOB_STREAM))):
            key, _, trigger = text.partition(" ")
            if (
                int(key[1:]) >= start
            ):  # of earlier ones the stream, which has a largest size, may keep the end alone
                seen.setdefault(key, []).append(trigger)
        states = jobs(bus)
        for key, triggers in seen.items():
            assert triggers == list(PATH)[: len(triggers)]
            assert states.at(key).state == PATH[triggers[-1]]
        start = max(int(key[1:]) for key in seen)
        bus.close()
