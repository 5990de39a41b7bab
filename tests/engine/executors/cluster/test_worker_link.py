"""Turns and answers of a worker in bundles: one call for many, what breaks alone, what is lost together."""

import asyncio
import pickle
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.executors import asked, job_of

from pytest_tfgrpo.engine.executors.cluster.node import (
    BUNDLE_BYTES,
    NodeAnswer,
    NodeTurn,
    NodeWorker,
    first_bundle,
)
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import WorkerLost
from pytest_tfgrpo.engine.executors.cluster.worker_link import Worker
from pytest_tfgrpo.engine.executors.placement import setup_of
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply


class Near:
    """A link to a worker of this process, which ends where `ends` says so."""

    def __init__(self, ends: str = "", fault: Exception | None = None) -> None:
        self.calls = Counter[str]()
        self._node = NodeWorker()
        self._ends = ends
        self._fault = fault or WorkerLost("its node has died", alone=False)

    async def call(self, name: str, *arguments: object) -> Any:
        self.calls[name] += 1
        if name == self._ends:
            raise self._fault
        return await getattr(self._node, name)(*arguments)


def with_worker(
    use: Callable[[Worker, Near], Awaitable[None]],
    folder: Path,
    agent: str,
    ends: str = "",
    fault: Exception | None = None,
) -> None:
    """Let a test use a worker whose agent is one of ``support.worker_agents``."""
    setup = setup_of(job_of(agent, "ray", folder))

    async def main() -> None:
        link: Any = Near(ends, fault)
        facts = await link.call("open", pickle.dumps(setup), "run", (), {})
        assert facts.problem == ""
        try:
            await use(Worker(link, node="n", places=100, host="h"), link)
        finally:
            await link.call("close")

    asyncio.run(main())


def turn(n: int, folder: Path, prompt: str = "?") -> bytes:
    call = replace(asked(prompt, folder), seed=n)
    return pickle.dumps(NodeTurn(turn=AgentTurn(id=f"t{n}", call=call)))


def said(data: bytes) -> str:
    answer: NodeAnswer = pickle.loads(data)
    reply: WorkerReply = pickle.loads(answer.reply)
    assert reply.trajectory is not None
    return reply.trajectory.answer


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests")


def test_turns_that_begin_together_are_one_call_and_so_are_answers_that_end_together(tmp_path: Path) -> None:
    async def use(worker: Worker, link: Near) -> None:
        for _ in range(2):
            found = [worker.begin(f"t{n}", turn(n, tmp_path), None) for n in range(40)]
            answers = [said(data) for data in await asyncio.gather(*found)]
            assert answers == ["3" if n % 2 else "4" for n in range(40)]
        assert link.calls["begin"] == 2
        assert link.calls["collect"] <= 10

    with_worker(use, tmp_path, "in_coroutine")


def test_an_answer_waits_for_no_other_of_its_bundle(tmp_path: Path) -> None:
    async def use(worker: Worker, link: Near) -> None:
        gate = tmp_path / "gate"
        late, soon = (
            worker.begin(f"t{n}", turn(n, tmp_path, str(path)), None)
            for n, path in enumerate((gate, tmp_path))
        )
        assert said(await soon) == "3"
        assert not late.done()
        gate.touch()
        assert said(await late) == "3"
        assert link.calls["begin"] == 1

    with_worker(use, tmp_path, "waits")


def test_a_turn_that_cannot_be_read_fails_alone(tmp_path: Path) -> None:
    async def use(worker: Worker, _: Near) -> None:
        fine, broken = worker.begin("t1", turn(1, tmp_path), None), worker.begin("t2", b"no turn", None)
        with pytest.raises(WorkerLost, match="UnpicklingError"):
            await broken
        assert said(await fine) == "3"

    with_worker(use, tmp_path, "in_coroutine")


@pytest.mark.parametrize("ends", ["begin", "collect"])
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (WorkerLost("its node has died", alone=False), "its node has died"),
        (ValueError("no such method"), "ValueError: no such method"),
    ],
    ids=["lost", "refused"],
)
def test_all_who_wait_for_a_worker_that_is_lost_or_of_no_use_hear_of_it(
    ends: str, fault: Exception, told: str, tmp_path: Path
) -> None:
    async def use(worker: Worker, _: Near) -> None:
        waiting = [worker.begin(f"t{n}", turn(n, tmp_path), None) for n in range(3)]
        faults = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 100)
        assert [(type(fault), str(fault)) for fault in faults] == [(WorkerLost, told)] * 3
        assert not worker.pending

    with_worker(use, tmp_path, "in_coroutine", ends, fault)


@pytest.mark.parametrize(
    ("fault", "alone"),
    [
        (WorkerLost("it ended", alone=True), True),
        (WorkerLost("its node has died", alone=False), False),
        (ValueError("no such method"), False),
    ],
    ids=["alone", "with-others", "of-no-use"],
)
def test_a_fault_says_whether_it_hit_its_own_worker_alone(
    fault: Exception, alone: bool, tmp_path: Path
) -> None:
    async def use(worker: Worker, _: Near) -> None:
        waiting = worker.begin("t1", turn(1, tmp_path), None)
        with pytest.raises(WorkerLost) as found:
            await waiting
        assert found.value.alone is alone

    with_worker(use, tmp_path, "in_coroutine", "begin", fault)


def test_an_answer_that_nobody_waits_for_any_more_is_no_fault() -> None:
    async def main() -> None:
        link: Any = Near()
        worker = Worker(link, node="n", places=1, host="h")
        answers = {name: asyncio.get_running_loop().create_future() for name in ("gone", "lost", "fine")}
        worker.pending.update(answers)
        answers["gone"].cancel()
        for name, why in (("gone", ""), ("unknown", ""), ("lost", "it ended"), ("fine", "")):
            worker._hand_on(name, b"x", why)
        assert await answers["fine"] == b"x"
        with pytest.raises(WorkerLost, match="it ended"):
            await answers["lost"]

    asyncio.run(main())


def test_a_bundle_ends_where_it_is_large_and_has_one_item_at_least() -> None:
    items = [(f"t{n}", b"x" * size, "") for n, size in enumerate([10, 20, 2 * BUNDLE_BYTES, 5])]
    assert [id_ for id_, *_ in first_bundle(items)] == ["t0", "t1", "t2"]
    assert [id_ for id_, *_ in first_bundle(items)] == ["t3"]
    assert items == []
