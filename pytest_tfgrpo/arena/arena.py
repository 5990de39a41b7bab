"""An arena: contestants train one after another on equal budgets, then one sweep asks what all came to."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_tfgrpo.arena.bugs import failure_of
from pytest_tfgrpo.arena.contestants.learned import Learned
from pytest_tfgrpo.arena.final_sweep import (
    SweptSides,
    abandoned_sweeps,
    has_placebo,
    sweep_request,
    sweep_sides,
)
from pytest_tfgrpo.arena.plan import ArenaPlan, teacher_of
from pytest_tfgrpo.arena.plan_file import SCHEMA, read_plan
from pytest_tfgrpo.arena.protocol import RolloutsSpent, TeacherCallsSpent, Trained
from pytest_tfgrpo.arena.recorded import require_recorded
from pytest_tfgrpo.arena.result import ArenaResult, Side
from pytest_tfgrpo.arena.ring import open_ring, questions
from pytest_tfgrpo.arena.trained_side import (
    SideCost,
    TrainedSide,
    files_of,
    keep_side,
    read_side,
    spending_of,
)
from pytest_tfgrpo.core.errors import (
    BudgetError,
    JournalError,
    OutageError,
    RecordingError,
    ResumeError,
    RewarderError,
    StoreError,
)
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import ARENA_PLAN
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.core.settings.gate import GATE_MARGIN
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.preparation.prepare import Prepared, prepare
from pytest_tfgrpo.learning.placebo import PLACEBO
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.runs.earlier_runs import earlier_evaluations, eval_stamp
from pytest_tfgrpo.suite.families import families_of

NO_PLACEBO: Final = "placebo not possible: no prompt can carry another lesson in place of its own"

ENDING = (BudgetError, JournalError, OutageError, RecordingError, RewarderError, StoreError)
"""What ends an arena; any other error is one of the optimizer."""


class Arena:
    """Carries out one plan; whatever has ended before is taken from its files."""

    def __init__(self, plan: ArenaPlan) -> None:
        """Check what the runs need, and find what has ended; raises TfgrpoError. No call is made."""
        self.plan = plan
        self.gauge = Gauge()
        self._budget = Budget(plan.settings.values)
        self._checked: Prepared = prepare(sweep_request(plan, len(plan.contestants)))
        for name, contestant in plan.contestants.items():
            if contestant is not None and contestant.needs_teacher:
                prepare(questions(plan, name))
        self.free = self._checked.job.actor.bound(1).get("usd") == 0.0
        self.sides: dict[str, TrainedSide] = {}
        """Those that are ready, by name."""
        self.started_at = utc_now()
        self.runs: list[Run] = []
        """Runs of this process that have ended."""
        self.abandoned: list[Run] = []
        """Earlier sweeps, of fewer sides."""

    @property
    def identity(self) -> dict[str, Json]:
        """Return what an arena must share with the one that it goes on with."""
        plan, job = self.plan, self._checked.job
        return {
            "optimizers": {
                name: None if one is None else dict(one.identity) for name, one in plan.contestants.items()
            },
            "by_hook": {name: dict(one.identity) for name, one in plan.optimizers.items()},
            "budget_rollouts": plan.budget_rollouts,
            "budget_teacher_calls": plan.budget_teacher_calls,
            "teacher": teacher_of(plan.settings),
            **job.stamps,
        }

    def begin(self) -> None:
        """Write the plan, or read what is on file of it; raises ResumeError where something differs."""
        path = self.plan.folder / ARENA_PLAN
        own = to_wire(self.identity)
        if not path.is_file():
            begun = {"started_at": self.started_at, "arguments": to_wire(self.plan.arguments)}
            write_json(path, {"schema": SCHEMA, **begun, "identity": own})
            return
        known = read_plan(self.plan.folder)
        self.started_at = known["started_at"]
        before = known["identity"]
        if differing := [key for key in own if before.get(key) != own[key]]:
            raise ResumeError(
                f"arena {self.plan.arena_id} cannot be resumed: {', '.join(differing)} changed since; "
                "restore them, or leave --resume out"
            )
        for name, contestant in self.plan.contestants.items():
            side = None if contestant is None else read_side(self.plan.folder, name)
            if side is not None and not side.failed:  # what failed is tried again, from what is on file
                self._take(name, side)

    def _take(self, name: str, side: TrainedSide) -> None:
        """Take what is on file of a side, which the budget has paid for."""
        self.sides[name] = side
        self._budget.spend_all(usd=side.spent.known_usd, tokens=side.spent.tokens, unknown=0)

    async def train(self, name: str) -> TrainedSide:
        """Return what a side trains; one whose optimizer breaks does not compete.

        Raises BudgetError, OutageError and other TfgrpoErrors that end the arena.
        """
        plan, contestant = self.plan, self.plan.contestants[name]
        if name in self.sides:
            return self.sides[name]
        if contestant is None:
            side = self._placebo()
        else:
            self.gauge, began, trained, failed, bug = Gauge(), time.monotonic(), Trained(), "", ""
            async with open_ring(plan, name, self.gauge, self._budget) as ring:
                try:
                    trained = await contestant.train(ring)
                except (RolloutsSpent, TeacherCallsSpent) as error:
                    failed = str(error)
                except ENDING:
                    raise
                except Exception as error:  # noqa: BLE001 - an optimizer that breaks is a line of the table
                    failed, bug = failure_of(error, by_hook=name in plan.optimizers)
                runs, limited = ring.runs, ring.teacher_limited or trained.teacher_limited
            self.runs += runs
            require_recorded(runs)
            side = TrainedSide(
                trained=replace(trained, teacher_limited=limited),
                spent=spending_of(runs, free=self.free),
                wall_s=time.monotonic() - began,
                failed=failed,
                bug=bug,
            )
        keep_side(plan.folder, name, side)
        self.sides[name] = side
        return side

    @property
    def _taught(self) -> str | None:
        """The first side that learned lessons which can stand in wrong places: its placebo runs."""
        job, asked = self._checked.job, self.plan.sweep.scenarios
        for name, one in self.plan.contestants.items():
            if isinstance(one, Learned):
                trained = self.sides[name].trained
                if trained.library is not None and has_placebo(job, trained, asked):
                    return name
        return None

    def _placebo(self) -> TrainedSide:
        """Return the placebo of the first side that has one."""
        name = self._taught
        if name is None:
            return TrainedSide(trained=Trained(), spent=SideCost(), wall_s=0.0, failed=NO_PLACEBO)
        own = replace(self.sides[name].trained, note=f"placebo of {name}")
        return TrainedSide(trained=own, spent=SideCost(), wall_s=0.0)

    @property
    def order(self) -> list[str]:
        """Names in the order in which sides train: a placebo after what it is of."""
        return sorted(self.plan.contestants, key=lambda name: name == PLACEBO)

    async def finish(self) -> ArenaResult:
        """Run the final sweep, and return the result; all sides are trained."""
        plan = self.plan
        fit = {name: self.sides[name].trained for name in plan.contestants if not self.sides[name].failed}
        self.abandoned = abandoned_sweeps(plan, len(fit))
        before = spending_of(self.abandoned, free=self.free)
        self._budget.spend_all(usd=before.known_usd, tokens=before.tokens, unknown=0)
        self.gauge = Gauge()
        swept = await sweep_sides(
            plan, fit, self._taught if PLACEBO in fit else None, self.gauge, self._budget
        )
        self.runs.append(swept.run)
        require_recorded([swept.run])
        evaluated = plan.split("eval")
        grouped = (given_families if len(evaluated) < MIN_INTERVAL else families_of)(evaluated)
        last = spending_of([swept.run], free=self.free)
        stamp = eval_stamp(plan.scenarios)
        costs = [spent.usd for spent in (*(side.spent for side in self.sides.values()), before, last)]
        known = [cost for cost in costs if cost is not None]
        return ArenaResult(
            arena_id=plan.arena_id,
            task_id=plan.task_id,
            sides=tuple(self._side(name, swept) for name in plan.contestants),
            families={scenario.id: grouped.get(scenario.id, scenario.id) for scenario in evaluated},
            budget_rollouts=plan.budget_rollouts,
            budget_teacher_calls=plan.budget_teacher_calls,
            margin=GATE_MARGIN.of(plan.settings),
            seed=SEED.of(plan.settings),
            actor=self._checked.job.actor.name,
            teacher=teacher_of(plan.settings),
            suite_hash=stamp,
            started_at=self.started_at,
            usd=sum(known) if len(known) == len(costs) else None,
            sweep_rollouts=last.rollouts,
            earlier=earlier_evaluations(plan.out, plan.task_id, plan.arena_id, stamp)["earlier"],
        )

    def _side(self, name: str, swept: SweptSides) -> Side:
        side = self.sides[name]
        return Side(
            name=name,
            scores=swept.scores.get(name, {}),
            same_as=swept.same_as.get(name, ""),
            variant=swept.variants.get(name, ""),
            rollouts=side.spent.rollouts,
            teacher_calls=side.spent.teacher_calls,
            teacher_limited=side.trained.teacher_limited,
            usd=side.spent.usd,
            tokens_added=swept.tokens_added.get(name),
            wall_s=side.wall_s,
            note=side.failed or side.trained.note,
            bug=side.bug,
            files=files_of(self.plan.folder, name),
        )


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Keep other processes from the folder of an arena; raises ResumeError where one is at it."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResumeError(
                f"arena {folder.name} cannot be resumed: another process is running it; wait until it ends"
            ) from None
        yield
    finally:
        os.close(opened)
