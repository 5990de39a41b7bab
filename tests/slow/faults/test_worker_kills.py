"""Worker processes killed at random moments: each costs the rollout that it was at, and no other changes."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.executors import job_of, rollouts
from support.jobs import run_job

from pytest_tfgrpo.core.records import Run

pytestmark = pytest.mark.faults
KILLED = "the agent's process was killed by SIGKILL before it had answered"


def workers() -> list[int]:
    """Return the worker processes of this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == os.getpid() and b"worker_main" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def attacked_run(folder: Path, draw: random.Random) -> tuple[Run, int]:
    """Return a run during which workers are killed, and how many were."""
    done, kills = threading.Event(), 0

    def kill() -> None:
        nonlocal kills
        while not done.wait(draw.random()):
            if pids := workers():
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(pids), signal.SIGKILL)
                    kills += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        run, _ = run_job(job_of("takes_a_moment", "process:2", folder, group_size=4))
    finally:
        done.set()
        thread.join()
    return run, kills


def test_workers_killed_at_random_cost_a_rollout_each(tmp_path: Path, campaign: Campaign) -> None:
    whole, _ = run_job(job_of("takes_a_moment", "process:2", tmp_path, group_size=4))
    expected = {r.rollout_id: (r.status, r.answer) for r in rollouts(whole)}
    total = 0
    for n in range(campaign.count(1, 12)):
        run, kills = attacked_run(tmp_path, campaign.random("workers", n))
        found = {r.rollout_id: r for r in rollouts(run)}
        changed = [r for id_, r in found.items() if (r.status, r.answer) != expected[id_]]
        assert run.status == "complete"
        assert found.keys() == expected.keys()
        assert {r.failure and r.failure.message for r in changed} <= {KILLED}
        assert len(changed) <= kills
        assert not workers()
        total += kills
    print(f"{total} workers killed")
