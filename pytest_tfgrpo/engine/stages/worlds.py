"""Worlds: what a scenario sets up before each rollout's agent runs, and tears down after its checks.

The journal says first that a world is going to be set up, so that a resumed run tears down what a killed one
left. A step that breaks is an error of its rollout, never the agent's failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Failure, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import gist
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot
from pytest_tfgrpo.engine.attempts.stage import MakeAttempt, Stage
from pytest_tfgrpo.engine.stages.world_steps import StepContext, StepFailed, StepRunner
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.judgement import as_error
from pytest_tfgrpo.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.run_writer import RunWriter
    from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces

GRACE_S = 3.0
"""How long the end of a run waits for a callable that still sets up; then it is left to itself."""
CLOSE_S = 15.0
"""How long the end of a run waits for what is torn down then; a resumed run tries the rest."""


@dataclass(kw_only=True, slots=True)
class _World:
    """The world of one rollout, from the moment before it is set up until it is torn down."""

    rollout_id: str
    scenario: Scenario
    workspace: Workspace
    setting_up: asyncio.Task[str] | None = None
    tearing_down: asyncio.Task[str] | None = None


class Worlds(Stage):
    """Sets up and tears down the worlds of a run's rollouts; used on the engine's event loop only."""

    def __init__(self, job: Job, writer: RunWriter, warn: Callable[[str], None]) -> None:
        """`warn` receives what went wrong where no rollout counts any more that could be the error."""
        self._job = job
        self._writer = writer
        self._warn = warn
        self._runner = StepRunner(job)
        self._open: dict[str, _World] = {}

    async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
        """Set up the world of a rollout and return how its attempt ended; the checks still need that world.

        Where it is an error nothing is checked, and its world is torn down at once.
        """
        if not slot.question.scenario.steps:
            return await make(slot)
        broken = await self._set_up(slot)
        if broken:
            failure = Failure(code="setup", message=redact(broken))
            now = utc_now()
            outcome: AttemptResult | None = AttemptResult(
                status="error", failure=failure, started_at=now, latency_ms=0.0
            )
        else:
            outcome = await make(slot)
        if outcome is None or outcome.status == "error":
            await self.undo(slot)
        return outcome

    async def _set_up(self, slot: Slot) -> str:
        """Return what went wrong, or nothing."""
        scenario = slot.question.scenario
        world = _World(rollout_id=slot.rollout_id, scenario=scenario, workspace=slot.call.workspace)
        self._open[world.rollout_id] = world
        if scenario.teardown is not None:
            self._writer.world(world.rollout_id, scenario.id, up=True)
            await self._writer.commit()
        world.setting_up = asyncio.create_task(self._step("setup", world))
        return await asyncio.shield(world.setting_up)

    async def checked(self, slot: Slot, rollout: Rollout) -> Rollout:
        """Tear down the world of a rollout whose checks are done; an error where that breaks."""
        broken = await self._tear_down(slot.rollout_id)
        return as_error(rollout, "teardown", broken) if broken else rollout

    async def undo(self, slot: Slot) -> None:
        """Tear down the world of an attempt that nothing is going to check; where that breaks, warn."""
        if broken := await self._tear_down(slot.rollout_id):
            self._warn(redact(f"{slot.rollout_id}: {gist(broken)}"))

    async def _tear_down(self, rollout_id: str) -> str:
        """Tear down the world of a rollout, if it has one; return what went wrong, or nothing."""
        world = self._open.get(rollout_id)
        return "" if world is None else await self._end(world)

    async def _end(self, world: _World) -> str:
        if world.tearing_down is None:
            world.tearing_down = asyncio.create_task(self._step("teardown", world))
        broken = await asyncio.shield(world.tearing_down)
        if self._open.pop(world.rollout_id, None) is not None and world.scenario.teardown is not None:
            self._writer.world(world.rollout_id, world.scenario.id, up=False)
        return broken

    async def begin(self, workspaces: RunWorkspaces) -> None:
        """Tear down what an interrupted process left, in the workspaces that it left if they are there."""
        scenarios = {scenario.id: scenario for scenario in self._job.scenarios}
        left = []
        for rollout_id, scenario_id in self._job.resumed.worlds.items():
            scenario = scenarios.get(scenario_id)
            if scenario is None or scenario.teardown is None:
                continue
            made_of = self._job.made_of(scenario)
            found = workspaces.left(rollout_id, *made_of) or workspaces.new(rollout_id, *made_of)
            self._open[rollout_id] = _World(rollout_id=rollout_id, scenario=scenario, workspace=found)
            left.append(self._open[rollout_id])
        for world, broken in zip(left, await asyncio.gather(*map(self._end, left)), strict=True):
            workspaces.renew(world.workspace)
            if broken:
                self._warn(redact(f"{world.rollout_id}, which an interrupted run left: {gist(broken)}"))

    async def close(self) -> None:
        """Tear down what the end of the run left, within CLOSE_S."""
        left = {asyncio.create_task(self._close(world)): world for world in tuple(self._open.values())}
        if not left:
            return
        done, late = await asyncio.wait(left, timeout=CLOSE_S)
        for task in late:
            self._warn(f"{left[task].rollout_id}: its world was not torn down within {CLOSE_S:g} s")
        for task in done:
            if broken := task.result():
                self._warn(redact(f"{left[task].rollout_id}: {gist(broken)}"))

    async def _close(self, world: _World) -> str:
        if world.setting_up is not None and not world.setting_up.done():
            setup = world.scenario.setup
            if setup is not None and setup.target:  # a thread cannot be stopped
                await asyncio.wait([world.setting_up], timeout=GRACE_S)
            world.setting_up.cancel()
            await asyncio.wait([world.setting_up])
        return await self._end(world)

    async def _step(self, name: str, world: _World) -> str:
        """Run a step of a world; return what went wrong, or nothing."""
        step = world.scenario.steps.get(name)
        if step is None:
            return ""
        workspace = world.workspace
        try:
            if not workspace.made:  # perhaps thousands of files
                await asyncio.to_thread(workspace.make)
            workspace.secure()
            context = StepContext(
                workspace=workspace.path, task=world.scenario.task(), rollout_id=world.rollout_id
            )
            await self._runner.run(step, context, workspace.environment)
        except (StepFailed, ProviderError) as error:
            return f"{name} {error}"
        return ""
