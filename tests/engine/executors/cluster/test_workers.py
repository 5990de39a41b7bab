"""Who gets a worker, where nodes fail to start one."""

import asyncio
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.engine.executors.cluster import workers
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.engine.executors.cluster.node import NodeFacts
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import ClusterNode
from pytest_tfgrpo.engine.executors.cluster.worker_link import Worker
from pytest_tfgrpo.engine.executors.cluster.workers import ClusterWorkers, Outfit

OUTFIT = Outfit(setup=b"", run="run", paths=(), need=Resources(), most=4, suites={})


class Link:
    """A worker that takes its time to open the agent, and may lack an environment."""

    def __init__(self, host: str, opens_s: float, *lacks: str) -> None:
        self._facts = NodeFacts(problem="", host=host, packages={}, pid=1, lacks=lacks)
        self._opens_s = opens_s

    async def call(self, name: str, *_: object) -> Any:
        if name == "open":
            await asyncio.sleep(self._opens_s)
            return self._facts
        return None

    def kill(self) -> None:
        """Do nothing."""


class Cluster:
    """A cluster of these nodes, by their hosts."""

    def __init__(self, **links: Link) -> None:
        self._links = links

    def nodes(self) -> list[ClusterNode]:
        return [ClusterNode(id=host, host=host) for host in self._links]

    def start(self, _need: Resources, _places: int, node: ClusterNode) -> Link:
        return self._links[node.host]


def host_of_a_worker(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(workers, "LOOK_S", 0.02)
    monkeypatch.setattr(workers, "NOBODY_S", 0.1)

    async def main() -> str:
        all_workers = ClusterWorkers(cluster, OUTFIT)
        try:
            async with all_workers.lease() as lease:
                return lease._worker.host
        finally:
            await all_workers.aclose()

    return asyncio.run(main())


def test_a_node_that_never_starts_a_worker_ends_no_wait_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(bad=Link("bad", 0, "an environment"), good=Link("good", 0.4))
    assert host_of_a_worker(cluster, monkeypatch) == "good"


def test_where_no_node_starts_a_worker_the_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(bad=Link("bad", 0, "an environment"))
    with pytest.raises(ProviderError, match="the cluster has no worker any more: bad lacks an environment"):
        host_of_a_worker(cluster, monkeypatch)


def test_those_who_wait_for_a_place_get_it_in_their_order() -> None:
    order: list[int] = []

    async def main() -> None:
        link: Any = Link("one", 0)
        cluster: Any = Cluster()
        worker = Worker(link, node="one", places=1, host="one")
        all_workers = ClusterWorkers(cluster, OUTFIT, [worker])

        async def take(n: int) -> None:
            async with all_workers.lease():
                order.append(n)
                assert worker.in_flight == 1

        try:
            async with all_workers.lease():
                waiting = [asyncio.create_task(take(n)) for n in (1, 2, 3)]
                await asyncio.sleep(0)
                assert order == []
            await asyncio.wait_for(asyncio.gather(*waiting), 100)
            assert worker.in_flight == 0
        finally:
            await all_workers.aclose()

    asyncio.run(main())
    assert order == [1, 2, 3]


def test_a_newcomer_waits_behind_those_who_were_woken_and_one_that_gives_up_wakes_the_next() -> None:
    order: list[str] = []

    async def main() -> None:
        link: Any = Link("one", 0)
        cluster: Any = Cluster()
        all_workers = ClusterWorkers(cluster, OUTFIT, [Worker(link, node="one", places=2, host="one")])

        async def take(name: str) -> None:
            async with all_workers.lease():
                order.append(name)
                await asyncio.sleep(0)

        try:
            async with all_workers.lease(), all_workers.lease():
                given_up, first, second = (
                    asyncio.create_task(take(name)) for name in ("given up", "first", "second")
                )
                await asyncio.sleep(0)
                assert len(all_workers._waiting) == 3
            given_up.cancel()  # it is woken, and the places are free
            async with asyncio.timeout(10):
                await asyncio.gather(take("newcomer"), first, second)
        finally:
            await all_workers.aclose()

    asyncio.run(main())
    assert order == ["first", "second", "newcomer"]


def test_the_worker_with_most_room_is_taken() -> None:
    async def main() -> list[str]:
        links: list[Any] = [Link(host, 0) for host in "ab"]
        ready = [Worker(link, node=host, places=3, host=host) for link, host in zip(links, "ab", strict=True)]
        cluster: Any = Cluster()
        all_workers = ClusterWorkers(cluster, OUTFIT, ready)
        try:
            async with all_workers.lease() as one, all_workers.lease() as two, all_workers.lease() as three:
                return [lease._worker.host for lease in (one, two, three)]
        finally:
            await all_workers.aclose()

    assert asyncio.run(main()) == ["a", "b", "a"]
