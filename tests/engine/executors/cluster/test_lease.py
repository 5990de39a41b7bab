"""What becomes of a rollout whose worker ends, and which workers are started."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.executors import asked

from pytest_tfgrpo.core.errors import LOST_WORKER, AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.engine.executors.cluster.node import NodeAnswer, NodeFacts, NodeTurn
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import ClusterNode, WorkerLost
from pytest_tfgrpo.engine.executors.cluster.worker_link import Worker
from pytest_tfgrpo.engine.executors.cluster.workers import (
    NOBODY_S,
    ClusterLease,
    ClusterWorkers,
    Outfit,
)
from pytest_tfgrpo.engine.executors.cluster.workspace_transfer import left_in
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply, pickled

Answer = Callable[[NodeTurn], NodeAnswer | WorkerLost]


def outfit(most: int = 4, **need: float) -> Outfit:
    setup = {"setup": b"s", "run": "r", "paths": ("p",), "suites": {"stamp": "suite"}}
    return Outfit(need=Resources(**need), most=most, **setup)  # type: ignore[arg-type]


class Link:
    """A worker that answers turns as it is told."""

    def __init__(self, answer: Answer | None = None, facts: NodeFacts | WorkerLost | None = None) -> None:
        self._answer, self._facts = answer, facts
        self.calls: list[tuple[str, Any]] = []
        self.turns: list[NodeTurn] = []
        self.killed = False
        self._answered: list[Any] = []

    async def call(self, name: str, *args: Any) -> Any:
        self.calls.append((name, args))
        if name == "open":
            if isinstance(self._facts, WorkerLost):
                raise self._facts
            return self._facts
        if name == "begin":
            for id_, data, _ in args[0]:
                turn = pickle.loads(data)
                self.turns.append(turn)
                assert self._answer is not None
                found = self._answer(turn)
                if isinstance(found, WorkerLost):
                    raise found
                self._answered.append((id_, pickle.dumps(found), ""))
        if name == "collect":
            while not self._answered:
                await asyncio.sleep(0)
            found, self._answered = self._answered, []
            return found
        return None

    def kill(self) -> None:
        self.killed = True


class Cluster:
    def __init__(self, *links: Link) -> None:
        self._links = iter(links)
        self.started: list[tuple[int, ClusterNode | None]] = []

    def nodes(self) -> list[ClusterNode]:
        return []

    def start(self, _need: Resources, places: int, node: ClusterNode | None) -> Link:
        self.started.append((places, node))
        return next(self._links)


def facts(problem: str = "", *lacks: str) -> NodeFacts:
    return NodeFacts(problem=problem, host="host-9", packages={}, pid=1, lacks=lacks)


def replies(text: str) -> Answer:
    def answer(turn: NodeTurn) -> NodeAnswer:
        return NodeAnswer(reply=pickled(WorkerReply(trajectory=Trajectory(answer=text)), turn.turn))

    return answer


def workers_of(*links: Link, need: Outfit | None = None) -> tuple[Any, Any]:
    cluster: Any = Cluster(*links)
    return cluster, ClusterWorkers(cluster, need or outfit())


def worker_of(link: Any, places: int = 4) -> Worker:
    return Worker(link, node="node-1", places=places, host="host-1")


def turn(folder: Path, **changes: Any) -> AgentTurn:
    return AgentTurn(id="a", call=asked("?", folder), **changes)


def ask(workers: ClusterWorkers, worker: Worker, one: AgentTurn) -> WorkerReply:
    return asyncio.run(ClusterLease(workers, worker).ask(one))


def test_the_agent_that_ends_a_process_of_its_own_has_failed(tmp_path: Path) -> None:
    _, workers = workers_of()
    worker = worker_of(Link(lambda _: WorkerLost("exit code 9", alone=True)), places=1)
    reply = ask(workers, worker, turn(tmp_path))
    assert isinstance(reply.fault, AgentFailure)
    assert (reply.fault.code, str(reply.fault)) == (
        "crash",
        "the agent's process ended before it had answered: exit code 9",
    )
    assert (worker.is_lost, workers.lost, workers.suspects) == (True, 0, set())


@pytest.mark.parametrize(("alone", "places", "suspects"), [(True, 4, 1), (False, 4, 0), (False, 1, 0)])
def test_a_worker_that_is_lost_with_others_or_with_its_node_is_no_failure_of_the_agent(
    alone: bool, places: int, suspects: int, tmp_path: Path
) -> None:
    _, workers = workers_of()
    worker = worker_of(Link(lambda _: WorkerLost("it is gone", alone=alone)), places=places)
    workers._workers = [worker_of(Link()), worker]
    with pytest.raises(ProviderError, match="the worker on host-1 was lost: it is gone") as raised:
        ask(workers, worker, turn(tmp_path))
    assert raised.value.code == LOST_WORKER
    assert (worker.is_lost, workers.lost, len(workers.suspects)) == (True, 1, suspects)
    assert worker not in workers._workers
    assert len(workers._workers) == 1


def test_a_suspect_gets_a_worker_of_its_own_on_the_same_node_which_ends_with_it(tmp_path: Path) -> None:
    own, shared = Link(replies("alone"), facts()), Link(replies("shared"))
    cluster, workers = workers_of(own)
    one = turn(tmp_path, message="first")
    workers.suspects.add((one.call.task.id, one.call.seed))

    async def main() -> list[str]:
        lease = ClusterLease(workers, worker_of(shared))
        found = [await lease.ask(one), await lease.ask(one)]
        await lease.end("a")
        assert not own.killed
        await lease.aclose()
        return [reply.trajectory.answer for reply in found if reply.trajectory]

    assert asyncio.run(main()) == ["alone", "alone"]
    assert cluster.started == [(1, ClusterNode(id="node-1", host="host-1"))]
    assert (own.killed, shared.turns, shared.killed) == (True, [], False)
    assert ("end", ("a",)) in own.calls
    other = turn(tmp_path)
    workers.suspects = {(other.call.task.id, other.call.seed + 1)}
    assert ask(workers, worker_of(shared), other).trajectory == Trajectory(answer="shared")


def test_what_a_worker_leaves_in_its_workspace_comes_back_and_goes_there_the_next_time(
    tmp_path: Path,
) -> None:
    _, workers = workers_of()
    one = turn(tmp_path)
    folder = one.call.workspace
    found: list[Any] = []

    def writes(sent: NodeTurn) -> NodeAnswer:
        found.append(sent.before)
        return NodeAnswer(reply=pickled(WorkerReply(), sent.turn), left=left)

    folder.make()
    (folder.path / "told.txt").write_text("now")
    left = left_in(folder)
    (folder.path / "told.txt").unlink()
    (folder.path / "old.txt").write_text("before")
    ask(workers, worker_of(Link(writes)), one)
    assert [name for name, _ in found[0]] == ["old.txt"]
    assert sorted(path.name for path in folder.path.iterdir()) == ["told.txt"]


def test_the_end_of_an_attempt_is_not_told_to_a_worker_that_is_lost() -> None:
    _, workers = workers_of()
    link = Link()
    worker = worker_of(link)
    asyncio.run(ClusterLease(workers, worker).end("a"))
    assert link.calls == [("end", ("a",))]
    worker.is_lost = True
    asyncio.run(ClusterLease(workers, worker).end("a"))
    assert len(link.calls) == 1


NODE = ClusterNode(id="n", host="h")


@pytest.mark.parametrize(
    ("need", "alone", "places"),
    [({}, False, 4), ({}, True, 1), ({"cpu": 1}, False, 1), ({"cpu": 1}, True, 1)],
)
def test_a_worker_has_one_place_where_rollouts_are_counted_or_it_is_for_one(
    need: dict[str, float], alone: bool, places: int
) -> None:
    link = Link(facts=facts())
    cluster, workers = workers_of(link, need=outfit(**need))
    for node, where in ((NODE, "n"), (None, "")):
        cluster._links = iter([link])
        worker = asyncio.run(workers.started(node, alone=alone))
        assert (worker.places, worker.node, worker.host) == (places, where, "host-9")
    assert cluster.started == [(places, NODE), (places, None)]
    assert link.calls[0] == ("open", (b"s", "r", ("p",), {"stamp": "suite"}))
    assert not link.killed


@pytest.mark.parametrize(
    ("found", "message", "killed"),
    [
        (facts("no module"), "host-9 cannot open the agent: no module", True),
        (facts("", "stamp"), "host-9 lacks an environment", True),
        (WorkerLost("no memory", alone=True), "a worker did not start: no memory", False),
    ],
)
def test_a_worker_that_cannot_open_the_agent_is_ended_and_says_why(
    found: NodeFacts | WorkerLost, message: str, killed: bool
) -> None:
    link = Link(facts=found)
    _, workers = workers_of(link)
    with pytest.raises(ProviderError) as raised:
        asyncio.run(workers.started(NODE))
    assert (str(raised.value), raised.value.code, link.killed) == (message, LOST_WORKER, killed)


@pytest.mark.parametrize(
    ("most", "in_flight", "waiting", "ready", "starting", "lacking"),
    [(4, 1, 2, 1, 0, 2), (4, 1, 9, 1, 0, 3), (4, 1, 2, 1, 1, 1), (4, 0, 0, 1, 0, 0), (9, 2, 1, 2, 3, 0)],
)
def test_as_many_workers_are_started_as_rollouts_want_one(
    most: int, in_flight: int, waiting: int, ready: int, starting: int, lacking: int
) -> None:
    _, workers = workers_of(need=outfit(most, cpu=1))
    workers._workers = [worker_of(Link()) for _ in range(ready)]
    for worker in workers._workers[:in_flight]:
        worker.in_flight = 1
    workers._waiting.extend([None] * waiting)
    workers._starting = dict.fromkeys(range(starting), "")
    assert workers._lacking([NODE]) == [None] * lacking


def test_a_node_without_a_worker_or_one_that_starts_gets_one() -> None:
    _, workers = workers_of()
    nodes = [ClusterNode(id=name, host=name) for name in ("node-1", "b", "c")]
    workers._workers = [worker_of(Link())]
    workers._starting = {object(): "b"}
    assert workers._lacking(nodes) == nodes[2:]


@pytest.mark.parametrize(
    ("since", "starting", "may"),
    [({}, ["a"], True), ({}, [], False), ({"a": NOBODY_S}, ["a"], False), ({"a": NOBODY_S - 1}, ["a"], True),
     ({"a": NOBODY_S}, ["a", "b"], True)],
)  # fmt: skip
def test_a_start_counts_until_its_node_has_failed_for_a_minute(
    since: dict[str, float], starting: list[str], may: bool
) -> None:
    async def main() -> bool:
        _, workers = workers_of()
        now = asyncio.get_running_loop().time()
        asyncio.get_running_loop().time = lambda: now  # type: ignore[method-assign]
        workers._failing = {node: now - ago for node, ago in since.items()}
        workers._starting = {object(): node for node in starting}
        return bool(workers._may_start())

    assert asyncio.run(main()) is may


def test_at_the_end_each_worker_is_told_and_ended() -> None:
    links: list[Any] = [Link(), Link()]
    cluster: Any = Cluster()
    workers = ClusterWorkers(cluster, outfit(), [worker_of(link) for link in links])
    asyncio.run(workers.aclose())
    assert [[name for name, _ in link.calls] for link in links] == [["close", "cancel"]] * 2
    assert [link.killed for link in links] == [True, True]


def test_a_file_travels_once(tmp_path: Path) -> None:
    kept: list[Path] = []
    cluster: Any = Cluster()
    cluster.keep = lambda path: kept.append(path) or len(kept)
    workers = ClusterWorkers(cluster, outfit())
    found = [workers.content(tmp_path / name, stamp) for name, stamp in (("a", "1"), ("b", "1"), ("c", "2"))]
    assert (found, [path.name for path in kept]) == ([1, 1, 2], ["a", "c"])
