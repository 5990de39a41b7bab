"""What every executor keeps to, wherever calls are made: order, limits, faults, budgets, results."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.builders import make_pack
from support.executors import alive, asked, job_of, rollouts, scenario
from support.jobs import run_job, suite

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Attachment, Check
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.engine.executors.protocol import Executor
from pytest_tfgrpo.engine.executors.registry import open_executor
from pytest_tfgrpo.llm.limits.queueing import take_ticket
from pytest_tfgrpo.runs.job import Job

T = TypeVar("T")


@pytest.fixture
def executor() -> str:
    """Return the setting of an executor with two places."""
    return "local"


def with_executor(job: Job, use: Callable[[Executor], Awaitable[T]]) -> T:
    """Return what `use` makes of the executor of a job, which is closed then."""

    async def main() -> T:
        executor = open_executor(job)
        try:
            return await use(executor)
        finally:
            await executor.aclose()

    return asyncio.run(main())


def comparable(run: Run) -> Any:
    """Return a run without its times, and without what chance decides of two rollouts at once."""
    text = json.dumps(to_wire(run), sort_keys=True)
    for key in ("latency_ms", "created_at", "finished_at", "started_at"):
        text = re.sub(rf'"{key}": ("[^"]*"|[0-9.e-]+)', f'"{key}": 0', text)
    return json.loads(text)


def test_work_starts_in_order_and_only_when_a_place_is_free(executor: str, tmp_path: Path) -> None:
    begun, most, now, taken = list[int](), 0, 0, list[int]()

    def items() -> Any:
        for n in range(10):
            taken.append(n)
            assert len(taken) - (len(begun) - now) <= 2
            yield n

    async def work(n: int) -> None:
        nonlocal most, now
        begun.append(n)
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001 * (n % 3))
        now -= 1

    with_executor(job_of("half", executor, tmp_path), lambda one: one.run(items(), work))
    assert (begun, most) == (list(range(10)), 2)


def test_the_first_exception_cancels_the_others_and_is_raised(executor: str, tmp_path: Path) -> None:
    ended = list[str]()

    async def work(n: int) -> None:
        try:
            if n:
                raise LookupError(n)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(LookupError, match="1"):
        with_executor(job_of("half", executor, tmp_path), lambda one: one.run(range(5), work))
    assert ended == ["cancelled"]


@pytest.mark.parametrize("agent", ["half", "in_coroutine"])
def test_equal_seeds_give_the_report_of_the_local_executor(agent: str, executor: str, tmp_path: Path) -> None:
    one, _ = run_job(job_of(agent, executor, tmp_path, group_size=4))
    other, _ = run_job(job_of(agent, "local", tmp_path, group_size=4))
    assert one.status == "complete"
    assert {r.answer for r in rollouts(one)} == {"3", "4"}
    values = [comparable(run) for run in (one, other)]
    for value in values:
        value.pop("settings")
    assert values[0] == values[1]


def test_faults_are_those_of_the_local_executor(executor: str, tmp_path: Path) -> None:
    names = ("raise", "exit", "garbage", "oversize", "refused", "cancel", "none")
    scenarios = [scenario(name, name) for name in names]

    def outcomes(executor: str) -> dict[str, Any]:
        run, _ = run_job(job_of("faulty", executor, tmp_path, scenarios=scenarios, baseline_sweep="off"))
        return {r.scenario_id: (r.status, r.failure and r.failure.code) for r in rollouts(run)}

    found = outcomes(executor)
    assert found == outcomes("local")
    assert found["raise"] == ("failed", "crash")
    assert found["oversize"] == ("failed", "oversize")
    assert found["refused"] == ("error", "rejected")
    assert found["none"] == ("ok", None)


def test_a_conversation_keeps_its_session_and_its_state(executor: str, tmp_path: Path) -> None:
    talks = [scenario(f"talk-{n}", "one", turns=("one", "two", "three")) for n in range(3)]
    run, _ = run_job(job_of("in_pieces", executor, tmp_path, scenarios=talks, baseline_sweep="off"))
    assert {r.answer for r in rollouts(run)} == {"3: three"}
    frames = [f.output for f in rollouts(run)[0].frames if f.kind == "user"]
    assert frames == ["one", "two", "three"]


def test_checks_see_what_an_agent_left_in_its_workspace(executor: str, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a,b")
    attached = Attachment(name="data.csv", path=data, sha256=stamp_bytes(data.read_bytes()))
    check = Check(kind="file", params={"path": "left.txt", "contains": "seed"})
    one = scenario("leave", "?", checks=(check,), attachments=(attached,))
    run, _ = run_job(job_of("writes", executor, tmp_path, scenarios=[one], baseline_sweep="off"))
    found = rollouts(run)
    assert {r.answer for r in found} == {"data.csv,left.txt"}
    assert {c.credit for r in found for c in r.checks} == {1.0}
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and any(path.iterdir())]


def test_a_time_limit_ends_the_attempt_and_nothing_else(executor: str, tmp_path: Path) -> None:
    async def use(one: Executor) -> list[AttemptResult]:
        actor = one.place(job.actor)
        late = await attempt(actor, asked("60", tmp_path, timeout_s=0.2))
        return [late, await attempt(actor, asked("0", tmp_path))]

    job = job_of("sleeps", executor, tmp_path)
    late, fine = with_executor(job, use)
    assert late.failure is not None
    assert (late.status, late.failure.code, late.failure.message) == (
        "failed",
        "timeout",
        "no answer within 0.2 s",
    )
    assert late.latency_ms >= 200
    assert fine.answer == "3"


def test_waiting_for_a_place_counts_for_no_time_limit(executor: str, tmp_path: Path) -> None:
    async def use(one: Executor) -> list[AttemptResult]:
        actor = one.place(job.actor)

        async def in_turn(n: int) -> AttemptResult:
            take_ticket(n)
            return await attempt(actor, asked("0.05", tmp_path, timeout_s=2.0))

        return await asyncio.gather(*map(in_turn, range(100)))  # the last ones wait for 2.4 s

    job = job_of("sleeps", executor, tmp_path)
    found = with_executor(job, use)
    assert [result.status for result in found] == ["ok"] * 100
    assert all(result.latency_ms >= 50 for result in found)


def test_a_cancelled_run_ends_its_agents(executor: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    job = job_of("stays", executor, tmp_path, scenarios=[scenario(f"s{n}", str(told)) for n in range(4)])

    async def main() -> Run:
        running = asyncio.create_task(Engine(job, folder=None, observe=[]).run())
        while len(list(told.iterdir())) < 2:
            await asyncio.sleep(0.01)
        running.cancel()
        return await running

    run = asyncio.run(main())
    assert (run.status, rollouts(run)) == ("cancelled", [])
    assert not alive(told)


def test_a_budget_stops_the_run_and_is_overrun_by_what_was_in_flight_at_most(
    executor: str, tmp_path: Path
) -> None:
    run, _ = run_job(job_of("half", executor, tmp_path, budget_usd=0.055))
    paid = {r.rollout_id: r for p in run.phases for r in p.loose} | {r.rollout_id: r for r in rollouts(run)}
    assert run.status == "incomplete"
    assert 6 <= len(paid) <= 7


def test_a_pack_reaches_the_agent(executor: str, tmp_path: Path) -> None:
    pack = make_pack(system="Count.")
    run, _ = run_job(job_of("half", executor, tmp_path, job_packs={"text": pack}, scenarios=suite(0, 2)))
    assert run.status == "complete"
