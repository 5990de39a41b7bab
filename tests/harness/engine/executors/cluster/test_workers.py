"""Who gets a worker, where nodes fail to start one."""

import asyncio
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.harness.engine.executors.cluster import workers
from pytest_tfgrpo.harness.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.harness.engine.executors.cluster.node import NodeFacts
from pytest_tfgrpo.harness.engine.executors.cluster.ray_cluster import ClusterNode
from pytest_tfgrpo.harness.engine.executors.cluster.workers import ClusterWorkers, Outfit

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
    monkeypatch.setattr(workers, "LOOK_S", 0.05)
    monkeypatch.setattr(workers, "NOBODY_S", 0.3)

    async def main() -> str:
        all_workers = ClusterWorkers(cluster, OUTFIT)
        try:
            async with all_workers.lease() as lease:
                return lease._worker.host
        finally:
            await all_workers.aclose()

    return asyncio.run(main())


def test_a_node_that_never_starts_a_worker_ends_no_wait_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(bad=Link("bad", 0, "an environment"), good=Link("good", 1))
    assert host_of_a_worker(cluster, monkeypatch) == "good"


def test_where_no_node_starts_a_worker_the_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(bad=Link("bad", 0, "an environment"))
    with pytest.raises(ProviderError, match="the cluster has no worker any more: bad lacks an environment"):
        host_of_a_worker(cluster, monkeypatch)
