"""Jobs for tests of the engine: small, in memory, with actors written in the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.core.records import Frame, Run, Trajectory
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.gate.sequential import watch_for
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.protocols import Actor, ActorCall, LearningContext, Proposal
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.schedule import outline, plan
from pytest_tfgrpo.scoring.checks.registry import KINDS
from support.builders import make_experience, make_pack, make_scenario

Answer = Callable[[ActorCall], Awaitable[str | Trajectory] | str | Trajectory]


class ScriptedActor:
    """Answers as a function of the call says; records every call."""

    paid = False

    def __init__(self, answer: Answer, bound: Mapping[str, float | None] | None = None) -> None:
        self.name = "scripted"
        self.identity: Mapping[str, Any] = {}
        self.calls: list[ActorCall] = []
        self.closed = False
        self.in_flight = self.most_in_flight = 0
        self._answer = answer
        self._bound = bound or {}

    async def __call__(self, call: ActorCall) -> Trajectory:
        self.calls.append(call)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = self._answer(call)
            if isinstance(answer, Awaitable):
                answer = await answer
        finally:
            self.in_flight -= 1
        if isinstance(answer, Trajectory):
            return answer
        frame = Frame(kind="tool", name="guess" if answer != "3" else "count", output=answer, cost_usd=0.01)
        return Trajectory(answer=answer, frames=(frame,))

    def bound(self, call_count: int) -> Mapping[str, float | None]:
        return self._bound

    async def aclose(self) -> None:
        self.closed = True


class LessonPerGroup:
    """Adds one lesson for each informative group."""

    name = "lesson-per-group"
    identity: Mapping[str, Any] = MappingProxyType({})

    async def propose(self, context: LearningContext) -> Proposal:
        groups = [group for group in context.groups if group.informative]
        return Proposal(
            operations=tuple(
                Operation(
                    kind="add",
                    experience=make_experience(
                        id=identify(context.run_id, context.epoch, group.group_id, 0),
                        run_id=context.run_id,
                        task_id=context.task_id,
                        epoch=context.epoch,
                        group_id=group.group_id,
                        summary32=f"For words in a letter use count, as in {group.scenario_id}.",
                        actor=context.actor,
                        created_at=context.created_at,
                        manifest_path=context.manifest_path,
                    ),
                )
                for group in groups
            ),
            lesson_groups=frozenset(group.group_id for group in groups),
        )


def three_or_not(call: ActorCall) -> str:
    """Be right on about half of the seeds."""
    return "3" if call.seed % 2 else "4"


def suite(train: int = 4, sweep: int = 3) -> list[Scenario]:
    def one(name: str, n: int, split: str) -> Scenario:
        stamp = f"{1000 * (split == 'eval') + n:064}"
        check = Check(kind="exact", params={"value": "3"})
        prompt = f"How many words are in the {name} letter number {n}?"
        return make_scenario(f"{split}-{n}", split=split, stamp=stamp, checks=(check,), prompt=prompt)

    return [one("long", n, "train") for n in range(train)] + [one("old", n, "eval") for n in range(sweep)]


def make_job(
    actor: Actor, temporary: Path, *, scenarios: Sequence[Scenario] | None = None, **changes: Any
) -> Job:
    """Return a learning job; settings are given by name, other fields as ``job_...``."""
    fields = {key[4:]: changes.pop(key) for key in list(changes) if key.startswith("job_")}
    settings: Any = {name: setting.default for name, setting in BY_NAME.items()}
    settings |= {"group_size": 4, "actor": actor.name} | changes
    settings["eval_rollouts"] = settings["eval_rollouts"] or settings["group_size"]
    known = tuple(suite() if scenarios is None else scenarios)
    phases = plan(outline(settings, learning=True, sweep_rollouts=settings["eval_rollouts"]), known, settings)
    values: dict[str, Any] = {
        "run_id": "run1",
        "task_id": "demo",
        "started_at": "2026-01-01T00:00:00Z",
        "settings": settings,
        "scenarios": known,
        "phases": tuple(phases),
        "packs": {"text": make_pack()},
        "actor": actor,
        "optimizer": LessonPerGroup(),
        "kinds": KINDS,
        "library": empty(),
        "stamps": {"settings": "s"},
        "versions": {"python": "3"},
        "temporary": temporary,
        "budget": Budget(settings),
    }
    return Job(**values | fields)


def run_job(job: Job, folder: Path | None = None) -> tuple[Run, list[object]]:
    """Run a job to its end; returns the run and all that was observed."""
    seen: list[object] = []
    run = asyncio.run(Engine(job, folder=folder, observe=seen.append, watch=watch_for(job)).run())
    return run, seen
