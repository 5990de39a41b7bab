"""Jobs for tests of executors, and what became of their workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_tfgrpo.actors.python import open_python
from pytest_tfgrpo.core.records import Rollout, Run
from pytest_tfgrpo.core.scenarios import Prompt, Scenario
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.sandbox.workspace import Workspace
from support import ROOT
from support.builders import make_scenario
from support.guard import POLL_S
from support.jobs import make_job


def job_of(agent: str, executor: str, folder: Path, **changes: Any) -> Job:
    """Return a job whose agent is one of ``support.worker_agents``."""
    root = ROOT / "tests"
    actor = open_python(f"support.worker_agents:{agent}", root)
    fields: dict[str, Any] = {
        "concurrency": 2,
        "group_size": 2,
        "job_root": root,
        "job_supplied_actor": False,
    }
    return make_job(actor, folder, executor=executor, **fields | changes)


def asked(prompt: str, folder: Path, timeout_s: float = 100.0) -> ActorCall:
    return ActorCall(
        task=make_scenario().task(),
        prompt=Prompt(system="", user=prompt),
        temperature=0.0,
        seed=1,
        workspace=Workspace(folder / f"work-{time.monotonic_ns()}"),
        timeout_s=timeout_s,
        answer_max_bytes=1000,
    )


def scenario(name: str, prompt: str, **changes: Any) -> Scenario:
    return make_scenario(name, split="eval", prompt=prompt, stamp=stamp_bytes(name.encode()), **changes)


def rollouts(run: Run) -> list[Rollout]:
    return [r for p in run.phases for g in p.groups for r in g.rollouts]


def alive(folder: Path) -> set[int]:
    """Return the processes that have told who they are, without this one, that still run."""
    pids = {int(path.name.split("-")[1]) for path in folder.iterdir()} - {os.getpid()}
    return {pid for pid in pids if Path(f"/proc/{pid}").exists() and "Z" not in _state(pid)}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def wait_until(done: Callable[[], object]) -> None:
    end = time.monotonic() + 100
    while not done():
        assert time.monotonic() < end
        time.sleep(POLL_S)
