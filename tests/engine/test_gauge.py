"""The gauge says at any moment what the engine does."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout
from support.jobs import LessonPerGroup, ScriptedActor, make_job, three_or_not

from pytest_tfgrpo.core.errors import AgentFailure
from pytest_tfgrpo.core.records import Frame, Phase, Rollout, Trajectory
from pytest_tfgrpo.engine import gauge as gauges
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.gauge import AttemptsReading, Gauge, Reading
from pytest_tfgrpo.learning.optimizer.none import NoOptimizer
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents
from pytest_tfgrpo.runs.journal.settled_groups import SettledCost


def readings(job: Job, gauge: Gauge) -> list[Reading]:
    """Return a reading after each rollout of a run."""
    seen: list[Reading] = []

    def observe(record: object) -> None:
        if isinstance(record, Rollout):
            seen.append(gauge.read())

    run = asyncio.run(Engine(job, folder=None, observe=observe, gauge=gauge).run())
    assert run.status == "complete", run.reason
    return seen


def test_each_sweep_is_counted_from_its_first_rollout_to_its_last(tmp_path: Path) -> None:
    seen = readings(make_job(ScriptedActor(three_or_not), tmp_path, concurrency=2), Gauge())
    steps: dict[int, list[Reading]] = {}
    for reading in seen:
        steps.setdefault(reading.step, []).append(reading)
    assert list(steps) == [1, 2, 3]
    for found in steps.values():
        assert {reading.stage for reading in found} == {"sweep"}
        assert [reading.sweep.done for reading in found] == list(range(1, len(found) + 1))
        assert {reading.sweep.planned for reading in found} == {len(found)}
        assert all(len(reading.attempts.ages_s) <= 2 for reading in found)
    assert seen[-1].attempts.ages_s == ()
    assert [reading.phase.label for reading in seen if reading.phase][-1] == "epoch3-eval"


def test_an_answer_that_serves_both_sides_of_a_pair_counts_for_each(tmp_path: Path) -> None:
    """Which scenarios have one prompt shows on the way, and does not change how many rollouts there are."""
    job = make_job(ScriptedActor(three_or_not), tmp_path, concurrency=2, job_optimizer=NoOptimizer())
    final = [reading for reading in readings(job, Gauge()) if reading.step == 3]
    assert [reading.sweep.done for reading in final] == list(range(2, 2 * len(final) + 1, 2))
    assert {reading.sweep.planned for reading in final} == {2 * len(final)}
    assert final[0].sweep.free > 0
    assert final[-1].sweep.free == 0


def test_the_mean_of_a_pair_is_that_of_its_final_side(tmp_path: Path) -> None:
    def answer(call: ActorCall) -> str:
        taught = "use count" in call.prompt.system
        return "3" if taught else "4" if call.task.id.startswith("eval") else three_or_not(call)

    gauge = Gauge()
    seen = readings(make_job(ScriptedActor(answer), tmp_path, concurrency=2), gauge)
    assert gauge.read().sweep.mean == 1.0
    assert {reading.sweep.mean for reading in seen if reading.step == 3} <= {None, 1.0}


def test_failures_cost_and_means_are_of_what_ended(tmp_path: Path) -> None:
    def answer(call: ActorCall) -> Trajectory:
        if call.seed % 5 == 0:
            raise AgentFailure("it fell over")
        frame = Frame(kind="tool", name="count", output="3", tokens=1, cost_usd=0.25, latency_ms=1.0)
        return Trajectory(answer="3", frames=(frame,))

    gauge = Gauge()
    readings(make_job(ScriptedActor(answer), tmp_path, epochs=2), gauge)
    end = gauge.read()
    assert end.sweep.mean == pytest.approx((end.sweep.done - end.sweep.failed) / end.sweep.done)
    assert end.sweep.errors == 0
    assert end.spent_usd > 0
    assert end.spent_usd % 0.25 == 0


def test_the_latency_of_attempts_is_known_once_one_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(gauges, "monotonic", lambda: now[0])
    gauge, early = Gauge(), list[Reading]()

    def answer(_: ActorCall) -> str:
        early.append(gauge.read())
        now[0] += 30
        return "3"

    seen = readings(make_job(ScriptedActor(answer), tmp_path, concurrency=1), gauge)
    assert early[0].attempts.mean_s is None
    assert early[0].attempts.ages_s == (0.0,)
    assert (seen[-1].attempts.mean_s, seen[-1].attempts.longest_s) == (30, 30)
    assert seen[-1].at_s == 30 * len(early)


def test_learning_is_a_stage_of_its_own_whose_time_is_known_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = [0.0], list[Reading]()
    monkeypatch.setattr(gauges, "monotonic", lambda: now[0])
    gauge = Gauge()

    class Slow(LessonPerGroup):
        async def propose(self, context: LearningContext) -> Proposal:
            now[0] += 40
            told.append(gauge.read())
            return await super().propose(context)

    job = make_job(ScriptedActor(three_or_not), tmp_path, job_optimizer=Slow())
    seen = readings(job, gauge)
    assert [(reading.stage, reading.since_s) for reading in told] == [("learning", 40.0)] * 2
    assert all(reading.groups > 0 for reading in told)
    assert [told[0].after_s, seen[-1].after_s] == [None, 40.0]


def shown(gauge: Gauge) -> dict[str, object]:
    """Return what a reading says but for times."""
    reading = gauge.read()
    names = ("stage", "step", "groups", "answered")
    own = {name: getattr(reading, name) for name in names}
    return own | asdict(reading.sweep) | {"usd": reading.spent_usd}


def test_each_figure_from_the_start_of_a_resumed_run_to_its_learning_step() -> None:
    gauge = Gauge()
    nothing = dict.fromkeys(("step", "planned", "done", "free", "failed", "errors", "groups", "answered"), 0)
    assert shown(gauge) == nothing | {"stage": "starting", "mean": None, "usd": 0.0}
    log = JournalContents()
    log.rollouts["a"] = make_rollout(0, cost_usd=1.0)
    log.abandoned += [make_rollout(1, cost_usd=None), make_rollout(2, cost_usd=32.0)]
    log.settled_cost = SettledCost(usd=2.0)
    log.calls.update(b=SimpleNamespace(cost_usd=4.0), c=SimpleNamespace(cost_usd=None))  # type: ignore[arg-type]
    calls: Any = SimpleNamespace(answered=5, in_flight={"judge": 1}, spent_usd=8.0)
    budget: Any = SimpleNamespace(limits={"usd": (7.0, 9.0)})
    gauge.begin(budget, calls, log, [])
    gauge.pay(make_rollout(2, cost_usd=16.0))
    assert shown(gauge)["usd"] == 1 + 2 + 4 + 8 + 16 + 32
    assert (gauge.read().asked, gauge.read().limits) == ({"judge": 1}, {"usd": (7.0, 9.0)})
    gauge.enter(2)
    control, final = (
        Phase(epoch=epoch, mode=mode, temperature=0.3, rollouts=2, scenarios=("a", "b", "c", "d"))  # type: ignore[arg-type]
        for epoch, mode in ((0, "baseline"), (2, "eval"))
    )
    shared = {0: {"a": 2, "b": 2}}
    settled: list[str] = []
    done = [make_group([1.0, 0.0], epoch=2, scenario_id="a", shared=True)]
    gauge.sweep([control, final], shared=shared, settled=settled, done=done)
    swept = nothing | {"stage": "sweep", "step": 2, "mean": None, "usd": 63.0, "answered": 5}
    assert shown(gauge) == swept | {"planned": 16, "done": 4, "free": 2}
    gauge.resume(3)
    gauge.finish(make_rollout(epoch=2, scenario_id="b", status="failed"))  # serves both sides
    gauge.finish(make_rollout(scenario_id="c", status="error"))
    gauge.score(make_group([1.0, None, 0.5], epoch=2))
    gauge.score(make_group([0.0], epoch=0))  # of the control
    swept |= {"done": 4 + 3 + 2 + 1, "free": 1, "failed": 1, "errors": 1, "mean": 0.75}
    assert shown(gauge) == swept | {"planned": 16}
    settled.append("d")
    assert shown(gauge) == swept | {"planned": 12}
    gauge.sweep([final], shared={}, settled=(), done=())
    gauge.finish(make_rollout(scenario_id="a"))
    alone = {"planned": 8, "done": 1, "free": 0, "failed": 0, "errors": 0, "mean": None}
    assert shown(gauge) == swept | alone
    gauge.learn(3)
    calls.answered = 7
    assert shown(gauge) == swept | alone | {"stage": "learning", "groups": 3, "answered": 2}
    gauge.learn(1)
    calls.answered = 8
    assert shown(gauge) == swept | alone | {"stage": "learning", "groups": 1, "answered": 1}


def test_attempts_in_flight_have_an_age_and_the_others_a_mean_and_a_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(gauges, "monotonic", lambda: now)
    gauge = Gauge()
    gauge.attempts.begin("a")
    now = 101.0
    gauge.attempts.begin("b")
    assert gauge.read().attempts == AttemptsReading(ages_s=(1.0, 0.0), mean_s=None, longest_s=0.0)
    gauge.attempts.end("a")
    now = 104.0
    gauge.attempts.end("b")
    assert gauge.read().attempts == AttemptsReading(ages_s=(), mean_s=2.0, longest_s=3.0)
    gauge.enter(1)
    assert gauge.read().after_s is None, "nothing was learned yet"
    gauge.learn(0)
    now = 109.0
    gauge.enter(2)
    assert (gauge.read().after_s, gauge.read().since_s) == (5.0, 0.0)


def test_an_answer_on_file_that_serves_both_other_sides_is_one_of_each() -> None:
    final = Phase(epoch=3, mode="eval", temperature=0.3, rollouts=2, scenarios=("a", "b"))
    control, placebo = (
        Phase(epoch=epoch, mode=mode, temperature=0.3, rollouts=rollouts, scenarios=("a", "b"))  # type: ignore[arg-type]
        for epoch, mode, rollouts in ((0, "baseline", 2), (-2, "placebo", 4))
    )
    gauge = Gauge()
    done = [make_group([1.0, 0.0], epoch=3, scenario_id="a", shared=True, as_placebo=True)]
    gauge.sweep([control, placebo, final], shared={0: {"a": 3}, -2: {"a": 3}}, settled=("b",), done=done)
    found = gauge.read().sweep
    assert (found.planned, found.done, found.free) == (16 - 8, 6, 2 + 4 - 4)


def test_the_time_of_an_epoch_is_that_from_its_sweep_to_the_end_of_its_dev_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(gauges, "monotonic", lambda: now)
    gauge = Gauge()
    train, dev = (
        Phase(epoch=1, mode=mode, temperature=0.3, rollouts=1, scenarios=("a",))  # type: ignore[arg-type]
        for mode in ("train", "dev")
    )
    for place, (phases, took) in enumerate([([train, dev], 7.0), ([train], 40.0), ([train, dev], 3.0)]):
        gauge.enter(place)
        for phase in phases:
            gauge.sweep([phase], shared={}, settled=(), done=())
            now += took / len(phases)
    gauge.enter(4)
    assert gauge.read().after_s == 5.0, "of the two that tried what they learned"


def test_batches_of_every_model_and_endpoints_that_were_called_are_read() -> None:
    def slots(name: str, calls: int) -> Any:
        seen = SimpleNamespace(calls=calls)
        return SimpleNamespace(concurrency=SimpleNamespace(seen=seen), state=lambda: name)

    models: Any = [
        SimpleNamespace(adaptive=(slots("idle", 0), slots("first", 2))),
        SimpleNamespace(adaptive=(slots("second", 1),), batches=SimpleNamespace(progress=["b1", "b2"])),
        SimpleNamespace(batches=None),
        SimpleNamespace(batches=SimpleNamespace(progress=["b3"])),
    ]
    gauge = Gauge()
    budget: Any = SimpleNamespace(limits={})
    calls: Any = SimpleNamespace(answered=0, in_flight={}, spent_usd=0.0)
    gauge.begin(budget, calls, JournalContents(), iter(models))
    found = gauge.read()
    assert (found.allowed, found.batches) == (("first", "second"), ("b1", "b2", "b3"))
