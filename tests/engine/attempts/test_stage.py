"""The sockets of a rollout, with toys in them: a stage around attempts, and a source of answers."""

import asyncio
import gc
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.builders import make_rollout
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.errors import BUDGET, JournalError, ProviderError
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Frame, Rollout, Run
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, Slot, rollout_of
from pytest_tfgrpo.engine.attempts.stage import KnownAnswer, MakeAttempt, Stage, Stages
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.phases import cohort
from pytest_tfgrpo.engine.stages import registry
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log
from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces

ONE_SWEEP: dict[str, Any] = {"epochs": 0, "concurrency": 1, "baseline_sweep": "off"}


BROKE_WITH = "broke: RuntimeError: no such world, password=[redacted:named]"


class Toy(Stage):
    """Notes what it is asked, and raises where it should."""

    def __init__(self, raises: str = "", error: type[BaseException] = RuntimeError) -> None:
        self.seen: list[str] = []
        self.raises, self.error = raises, error

    def note(self, what: str) -> None:
        self.seen.append(what)
        if what.split(" ")[0] == self.raises:
            raise self.error("no such world, password=hunter2hunter2")

    async def begin(self, workspaces: RunWorkspaces) -> None:
        self.note("begin")

    async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
        self.note(f"before {slot.rollout_id}")
        made = await make(slot)
        self.note(f"after {slot.rollout_id}")
        return made

    async def checked(self, slot: Slot, rollout: Rollout) -> Rollout:
        self.note(f"checked {slot.rollout_id} {len(rollout.checks)}")
        return rollout

    async def undo(self, slot: Slot) -> None:
        self.note(f"undo {slot.rollout_id}")

    async def close(self) -> None:
        self.note("close")


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what puts stages into the row, outermost first."""

    def add(*stages: Stage) -> None:
        rows = tuple((lambda setup, one=one: one) for one in stages)
        monkeypatch.setattr(registry, "STAGES", registry.STAGES + rows)

    return add


def sweep(answer: Any, folder: Path, scenarios: int = 1, **changes: Any) -> tuple[Run, list[Rollout]]:
    actor = answer if isinstance(answer, ScriptedActor) else ScriptedActor(answer)
    job = make_job(actor, folder, scenarios=suite(0, scenarios), **ONE_SWEEP | changes)
    run, _ = run_job(job, folder / "run")
    return run, [r for phase in run.phases for group in phase.groups for r in group.rollouts]


def test_a_stage_surrounds_each_attempt_and_sees_its_checks_and_what_is_made_again(
    tmp_path: Path, plug: Any
) -> None:
    calls = 0

    def lost_once(call: ActorCall) -> str:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ProviderError("connection refused", "connection")
        return three_or_not(call)

    toy = Toy()
    plug(toy)
    run, _ = sweep(lost_once, tmp_path, group_size=2)
    assert run.status == "complete"
    first, last = (f"run1.e{run.phases[-1].phase.epoch}.eval-0.r{index}" for index in range(2))
    tries = [f"before {first}", f"after {first}", f"before {last}", f"after {last}"]
    probe = [f"{what} {first}.probe" for what in ("before", "after", "undo")]
    again = [*probe, f"undo {last}", f"before {last}", f"after {last}"]
    assert [one for one in toy.seen if "checked" not in one] == ["begin", *tries, *again, "close"]
    assert [one for one in toy.seen if "checked" in one] == [f"checked {first} 1", f"checked {last} 1"]


@pytest.mark.parametrize("raises", ["before", "after", "checked"])
def test_a_stage_that_raises_is_an_error_of_its_rollout_whose_cost_is_kept(
    tmp_path: Path, plug: Any, raises: str
) -> None:
    outer = Toy()
    plug(outer, Toy(raises))
    run, rollouts = sweep(three_or_not, tmp_path)
    assert run.status == "complete"
    assert {(r.status, r.failure.code if r.failure else "") for r in rollouts} == {("error", "stage")}
    assert {r.failure.message for r in rollouts if r.failure} == {f"Toy {BROKE_WITH}"}
    assert {r.cost_usd for r in rollouts} == {None if raises == "before" else 0.01}
    assert sum(one.startswith("after") for one in outer.seen) == len(rollouts) == 4
    assert load_run(tmp_path / "run").phases == run.phases


def test_what_follows_an_attempt_passes_the_innermost_stage_first() -> None:
    seen: list[str] = []

    class Named(Stage):
        def __init__(self, name: str) -> None:
            self.name = name

        async def checked(self, slot: Slot, rollout: Rollout) -> Rollout:
            seen.append(f"{self.name} checks {rollout.answer}")
            return replace(rollout, answer=f"{rollout.answer} {self.name}")

        async def undo(self, slot: Slot) -> None:
            seen.append(f"{self.name} undoes")

    stages, slot = Stages([Named("outer"), Named("inner")], seen.append), cast("Slot", None)
    left = asyncio.run(stages.checked(slot, make_rollout(answer="3")))
    asyncio.run(stages.undo(slot))
    assert left.answer == "3 inner outer"
    assert seen == ["inner checks 3", "outer checks 3 inner", "inner undoes", "outer undoes"]


@pytest.mark.parametrize("raises", ["begin", "close"])
def test_a_stage_that_raises_where_no_rollout_is_concerned_is_a_warning(
    tmp_path: Path, plug: Any, raises: str
) -> None:
    plug(Toy(raises))
    run, rollouts = sweep(three_or_not, tmp_path)
    assert (run.status, len(rollouts)) == ("complete", 4)
    assert run.warnings == (f"Toy {BROKE_WITH}",)


def test_a_journal_that_a_stage_cannot_write_ends_the_run(tmp_path: Path, plug: Any) -> None:
    plug(Toy("before", JournalError))
    with pytest.raises(JournalError, match="no such world"):
        sweep(three_or_not, tmp_path)


@pytest.mark.parametrize("error", [JournalError, asyncio.CancelledError])
def test_all_stages_are_closed_whatever_ends_one_of_them(
    tmp_path: Path, plug: Any, error: type[BaseException]
) -> None:
    outer = Toy()
    plug(outer, Toy("close", error))
    with pytest.raises(JournalError) if error is JournalError else nullcontext():
        sweep(three_or_not, tmp_path)
    assert outer.seen[-1] == "close"


@pytest.mark.parametrize("steps", range(7))
def test_a_check_that_ends_the_run_leaves_of_attempts_that_end_with_it_what_they_cost(
    tmp_path: Path, plug: Any, steps: int
) -> None:
    checking = asyncio.Event()

    class Breaks(Stage):
        async def checked(self, slot: Slot, rollout: Rollout) -> Rollout:
            if slot.index:
                return rollout
            checking.set()
            for _ in range(steps):
                await asyncio.sleep(0)
            raise JournalError("no space left")

    async def answer(call: ActorCall) -> str:
        if len(actor.calls) > 1:
            await checking.wait()
        return "3"

    plug(Breaks())
    actor = ScriptedActor(answer)
    with pytest.raises(JournalError, match="no space left"):
        sweep(actor, tmp_path, group_size=2, concurrency=2)
    gc.collect()  # a coroutine that was never awaited is a warning
    log = read_log(tmp_path / "run")
    assert sorted(r.index for r in (*log.abandoned, *log.rollouts.values())) == [0, 1]


def test_an_attempt_whose_stage_an_interrupt_cuts_short_leaves_what_it_cost(
    tmp_path: Path, plug: Any
) -> None:
    class Slow(Stage):
        async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
            made = await make(slot)
            ended.set()
            await asyncio.sleep(60)
            return made

    async def cut() -> Run:
        job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=suite(0, 1), **ONE_SWEEP)
        task = asyncio.create_task(Engine(job, folder=tmp_path / "run", observe=lambda _: None).run())
        await ended.wait()
        task.cancel()
        return await task

    ended = asyncio.Event()
    plug(Slow())
    run = asyncio.run(cut())
    loose = run.phases[-1].loose
    assert (run.status, [(r.status, r.cost_usd) for r in loose]) == ("cancelled", [("cancelled", 0.01)])
    assert load_run(tmp_path / "run").phases == run.phases


def test_what_the_budget_does_not_allow_reaches_no_stage(tmp_path: Path, plug: Any) -> None:
    toy, budget = Toy(), Budget({"budget_usd": 0.025})
    plug(toy)
    actor = ScriptedActor(three_or_not, bound={"usd": 0.01})
    run, _ = sweep(actor, tmp_path, job_budget=budget)
    assert run.status == "incomplete"
    assert sum(one.startswith("before") for one in toy.seen) == len(actor.calls) == 2


def test_an_attempt_that_a_budget_ends_is_undone(tmp_path: Path, plug: Any) -> None:
    def answer(call: ActorCall) -> str:
        paid = Frame(kind="model", name="m", cost_usd=0.5)
        raise ProviderError("budget_usd is used up", BUDGET, frames=(paid,))

    toy = Toy()
    plug(toy)
    run, _ = sweep(answer, tmp_path, group_size=1)
    made = f"run1.e{run.phases[-1].phase.epoch}.eval-0.r0"
    assert toy.seen == ["begin", f"before {made}", f"after {made}", f"undo {made}", "close"]
    assert [(r.rollout_id, r.cost_usd) for r in run.phases[-1].loose] == [(made, 0.5)]


def test_a_stage_that_answers_itself_asks_nobody(tmp_path: Path, plug: Any) -> None:
    class Knows(Stage):
        async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
            return AttemptResult(status="ok", answer="3", started_at=utc_now(), latency_ms=0.0)

    plug(Knows())
    actor = ScriptedActor(three_or_not)
    _, rollouts = sweep(actor, tmp_path)
    assert ([r.checks[0].credit for r in rollouts], actor.calls) == ([1.0] * 4, [])


def test_what_a_source_has_is_checked_no_more_asked_of_nobody_and_on_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Every:
        def __init__(self, *_: object) -> None: ...

        def find(self, slot: Slot) -> KnownAnswer | None:
            if slot.index % 2:
                return None
            known = AttemptResult(status="ok", answer="3", started_at=utc_now(), latency_ms=0.0)
            return KnownAnswer(rollout_of(slot, known, "run1"), slot.call.workspace, on_file=False)

    monkeypatch.setattr(cohort, "SOURCES", (*cohort.SOURCES, Every))
    actor = ScriptedActor(three_or_not)
    run, rollouts = sweep(actor, tmp_path)
    assert (run.status, len(rollouts), len(actor.calls)) == ("complete", 4, 2)
    assert load_run(tmp_path / "run").phases == run.phases


@pytest.mark.parametrize(
    ("makes", "breaks", "status", "code"),
    [(True, False, "ok", None), (True, True, "error", "stage"), (False, True, "error", "stage")],
)
def test_what_an_attempt_raises_is_no_fault_of_a_stage_unless_it_raises_another(
    makes: bool, breaks: bool, status: str, code: str | None
) -> None:
    inner = RuntimeError("inner")

    class Breaking(Stage):
        async def around(self, slot: Slot, make: MakeAttempt) -> AttemptResult | None:
            try:
                return await make(slot)
            finally:
                if breaks:
                    raise ValueError("outer")

    async def make(slot: Slot) -> AttemptResult | None:
        if not makes:
            raise inner
        return AttemptResult(status="ok", failure=None, started_at="now", latency_ms=7.0)

    slot: Any = None
    stages = Stages((Stage(), Breaking(), Stage()), warn=[].append)
    made = asyncio.run(stages.around(make)(slot))  # type: ignore[arg-type]
    assert made is not None
    assert (made.status, made.failure and made.failure.code) == (status, code)
    assert made.latency_ms == (7.0 if makes else 0.0)
    assert made.failure is None or made.failure.message == "Breaking broke: ValueError: outer"
    makes, breaks = False, False
    with pytest.raises(RuntimeError) as raised:
        asyncio.run(stages.around(make)(slot))  # type: ignore[arg-type]
    assert raised.value is inner


def test_a_stage_that_only_looks_at_checks_leaves_attempts_as_they_are() -> None:
    async def make(slot: Any) -> Any:
        return f"made {slot}"

    slot: Any = "r"
    assert asyncio.run(Stage().around(slot, make)) == "made r"  # type: ignore[comparison-overlap]
    assert Stages((Stage(),), warn=[].append).around(make) is make
