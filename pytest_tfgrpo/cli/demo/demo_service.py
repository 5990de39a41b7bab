"""An application with the offline agent in it, which solves tasks of the shipped fixtures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_tfgrpo.actors.offline.agent import open_offline
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.production.live.arms import LiveArm
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.suite.packs import load_packs
from pytest_tfgrpo.suite.prompt import render_prompt
from pytest_tfgrpo.suite.scenario_files import load_scenarios

if TYPE_CHECKING:
    from pytest_tfgrpo.production.live.config import ArmSpec
    from pytest_tfgrpo.production.live.session import Live
    from pytest_tfgrpo.protocols import Actor

POINT, THREADS = "config", 8
TEMPERATURE = 0.3


@dataclass(frozen=True, slots=True)
class Served:
    """One task that was served."""

    n: int
    domain: str
    arm: str
    score: float
    """What the checks found, whatever was reported."""


@dataclass(slots=True)
class DemoService:
    """An application with an agent in it; threads may share it."""

    folder: Path
    """Private: configuration, libraries, store and workspaces."""
    scenarios: Sequence[Scenario]
    packs: Mapping[str, PromptPack]
    actor: Actor
    seed: int = 0
    shuffled: bool = False
    """Reports the score of an earlier task in place of its own, so that nothing can be learned."""
    _scores: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve_all(self, live: Live, numbers: Sequence[int]) -> Iterator[Served]:
        """Serve tasks by their numbers on eight threads."""
        with ThreadPoolExecutor(THREADS) as pool:
            yield from pool.map(lambda n: self.serve(live, n), numbers)

    def serve(self, live: Live, n: int) -> Served:
        """Serve one task, and report it as an application does."""
        scenario = self.task(n)
        with live.run(f"task-{n}", category=scenario.domain, prompt=scenario.prompt) as run:
            arm = run.choose(POINT)
            run.turn()
            answer, frames, score = self.solve(arm, scenario, n)
            for frame in frames:
                if frame.kind == "tool":
                    run.tool(frame.name, error=frame.error)
            run.end(answer, score=self._reported(score, n))
        return Served(n, scenario.domain, arm.name, score)

    def task(self, n: int) -> Scenario:
        """Return the scenario of a task."""
        return self.scenarios[seed_of("demo task", self.seed, n) % len(self.scenarios)]

    def solve(self, arm: LiveArm, scenario: Scenario, n: int) -> tuple[str, tuple[Frame, ...], float]:
        """Return answer, calls and score of one attempt with the prompt that an arm makes."""
        pack = self.packs[scenario.domain]
        place = self.folder / "workspaces" / f"{n}-{arm.name}"
        workspace = Workspace(place, scenario.attachments, archive=scenario.workspace)
        prompt = replace(render_prompt(pack, scenario, ()), system=arm.system(scenario.prompt))
        call = ActorCall(
            task=scenario.task(),
            prompt=prompt,
            temperature=TEMPERATURE,
            seed=seed_of("demo", self.seed, n),
            workspace=workspace,
            timeout_s=60.0,
            answer_max_bytes=1_000_000,
        )
        found = asyncio.run(self.actor(call))
        context = CheckContext(
            answer=found.answer, frames=found.frames, workspace=workspace, task=scenario.task()
        )
        results = evaluate(scenario.checks, context, KINDS)
        weight = sum(result.weight for result in results)
        return found.answer, found.frames, sum(r.weight * r.credit for r in results) / weight

    def truth(self, arms: Mapping[str, ArmSpec], numbers: Sequence[int]) -> dict[str, float]:
        """Return the mean score of each arm over the same tasks, as only a demonstration can know it."""

        def score(spec: ArmSpec, n: int) -> float:
            scenario = self.task(n)
            arm = LiveArm(spec, 1.0, scenario.domain, lambda *_: None)
            return self.solve(arm, scenario, n)[2]

        return {name: fmean(score(spec, n) for n in numbers) for name, spec in arms.items()}

    def _reported(self, score: float, n: int) -> float:
        if not self.shuffled:
            return score
        with self._lock:
            self._scores.append(score)
            return self._scores[seed_of("shuffle", self.seed, n) % len(self._scores)]


def fixtures() -> Path:
    """Return the folder with the shipped fixtures and their prompt packs."""
    packaged = Path(__file__).resolve().parents[2] / "examples" / "demo"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[3]


def open_service(
    folder: Path, seed: int, *, shuffled: bool = False, splits: Sequence[str] = ("dev", "eval")
) -> DemoService:
    """Return the application; by default it serves the tasks that its library was not learned from."""
    root = fixtures()
    paths = sorted(path for path in (root / "fixtures").iterdir() if path.is_file())
    found = [s for path in paths for s in load_scenarios(path, root=root, kinds=KINDS)]
    return DemoService(
        folder=folder,
        scenarios=[scenario for scenario in found if scenario.split in splits],
        packs=load_packs(root / "prompt-packs"),
        actor=open_offline(),
        seed=seed,
        shuffled=shuffled,
    )
