"""Run 1,000 rollouts of 100 ms each with 64 in flight: the engine alone, and a whole pytest process.

    python benchmarks/engine.py [ROUNDS]

Efficiency is the ideal time (16 rounds of 100 ms) over the wall time. The engine keeps its journal, checks
every answer, scores every group and writes its files. The peer does nothing but wait, behind a semaphore.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_tfgrpo.actors.python import AgentContext, PythonActor
from pytest_tfgrpo.core.records import Phase, Run
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.scoring.checks.registry import KINDS

SCENARIOS, GROUP_SIZE, IN_FLIGHT, SLEEP_S = 250, 4, 64, 0.1
ROLLOUTS = SCENARIOS * GROUP_SIZE
IDEAL_S = math.ceil(ROLLOUTS / IN_FLIGHT) * SLEEP_S
AGENT = f"import asyncio\nasync def solve(context):\n    await asyncio.sleep({SLEEP_S})\n    return '3'\n"


async def solve(context: AgentContext) -> str:
    """Answer after 100 ms, right on half of the seeds."""
    await asyncio.sleep(SLEEP_S)
    return "3" if context.seed % 2 else "4"


def write(context: AgentContext) -> str:
    """Answer at once, with two files in the workspace."""
    for name in ("notes.txt", "result.txt"):
        (context.workspace / name).write_text(name)
    return "3"


def job(temporary: Path, solver: Callable[[AgentContext], Any] = solve) -> Job:
    """Return a job of one sweep; workspaces lie in `temporary`."""
    scenarios = tuple(
        Scenario(
            id=f"s{n}",
            domain="text",
            split="eval",
            prompt=f"How many words has letter {n}?",
            checks=(Check(kind="exact", params={"value": "3"}),),
            stamp=stamp(n),
        )
        for n in range(SCENARIOS)
    )
    ids = tuple(scenario.id for scenario in scenarios)
    settings = {name: setting.default for name, setting in BY_NAME.items()}
    return Job(
        run_id="run",
        task_id="benchmark",
        started_at="2026-01-01T00:00:00Z",
        settings=settings | {"concurrency": IN_FLIGHT, "group_size": GROUP_SIZE},
        scenarios=scenarios,
        phases=(Phase(epoch=1, mode="eval", temperature=0.3, rollouts=GROUP_SIZE, scenarios=ids),),
        packs={},
        actor=PythonActor("python:benchmark:solve", solver, {}),
        optimizer=open_optimizer("heuristic"),
        kinds=KINDS,
        library=empty(),
        stamps={},
        versions={},
        temporary=temporary,
        budget=Budget(settings),
    )


def engine_s(folder: Path) -> float:
    """Return the seconds of a run of the engine, files included."""
    seen: list[object] = []
    runs: list[Run] = []
    own = job(folder)

    async def whole() -> None:  # `asyncio.run` on this thread would print a result, the whole run
        runs.append(await Engine(own, folder=folder / "out", observe=seen.append).run())

    began = time.perf_counter()
    asyncio.run(whole())
    wall_s = time.perf_counter() - began
    assert sum(len(group.rollouts) for group in runs[0].phases[0].groups) == ROLLOUTS
    return wall_s


def workspaces_s(folder: Path) -> float:
    """Return the seconds of a run whose agents write to their workspaces, beside the run's files."""
    (folder / "inside").mkdir()
    return _workspaces_s(folder, folder / "inside")


def outside_s(folder: Path) -> float:
    """Return the same with workspaces in the system's temporary folder."""
    return _workspaces_s(folder, Path(tempfile.gettempdir()))


def _workspaces_s(folder: Path, temporary: Path) -> float:
    began = time.perf_counter()
    asyncio.run(Engine(job(temporary, write), folder=folder / "out", observe=lambda _: None).run())
    return time.perf_counter() - began


def peer_s(_: Path) -> float:
    """Return the seconds of the same waiting without an engine."""

    async def wait() -> None:
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def one() -> None:
            async with slots:
                await asyncio.sleep(SLEEP_S)

        await asyncio.gather(*(one() for _ in range(ROLLOUTS)))

    began = time.perf_counter()
    asyncio.run(wait())
    return time.perf_counter() - began


def process_s(folder: Path) -> float:
    """Return the seconds of a whole pytest process, from start to exit."""
    (folder / "agent.py").write_text(AGENT)
    settings = {
        "actor": "python:agent:solve",
        "eval_rollouts": GROUP_SIZE,
        "concurrency": IN_FLIGHT,
        "out": "out",
    }
    lines = "".join(f"tfgrpo_{name} = {value}\n" for name, value in settings.items())
    (folder / "pytest.ini").write_text(f"[pytest]\n{lines}")
    with (folder / "many.scenarios.jsonl").open("w") as file:
        for n in range(SCENARIOS):
            scenario = {"id": f"s{n}", "split": "eval", "prompt": f"How many words has letter {n}?"}
            file.write(json.dumps(scenario | {"checks": [{"kind": "exact", "value": "3"}]}) + "\n")
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tfgrpo", "-q"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    wall_s = time.perf_counter() - began
    assert done.returncode == 0, done.stdout[-2000:]
    return wall_s


def main(rounds: int) -> None:
    """Print medians and efficiencies."""
    cases: dict[str, Callable[[Path], float]] = {
        "bare waiting": peer_s,
        "engine": engine_s,
        "pytest process": process_s,
    }
    writing = {"workspaces inside": workspaces_s, "workspaces outside": outside_s}
    times: dict[str, list[float]] = {name: [] for name in (*cases, *writing)}
    for _ in range(rounds):
        for name, measure in (*cases.items(), *writing.items()):
            with tempfile.TemporaryDirectory() as folder:
                times[name].append(measure(Path(folder)))
    print(f"{ROLLOUTS:,} rollouts of {SLEEP_S * 1000:.0f} ms, {IN_FLIGHT} in flight: ideal {IDEAL_S:.2f} s")
    for name in cases:
        wall_s = statistics.median(times[name])
        bar = "   bar: >= 0.95" if name == "engine" else ""
        print(f"{name:15} {wall_s:6.3f} s   efficiency {IDEAL_S / wall_s:.3f}{bar}")
    inside, outside = (statistics.median(times[name]) for name in writing)
    print(
        f"agents that write two files and answer at once: workspaces in the output folder's file system "
        f"{inside:.3f} s, in the temporary folder {outside:.3f} s, ratio {outside / inside:.3f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
