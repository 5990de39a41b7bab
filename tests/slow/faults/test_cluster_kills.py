"""Workers, nodes, drivers and heads of Ray killed at random: nothing is lost, and nothing paid for twice."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from support.attacks import journal_of
from support.campaign import Campaign
from support.forks import Forks
from support.project import Project
from support.ray_nodes import Nodes, load_ray, open_cluster

pytestmark = [pytest.mark.faults, pytest.mark.timeout(20_000)]
QUICK = ("worker", "node", "driver")
KINDS = (*QUICK, "head", "frozen node")
"""The others wait for Ray, or for what hangs."""
SCENARIOS, SWEEP = 8, 3
T = TypeVar("T")
AGENT = """
import asyncio, os, time
from pathlib import Path

async def solve(context):
    name = f"{context.task.id}~{context.seed}~{time.monotonic_ns()}~{os.getpid()}"
    Path(TOLD, f"begun~{name}").touch()
    await asyncio.sleep(0.2)
    Path(TOLD, f"done~{name}").touch()
    return "3"
"""
BOUND_S = 200
"""How long a run may take to end, under load, whose cluster is gone."""


class Attack:
    """A project, and what its agents tell of themselves."""

    def __init__(self, project: Project, forks: Forks, told: Path) -> None:
        self.root = project.root
        self._forks = forks
        self._told = told
        told.mkdir()
        project.agent(AGENT.replace("TOLD", repr(str(told)))).tasks(train=0, eval=SCENARIOS)
        project.ini(actor="python:agent2:solve", eval_rollouts=SWEEP, concurrency=6, task_id="demo")
        self.driver = 0

    def told(self, what: str) -> list[list[str]]:
        """Return scenario, seed, time and process of all that began, or had an answer."""
        return [path.name.split("~")[1:] for path in self._told.glob(f"{what}~*")]

    def alive(self) -> set[int]:
        """Return the processes of agents that still run."""
        return {int(pid) for *_, pid in self.told("begun") if _runs(int(pid))}

    def start(self, nodes: Nodes, *args: str) -> None:
        """Start the driver, which Ray ends 10 s after its head, not after a minute."""
        words = ("--tfgrpo", "--tfgrpo-out=out", f"--tfgrpo-executor={nodes.executor}", *args)
        self.driver = self._forks.start(self.root, *words, RAY_gcs_rpc_server_reconnect_timeout_s="10")

    def end(self) -> tuple[int, str]:
        """Wait for the end of the driver; returns its exit code and what it printed."""
        late = threading.Timer(BOUND_S, os.kill, (self.driver, signal.SIGABRT))
        late.start()
        try:
            return self._forks.wait(), (self.root / "output.txt").read_text(errors="replace")
        finally:
            late.cancel()

    def forget(self) -> None:
        """Remove what the run left."""
        shutil.rmtree(self.root / "out")

    def on_file(self) -> Counter[tuple[str, str]]:
        """Return scenario and seed of the rollouts in the journal, and how often they are there."""
        return Counter(
            (line["data"]["scenario_id"], str(line["data"]["seed"]))
            for line in journal_of(self.root)
            if line["event"] == "rollout" and line["data"]["status"] == "ok"
        )


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(found: Callable[[], T]) -> T:
    """Return what `found` returns, once that is something."""
    end = time.monotonic() + BOUND_S
    while not (one := found()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return one


def strike(kind: str, attack: Attack, nodes: Nodes, second: object, draw: random.Random) -> None:
    """Kill one of its kind, once so many rollouts are done and a moment has passed."""
    done = draw.randrange(SCENARIOS * SWEEP - 1)
    at_work = wait_until(lambda: len(attack.told("done")) >= done and attack.alive())
    time.sleep(draw.random() / 5)
    if kind == "worker":
        with suppress(ProcessLookupError):  # it may have done the last of the work by now
            os.kill(draw.choice(sorted(at_work)), signal.SIGKILL)
    elif kind == "driver":
        os.kill(attack.driver, signal.SIGKILL)
    elif kind == "node":
        nodes.kill(second)
    elif kind == "frozen node":
        nodes.freeze(second)
    else:
        nodes.kill_head()


def go_on(attack: Attack, nodes: Nodes) -> tuple[int, str]:
    """Resume a run whose driver ended; what is on file is not asked again, and no agent is left."""
    wait_until(lambda: not attack.alive())
    paid, before = attack.on_file(), len(attack.told("begun"))
    begun = sorted(attack.told("begun"), key=lambda one: int(one[2]))
    attack.start(nodes, "--tfgrpo-resume")
    code, output = attack.end()
    asked = sorted(attack.told("begun"), key=lambda one: int(one[2]))[before:]
    assert begun == sorted(attack.told("begun"), key=lambda one: int(one[2]))[:before]
    assert not {(id_, seed) for id_, seed, *_ in asked} & paid.keys(), "paid twice"
    return code, output


def survive(kind: str, attack: Attack, draw: random.Random, nodes: Nodes) -> None:
    second = nodes.add()
    attack.start(nodes)
    strike(kind, attack, nodes, second, draw)
    code, output = attack.end()
    if kind == "driver":
        code, output = go_on(attack, nodes)
    elif kind == "head" and code != 0:  # else the other node did the rest
        with open_cluster() as others:
            code, output = go_on(attack, others)
    else:
        lost = sum(map(int, re.findall(r"(\d+) calls? of the agent ended with a worker", output)))
        assert len(attack.told("begun")) - SCENARIOS * SWEEP <= lost, output
    assert code == 0, output
    assert len(attack.on_file()) == SCENARIOS * SWEEP
    assert set(attack.on_file().values()) == {1}
    if kind not in ("node", "head"):
        nodes.kill(second)
    wait_until(lambda: not attack.alive())


@pytest.fixture(scope="module", autouse=True)
def _ray() -> None:
    load_ray()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_killed_on_a_cluster_costs_what_was_in_flight_there(
    kind: str, project: Project, forks: Forks, tmp_path: Path, campaign: Campaign
) -> None:
    if kind not in (KINDS if campaign.full else campaign.sample(QUICK, 1)):
        pytest.skip("not in the sample")
    attacks = 0
    while attacks < campaign.count(1, 50):
        with open_cluster() as nodes:
            while attacks < campaign.count(1, 50) and nodes.is_whole:
                attack = Attack(project, forks, tmp_path / f"told-{attacks}")
                survive(kind, attack, campaign.random("cluster", kind, attacks), nodes)
                attack.forget()
                attacks += 1
    print(f"{attacks} attacks")
