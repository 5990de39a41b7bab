"""Carry out one run and print what its driver took, as JSON; `simulation.py` starts it in a process.

    python benchmarks/driver_run.py '{"scenarios": 100, "slots": 32, "latency_s": [0.2, 0.4]}'

All scenarios train in each epoch, four rollouts of each, by an agent in this process that waits. Other
executors call an agent by its spec, in one epoch.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import os
import pstats
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest_tfgrpo
from pytest_tfgrpo.core.records import CheckResult, Trajectory
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, CheckKind, passed

EACH, EPOCHS, EVAL = 4, 3, 4
AGENT = """
import asyncio

async def solve(context):
    await asyncio.sleep(0.002)
    return "3" if context.seed % 5 else "no idea"
"""
PARTS = {
    "journal and files": (
        "run/journal.py",
        "core/wire/wire.py",
        "engine/run_writer.py",
        "/json/",
        "metrics/epochs.py",
    ),
    "checks": ("scoring/checks/", "engine/phases/grader.py"),
    "rewards": ("scoring/rewarders/", "numerics/", "/numpy/"),
    "event loop": ("/asyncio/", "selectors.py", "/threading.py", "/concurrent/"),
    "prompts and starts": ("engine/lineup.py", "learning/", "executors/", "llm/", "sandbox/", "run/se"),
}
"""Of the driver's work, by the files it is done in; everything else is `records and calls`."""


def note() -> dict[str, float]:
    """Return the time, processor time of this process, and how long this thread waited for a processor."""
    waited_ns = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    status = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    return {
        "wall_s": time.perf_counter(),
        "cpu_s": time.process_time(),
        "waited_s": waited_ns / 1e9,
        "peak_b": int(status["VmHWM"].split()[0]) * 1024,
    }


def write_suite(folder: Path, scenarios: int, *more: dict[str, str]) -> None:
    """Write so many train scenarios and a few for eval, with `more` checks."""
    with (folder / "many.scenarios.jsonl").open("w") as file:
        for n in range(scenarios + EVAL):
            scenario = {
                "id": f"s{n}",
                "domain": f"d{n % 7}",
                "split": "train" if n < scenarios else "eval",
                "prompt": f"How many words has the letter number {n}, without its date and its signature?",
                "checks": [{"kind": "exact", "value": "3"}, {"kind": "regex", "pattern": r"^\d+$"}, *more],
            }
            file.write(json.dumps(scenario) + "\n")


class Agent:
    """Waits, and notes when each epoch's first call starts and its last one ends."""

    name, identity, paid = "synthetic", {"name": "synthetic"}, False

    def __init__(self, plan: dict[str, Any]) -> None:
        """`latency_s` is uniform between two values; the process ends without a word at call `kill_at`."""
        self._low, high = plan["latency_s"]
        self._span = high - self._low
        self._each, self._kill_at = plan["scenarios"] * EACH, plan.get("kill_at", 0)
        self._profiler = cProfile.Profile() if plan.get("profile") else None
        self._train = {f"s{n}" for n in range(plan["scenarios"])}
        self._started = self._ended = 0
        self.starts: list[dict[str, float]] = []
        self.ends: list[dict[str, float]] = []
        self.first: dict[str, float] = {}

    async def __call__(self, call: Any) -> Trajectory:
        """Return the answer, right on four of five seeds."""
        self.first = self.first or note()
        if trains := call.task.id in self._train:
            if self._started % self._each == 0:
                self.starts.append(note())
            self._started += 1
            self._profile()
            if self._started == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        if self._low + self._span:
            await asyncio.sleep(self._low + self._span * (call.seed % 1009) / 1009)
        if trains:
            self._ended += 1
            if self._ended % self._each == 0:
                self.ends.append(note())
        return Trajectory(answer="3" if call.seed % 5 else "no idea")

    def _profile(self) -> None:
        """Profile the engine's thread, this one, over the middle of the second epoch."""
        if self._profiler is not None:
            if self._started == self._each * 5 // 4:
                self._profiler.enable()
            elif self._started == self._each * 7 // 4:
                self._profiler.disable()

    def shares(self) -> dict[str, float]:
        """Return the share of each part in the profiled time; what is built in counts for its caller."""
        spent: Counter[str] = Counter()
        if self._profiler is None:
            return {}
        stats: Any = pstats.Stats(self._profiler)
        for (file, _, name), (_, _, own_s, _, callers) in stats.stats.items():
            if "poll" in name and file == "~":
                continue  # waits
            if file == "~" and callers:
                for (caller, _, _), (_, _, one_s, _) in callers.items():
                    spent[part_of(caller)] += one_s
            else:
                spent[part_of(file)] += own_s
        whole = sum(spent.values())
        return {part: one_s / whole for part, one_s in spent.most_common()}

    def bound(self, _rollouts: int) -> None:
        """Say that nothing is known of what a call costs at most."""

    async def aclose(self) -> None:
        """Hold nothing."""


def part_of(file: str) -> str:
    """Return the part of the driver's work that a file does."""
    found = (part for part, places in PARTS.items() if any(place in file for place in places))
    return next(found, "records and calls")


class Counting:
    """A check that notes the rollout after the first quarter, and the last one, on the engine's thread."""

    def __init__(self, rollouts: int) -> None:
        self._rollouts, self._seen = rollouts, 0
        self.notes: list[dict[str, float]] = []
        self.kind = CheckKind(name="counting", params={}, evaluate=self._evaluate, blocking=False)

    def _evaluate(self, check: Check, _: CheckContext) -> CheckResult:
        self._seen += 1
        if self._seen in (self._rollouts // 4, self._rollouts):
            self.notes.append(note())
        return passed(check)


def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Carry out the run in this folder."""
    settings = {
        "group_size": EACH,
        "sample_size": plan["scenarios"],
        "epochs": plan.get("epochs", EPOCHS),
        "concurrency": plan["slots"],
        "dev_share": 0,
        "eval_mode": "separate",
        "out": "out",
        **plan.get("settings", {}),
    }
    began = note()
    if "actor" in plan:
        counting = Counting(plan["scenarios"] * EACH)
        result = pytest_tfgrpo.run(
            ".", actor=plan["actor"], checks={"counting": counting.kind}, **settings, baseline_sweep="off"
        )
        found: dict[str, Any] = {"notes": counting.notes, "rollouts": plan["scenarios"] * EACH}
    else:
        agent = Agent(plan)
        result = pytest_tfgrpo.run(".", actor=agent, resume=plan.get("resume"), **settings)
        found = {"first": agent.first, "starts": agent.starts, "ends": agent.ends, "shares": agent.shares()}
    assert result.run.status == "complete", result.run.reason
    sizes = {path.name: path.stat().st_size for path in Path(result.folder or "").iterdir() if path.is_file()}
    return {**found, "began": began, "over": note(), "sizes": sizes}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if not given.get("resume"):
        write_suite(Path(), given["scenarios"], *([{"kind": "counting"}] if "actor" in given else []))
        Path("waiting_agent.py").write_text(AGENT)
    print("\n" + json.dumps(run(given)))
