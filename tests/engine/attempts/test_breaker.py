"""A provider that goes away: the run pauses, makes again what was lost, or ends so that it can be resumed."""

import asyncio
import math
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_frame
from support.engine.breaker import ENDLESS, carry_out, comparable, resumed
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.attempts.breaker import Attempted, Breaker
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.engine.phases.outage import LostRollouts
from pytest_tfgrpo.llm.limits import patience
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.metrics.costs import of_run
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.runs.journal.journal_contents import load_run

PLANNED = 3 * 4 + 2 * 4 * 4 + 3 * 4
"""Rollouts of the job: two sweeps of three scenarios, two epochs of four, four rollouts each."""


@pytest.fixture(autouse=True)
def gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 0.1)


class Provider:
    """Answers until call number `dies`, and again `dead_s` later; each failure has a code."""

    def __init__(self, dies: int = ENDLESS, dead_s: float = math.inf, code: str = "connection") -> None:
        self.calls = 0
        self.died_at: float | None = None
        self.dies, self.dead_s, self.code = dies, dead_s, code

    async def __call__(self, call: ActorCall) -> str:
        n, now = self.calls, time.monotonic()
        self.calls += 1
        await asyncio.sleep(0)
        if n >= self.dies:
            self.died_at = self.died_at or now
            if now < self.died_at + self.dead_s:
                raise ProviderError("connection refused", self.code)
        return three_or_not(call)


@pytest.mark.parametrize("dies", range(1, PLANNED, 11))
def test_what_a_short_absence_loses_is_made_again_before_its_phase_ends(
    tmp_path: Path, dies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 20.0)
    whole, _, _ = carry_out(Provider(), tmp_path / "whole")
    run, seen, actor = carry_out(Provider(dies, 0.05), tmp_path / "short")
    assert comparable(run) == comparable(whole)
    assert run.status == "complete"
    assert any(isinstance(one, Notice) for one in seen)
    assert len(actor.calls) <= PLANNED + 6 + 8 + 12
    assert comparable(load_run(tmp_path / "short" / "runs" / "run1")) == comparable(whole)


@pytest.mark.parametrize("dies", range(1, PLANNED, 11))
def test_a_run_whose_provider_stays_away_ends_and_is_the_same_when_resumed(tmp_path: Path, dies: int) -> None:
    whole, _, _ = carry_out(Provider(), tmp_path / "whole")
    run, _, actor = carry_out(Provider(dies), tmp_path / "long")
    assert run.status == "incomplete"
    assert "connection: connection refused" in run.reason
    assert len(actor.calls) <= dies + 6 + 8 + 12
    again, still = resumed(Provider(0), tmp_path / "long")
    assert (again.status, len(again.phases)) == ("incomplete", len(run.phases))
    assert len(still.calls) <= 8 + 6 + 2
    last, _ = resumed(Provider(), tmp_path / "long")
    assert comparable(last) == comparable(whole)
    assert comparable(load_run(tmp_path / "long" / "runs" / "run1")) == comparable(whole)


def test_a_scenario_that_always_fails_ends_nothing_and_is_asked_twice(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def choosy(call: ActorCall) -> str:
        asked[call.task.id] += 1
        if call.task.id in ("eval-1", "long-2", "train-2"):
            raise ProviderError("503: this prompt is too much for me", "server")
        return three_or_not(call)

    run, seen, actor = carry_out(choosy, tmp_path)
    assert run.status == "complete"
    assert not any(isinstance(one, Notice) and "headroom" not in one.text for one in seen)
    bad = {g.scenario_id for p in run.phases for g in p.groups for r in g.rollouts if r.status == "error"}
    assert bad == {"eval-1", "train-2"}
    assert asked["eval-1"] == asked["train-2"] == 2 * 4 * 2
    assert len(actor.calls) <= PLANNED + 4 * 4 + 2 * len(run.phases)


@pytest.mark.parametrize("code", ["rejected", "content_filter"])
def test_a_provider_that_refuses_every_prompt_is_there(tmp_path: Path, code: str) -> None:
    run, _, actor = carry_out(Provider(0, code=code), tmp_path)
    assert run.status == "complete"
    assert len(actor.calls) == PLANNED - 3 * 4  # nothing was learned: one answer serves both sweeps


def test_a_prompt_that_always_takes_too_long_is_asked_twice(tmp_path: Path) -> None:
    async def slow(call: ActorCall) -> str:
        await asyncio.sleep(0.004)
        if call.task.id == "eval-1":
            raise ProviderError("the model did not answer within 0.02 s", "timeout")
        return three_or_not(call)

    run, _, actor = carry_out(slow, tmp_path, scenarios=suite(train=0, sweep=9))
    assert run.status == "complete"
    assert Counter(call.task.id for call in actor.calls)["eval-1"] == 2 * 4


def test_errors_that_come_faster_than_the_first_answers_end_nothing(tmp_path: Path) -> None:
    async def hasty(call: ActorCall) -> str:
        if call.seed % 2:
            raise ProviderError("rate limit reached", "rate_limit")
        await asyncio.sleep(0.02)
        return "3"

    actor = ScriptedActor(hasty)
    run, _ = run_job(make_job(actor, tmp_path, concurrency=64, scenarios=suite(train=8, sweep=8)))
    assert run.status == "complete"


def test_a_provider_that_never_answered_ends_the_run_without_waiting(tmp_path: Path) -> None:
    run, seen, actor = carry_out(Provider(0), tmp_path)
    assert run.status == "incomplete"
    assert "the actor's provider does not answer" in run.reason
    assert len(actor.calls) <= 8 + 6
    assert not any(isinstance(one, Notice) for one in seen)
    (phase,) = run.phases
    assert {r.status for g in phase.groups for r in g.rollouts} <= {"error"}


def test_what_lost_attempts_cost_is_in_the_bill_and_counted_by_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 20.0)
    spent, budget = 0, Budget({"budget_usd": 100.0})

    async def dear(call: ActorCall) -> Trajectory:
        nonlocal spent
        await asyncio.sleep(0)
        spent += 1
        frames = (make_frame("model", kind="model", tokens=10, cost_usd=0.5),)
        if 10 <= spent < 22:
            raise ProviderError("the connection broke", "connection", frames=frames)
        return Trajectory(answer=three_or_not(call), frames=frames)

    run, seen, actor = carry_out(dear, tmp_path, job_budget=budget)
    assert run.status == "complete"
    assert any(isinstance(one, Notice) and "paused" in one.text for one in seen), "it was probed too"
    assert budget.limits["usd"] == (pytest.approx(0.5 * spent), 100.0)
    assert of_run(run)["usd"] == pytest.approx(0.5 * spent)
    assert of_run(load_run(tmp_path / "runs" / "run1"))["usd"] == pytest.approx(0.5 * spent)
    assert len(actor.calls) == spent


def test_a_recorded_error_is_repeated_as_it_is(tmp_path: Path) -> None:
    run, _, actor = carry_out(Provider(4), tmp_path, job_replayed=True)
    assert run.status == "complete"
    assert len(actor.calls) == PLANNED


def attempted(id_: str, began: float, code: str = "", pair: tuple[str, ...] = ()) -> Any:
    """Return an attempt; with a `code` its provider failed."""
    failure = SimpleNamespace(code=code, message="connection refused") if code else None
    outcome = SimpleNamespace(status="error" if code else "ok", failure=failure)
    question = SimpleNamespace(scenario=SimpleNamespace(id=id_))
    slot = SimpleNamespace(rollout_id=id_, pair=pair, call=SimpleNamespace(workspace=None), question=question)
    return Attempted(slot, SimpleNamespace(rollout_id=id_), outcome, began)  # type: ignore[arg-type]


def known_after(*rows: tuple[str, bool]) -> str:
    breaker = Breaker(lambda _: None, watching=True)
    for id_, answered in rows:
        breaker.know(attempted(id_, 0.0).slot, answered)
    assert breaker.known is not None
    return breaker.known.rollout_id


def test_what_is_made_again_to_see_whether_a_provider_is_there_is_the_last_that_answered() -> None:
    assert known_after(("a", False)) == "a"
    assert known_after(("a", False), ("b", False)) == "a"
    assert known_after(("a", False), ("b", True), ("c", False)) == "b"
    assert known_after(("a", True), ("b", True)) == "b"


@pytest.mark.parametrize(
    ("code", "row"), [("", 0), ("rejected", 0), ("content_filter", 0), ("connection", 3), ("other", 3)]
)
def test_a_provider_that_refuses_answers_too(code: str, row: int) -> None:
    async def play() -> int:
        breaker = Breaker(lambda _: None, watching=True)
        breaker.in_a_row = 3
        breaker.worked(attempted("a", asyncio.get_running_loop().time(), code))
        return breaker.in_a_row

    assert asyncio.run(play()) == row


@pytest.mark.parametrize(("waits", "ends"), [(2.0, False), (0, False), (None, True)])
def test_a_provider_is_back_from_the_end_of_a_pause_on(
    monkeypatch: pytest.MonkeyPatch, waits: float | None, ends: bool
) -> None:
    async def outwait(*_: object) -> float | None:
        return waits

    async def play() -> tuple[bool, bool]:
        breaker = Breaker(lambda _: None, watching=True)
        breaker.worked(attempted("first", 0.0))
        began = asyncio.get_running_loop().time()
        await breaker.pause(lambda _: asyncio.sleep(0, True))
        return breaker.back_at >= began, bool(breaker.reason)

    monkeypatch.setattr(patience, "outwait", outwait)
    assert asyncio.run(play()) == (bool(waits), ends)


def test_only_an_answer_to_what_was_asked_after_the_last_error_ends_a_row() -> None:
    async def play() -> list[int]:
        breaker = Breaker(lambda _: None, watching=True)
        early = asyncio.get_running_loop().time()
        await asyncio.sleep(0.002)
        counts = []
        for n in range(3):
            assert breaker.is_lost(attempted(f"lost{n}", early, "connection"))
        breaker.worked(attempted("asked before the outage", early))
        counts.append(breaker.in_a_row)
        breaker.worked(attempted("asked in it", asyncio.get_running_loop().time()))
        counts.append(breaker.in_a_row)
        return counts

    assert asyncio.run(play()) == [3, 0]


def test_after_a_row_of_errors_of_a_provider_that_answers_twice_as_many_make_the_next() -> None:
    async def play() -> list[int]:
        breaker, rows = Breaker(lambda _: None, watching=True), []
        breaker.worked(attempted("first", 0.0))
        for _ in range(3):
            n = 0
            while not breaker.due:
                n += 1
                breaker.is_lost(attempted(f"lost{n}", 0.0, "connection"))
            await breaker.pause(there)
            rows.append(n)
        return rows

    async def there(slot: Any) -> bool:
        return True

    assert asyncio.run(play()) == [8, 16, 32]


def test_of_a_long_error_a_pause_and_the_end_say_one_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 0.01)
    said: list[str] = []

    async def play() -> str:
        breaker = Breaker(said.append, watching=True)
        breaker.worked(attempted("first", 0.0))
        lost = attempted("lost", 0.0, "connection")
        lost.outcome.failure.message = "line\n" * 1000  # type: ignore[union-attr, misc]
        breaker.is_lost(lost)
        await breaker.pause(away)
        return breaker.reason

    async def away(slot: Any) -> bool:
        return False

    reason = asyncio.run(play())
    assert [("line line" in text, len(text) < 600, "\n" in text) for text in (*said, reason)] == [
        (True, True, False)
    ] * 2


@pytest.mark.parametrize(
    ("began", "tries"), [((1.0, 2.0), 1), ((1.0, 6.0), 2), ((6.0, 1.0), 2), ((5.0, 6.0), 1)]
)
def test_no_pair_is_taken_that_a_pause_tore_apart(began: tuple[float, float], tries: int) -> None:
    """Its provider was back at 5: what was asked before and after that is no pair."""
    starts = {"a": iter((began[0], 7.0)), "b": iter((began[1], 8.0))}
    taken: list[str] = []
    forgotten: list[str] = []
    made: Counter[str] = Counter()

    async def once(slot: Any) -> Any:
        made[slot.rollout_id] += 1
        return attempted(slot.rollout_id, next(starts[slot.rollout_id]), pair=slot.pair)

    async def nothing(slot: Any) -> None:
        return None

    async def play() -> None:
        breaker = Breaker(lambda _: None, watching=True)
        breaker.back_at = 5.0
        lost = LostRollouts(
            breaker,
            SimpleNamespace(),  # type: ignore[arg-type]
            make=once,
            undo=nothing,
            forget=lambda rollout: forgotten.append(rollout.rollout_id),
        )
        slots = [attempted("a", 0.0, pair=("b",)).slot, attempted("b", 0.0, pair=("a",)).slot]
        for slot in slots:
            taken.extend(one.slot.rollout_id for one in (await lost.make(slot)).taken)
        while lost.any:
            for slot in (await lost.sort_out()).again:
                taken.extend(one.slot.rollout_id for one in (await lost.make(slot)).taken)

    asyncio.run(play())
    assert sorted(taken) == ["a", "b"]
    assert made == {"a": tries, "b": tries}
    assert sorted(forgotten) == ["a", "b"] * (tries - 1)


def test_a_second_try_that_fails_as_all_before_is_a_result(tmp_path: Path) -> None:
    def crashing(call: ActorCall) -> str:
        if len(actor.calls) == 1:
            raise ProviderError("connection refused", "connection")
        raise RuntimeError("no such tool")

    actor = ScriptedActor(crashing)
    job = make_job(actor, tmp_path, scenarios=suite(0, 1), epochs=1, concurrency=1)
    run, _ = run_job(job)
    assert (run.status, len(actor.calls)) == ("complete", 5)
    assert [len(group.rollouts) for phase in run.phases for group in phase.groups] == [4]
