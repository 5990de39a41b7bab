"""Time executors against each other: worker processes for agents that compute, Ray for those that wait.

    python benchmarks/scale.py [ROUNDS]
    python benchmarks/scale.py ray [ROUNDS]

Each rollout takes a fixed amount of computing, about 0.1 s of processor time. `process:2` and `process:1` run
one after the other in pairs, in turn first, warm workers not assumed: their start is part of the time. On two
idle processors process:2 should be 1.85 times as fast. `local` computes in threads of one interpreter, and
shows what workers gain over that. The driver's processor time is that of this process alone.

With `ray`, 2,000 coroutines of 0.1 s run on a local cluster of two nodes with 64 places each, next to the
same calls of one bare async actor of Ray on each node. Workers and actors have started by then, and their end
is left out. The ideal is 2,000 / 128 times 0.1 s.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_tfgrpo.actors.python import open_python
from pytest_tfgrpo.core.records import Phase, Run
from pytest_tfgrpo.core.scenarios import Check, PromptPack, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.executors.registry import require_executor
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.scoring.checks.registry import KINDS

SCENARIOS, GROUP_SIZE = 40, 4
ROLLOUTS = SCENARIOS * GROUP_SIZE
BAR = 1.85
CALLS, SLOTS, WAIT_S = 2000, 64, 0.1
IDEAL_S = CALLS / (2 * SLOTS) * WAIT_S
RAY_BAR, DRIVER_BAR_MS = 1.35, 1.0
AGENT = """
import asyncio

async def wait(context):
    await asyncio.sleep(0.1)
    return "3" if context.seed % 2 else "4"

def compute(context):
    total = 0
    for n in range(1_500_000):
        total += n * n
    return "3" if context.seed % 2 else "4"
"""


class Span:
    """Observes a run from what its executor says first to the last record of its phases."""

    def __init__(self) -> None:
        self._from: tuple[float, float] | None = None
        self._to = (0.0, 0.0)

    def __call__(self, record: object) -> None:
        """Read both clocks."""
        now = time.perf_counter(), time.process_time()
        if self._from is None and isinstance(record, Notice):
            self._from = now
        if not isinstance(record, Run):
            self._to = now

    @property
    def took(self) -> tuple[float, float]:
        """Return wall and processor time, in seconds."""
        assert self._from is not None
        return self._to[0] - self._from[0], self._to[1] - self._from[1]


class Timing(NamedTuple):
    """What a run took."""

    wall_s: float
    driver_ms: float
    """Processor time of the driver per rollout."""
    means: tuple[float, ...]
    """Mean score of each scenario, in order."""


def job(
    root: Path, executor: str, agent: str = "compute", scenarios: int = SCENARIOS, concurrency: int = 8
) -> Job:
    """Return a job of one sweep, in a folder with the agent."""
    suite = tuple(
        Scenario(
            id=f"s{n}",
            domain="text",
            split="eval",
            prompt=f"Question {n}",
            checks=(Check(kind="exact", params={"value": "3"}),),
            stamp=stamp(n),
        )
        for n in range(scenarios)
    )
    phase = Phase(
        epoch=1,
        mode="eval",
        temperature=0.3,
        rollouts=GROUP_SIZE,
        scenarios=tuple(s.id for s in suite),
    )
    settings: Any = {name: setting.default for name, setting in BY_NAME.items()}
    settings |= {"executor": executor, "actor": f"python:scale_agent:{agent}", "concurrency": concurrency}
    return Job(
        run_id="run",
        task_id="scale",
        started_at="2026-01-01T00:00:00Z",
        settings=settings,
        scenarios=suite,
        phases=(phase,),
        packs={"*": PromptPack(id="all", domain="*", stamp=stamp("all"), system="Solve the task.")},
        actor=open_python(f"scale_agent:{agent}", root),
        supplied_actor=False,
        optimizer=open_optimizer("none", packs=root),
        kinds=KINDS,
        library=empty(),
        stamps={},
        versions={},
        budget=Budget(settings),
        root=root,
        temporary=root,
    )


def timed(root: Path, executor: str) -> Timing:
    """Run a job; workers are started in it."""
    folder = root / f"run-{time.monotonic_ns()}"
    wall, cpu = time.perf_counter(), time.process_time()
    run: Run = asyncio.run(Engine(job(root, executor), folder=folder, observe=[]).run())
    took, driver = time.perf_counter() - wall, time.process_time() - cpu
    groups = [group for phase in run.phases for group in phase.groups]
    assert sum(len(group.rollouts) for group in groups) == ROLLOUTS, run
    scores = [[s.gt_score or 0.0 for s in group.scores] for group in groups]
    return Timing(took, driver * 1000 / ROLLOUTS, tuple(map(statistics.fmean, scores)))


async def bare(actors: list[Any]) -> float:
    """Return how long the same calls of bare async actors take."""

    async def work(calls: Iterator[int], actor: Any) -> None:
        for _ in calls:
            await actor.wait.remote()

    calls, began = iter(range(CALLS)), time.perf_counter()
    await asyncio.gather(*(work(calls, actor) for actor in actors for _ in range(SLOTS)))
    return time.perf_counter() - began


class Bare:
    """An async actor that waits."""

    async def wait(self) -> None:
        """Wait as long as a rollout does."""
        await asyncio.sleep(WAIT_S)


def on_ray(root: Path, rounds: int) -> None:
    """Print rounds of runs and bare actors, and their medians."""
    import ray
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cluster: Any = Cluster(
        initialize_head=True, connect=False, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    spec, rows = f"ray:{cluster.address}", list[tuple[float, float, float]]()
    try:
        for n in range(rounds):
            one = job(root, spec, "wait", CALLS // GROUP_SIZE, 2 * SLOTS)
            require_executor(one)
            places = [NodeAffinitySchedulingStrategy(row["NodeID"], soft=False) for row in ray.nodes()]
            actors = [
                ray.remote(Bare)
                .options(num_cpus=0, max_concurrency=SLOTS, scheduling_strategy=place)
                .remote()
                for place in places
            ]
            ray.get([actor.wait.remote() for actor in actors])
            pair = asyncio.run(bare(actors))
            for actor in actors:
                ray.kill(actor)
            span = Span()
            run = asyncio.run(Engine(one, folder=root / f"ray-{n}", observe=[span]).run())
            assert run.status == "complete", run.warnings
            wall, cpu = span.took
            rows.append((wall / pair, wall / IDEAL_S, cpu * 1000 / CALLS))
            print(
                f"bare actors {pair / IDEAL_S:5.2f}   run {rows[-1][1]:5.2f} times the ideal, "
                f"{rows[-1][0]:.2f} times bare   driver {rows[-1][2]:.2f} ms a rollout   "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        best = [min(column) for column in zip(*rows, strict=True)]
        print(f"least: {best[1]:.2f} times the ideal (bar {RAY_BAR}), {best[0]:.2f} times bare actors")
        print(f"driver {best[2]:.2f} ms of processor time a rollout (bar {DRIVER_BAR_MS})")
    finally:
        cluster.shutdown()


def main() -> None:
    """Print pairs, their median ratio, and the driver's processor time."""
    numbers = [int(word) for word in sys.argv[1:] if word != "ray"]
    rounds = numbers[0] if numbers else 5
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "scale_agent.py").write_text(AGENT)
        if "ray" in sys.argv:
            on_ray(root, rounds)
            return
        local, ratios, driver = timed(root, "local"), list[float](), list[float]()
        print(f"{ROLLOUTS} rollouts, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        print(f"local       {local.wall_s:6.2f} s in one interpreter")
        for n in range(rounds):
            order = ("process:1", "process:2") if n % 2 else ("process:2", "process:1")
            found = {executor: timed(root, executor) for executor in order}
            one, two = found["process:1"], found["process:2"]
            assert one.means == two.means == local.means, "the same seeds gave other results"
            ratios.append(one.wall_s / two.wall_s)
            driver.append(two.driver_ms)
            print(f"process:1 {one.wall_s:6.2f} s   process:2 {two.wall_s:6.2f} s   ratio {ratios[-1]:.2f}")
        ratio = statistics.median(ratios)
        print(f"median ratio {ratio:.2f}, bar {BAR} on two idle processors")
        print(f"driver {statistics.median(driver):.2f} ms of processor time a rollout")


if __name__ == "__main__":
    main()
