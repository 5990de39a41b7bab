"""The connection to a cluster, with a stand-in for Ray."""

from __future__ import annotations

import asyncio
import socket
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ProviderError, SettingError
from pytest_tfgrpo.engine.executors.cluster import executor, ray_cluster
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.engine.executors.cluster.node import NodeFacts, NodeWorker
from pytest_tfgrpo.engine.executors.cluster.package import Package
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import (
    ClusterNode,
    RayCluster,
    RayWorker,
    WorkerLost,
    _found,
    _reason,
    _require_reachable,
    _why_not,
)
from pytest_tfgrpo.engine.executors.cluster.workers import Outfit


class RayError(Exception): ...


class ActorError(RayError): ...


class Unavailable(ActorError): ...


class TimeoutOfRay(RayError): ...


class TaskError(RayError):
    cause = ValueError("no such word")


ERRORS = SimpleNamespace(
    RayError=RayError,
    RayActorError=ActorError,
    ActorUnavailableError=Unavailable,
    RayTaskError=TaskError,
    GetTimeoutError=TimeoutOfRay,
)


class Ray:
    exceptions = ERRORS

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.opened: dict[str, Any] = {}
        self.head, self.rows, self.answers = "127.0.0.1:6379", list[dict[str, Any]](), dict[Any, Any]()

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        self.calls.append("init")
        self.opened = options

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address=self.head)

    def nodes(self) -> list[dict[str, Any]]:
        return self.rows

    def wait(self, refs: list[Any], **_: Any) -> None: ...

    def get(self, ref: Any, timeout: float) -> Any:
        found = self.answers[ref]
        if isinstance(found, Exception):
            raise found
        return found

    def put(self, data: bytes) -> bytes:
        return b"kept " + data

    def kill(self, actor: Any, *, no_restart: bool) -> None:
        self.calls.append(f"kill {actor} {no_restart}")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    made = Ray()
    monkeypatch.setattr(ray_cluster, "_import_ray", lambda: made)
    monkeypatch.setattr(ray_cluster, "_links", [])
    monkeypatch.setattr(ray_cluster, "_require_reachable", lambda address: None)
    for name, value in ray_cluster.QUIET.items():
        monkeypatch.setenv(name, value)
    return made


def package(stamp: str = "a") -> Package:
    return Package(path=Path("p.zip"), stamp=stamp, files=1, secrets=())


def open_cluster(stamp: str = "a") -> RayCluster:
    return RayCluster("host:1", package(stamp), NodeWorker)


def test_runs_of_the_same_files_share_a_connection_which_ends_with_the_last(ray: Ray) -> None:
    one, two = open_cluster(), open_cluster()
    assert ray.calls == ["init"]
    assert ray.opened["address"] == "host:1"
    assert ray.opened["runtime_env"] == {"working_dir": "p.zip"}
    assert ray.opened["include_dashboard"] is ray.opened["log_to_driver"] is False
    with pytest.raises(SettingError, match="another run of this process uses Ray with other files"):
        open_cluster("b")
    one.close()
    assert (two.is_open, ray.calls) == (True, ["init"])
    two.close()
    assert (two.is_open, two.reopen(), ray.calls) == (False, False, ["init", "shutdown"])


def test_a_connection_that_is_kept_is_used_again_or_makes_way_for_other_files(ray: Ray) -> None:
    one = open_cluster()
    one.close(keep=True)
    assert (one.is_open, one.reopen(), ray.calls) == (True, True, ["init"])
    one.close(keep=True)
    other = open_cluster("b")
    assert ray.calls == ["init", "shutdown", "init"]
    assert (one.is_open, other.is_open) == (False, True)


def test_a_connection_that_is_the_applications_own_is_left_alone(ray: Ray) -> None:
    ray.is_initialized = lambda: True  # type: ignore[method-assign]
    with pytest.raises(SettingError, match="is connected to Ray already"):
        open_cluster()
    assert ray.calls == []


def test_a_cluster_that_cannot_be_joined_is_left_and_says_why(ray: Ray) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("Version mismatch: 2.1 and 2.2")

    ray.init = fail  # type: ignore[method-assign]
    with pytest.raises(SettingError, match=r"ray:host:1.: Version mismatch.*; install"):
        open_cluster()
    assert ray.calls == ["shutdown"]
    assert _why_not("", OSError("no")) == "executor = 'ray': cannot connect to Ray: OSError: no"


ALIVE = {"NodeID": "1", "NodeManagerHostname": "a", "Resources": {"CPU": 4.0}, "Alive": True}


def test_nodes_are_those_alive_and_none_where_the_head_is_gone(
    ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = open_cluster()
    ray.rows = [ALIVE, ALIVE | {"NodeID": "2", "Alive": False}]
    assert cluster.nodes() == [ClusterNode(id="1", host="a", resources={"CPU": 4.0})]

    def gone(address: str) -> None:
        assert address == ray.head
        raise SettingError("no")

    monkeypatch.setattr(ray_cluster, "_require_reachable", gone)
    assert cluster.nodes() == []


def test_a_file_is_kept_for_the_nodes_or_it_is_said_why_not(ray: Ray, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    cluster = open_cluster()
    assert cluster.keep(tmp_path / "a") == b"kept data"
    with pytest.raises(
        ProviderError, match=f"cannot send {tmp_path}/b to the cluster: .*No such file"
    ) as raised:
        cluster.keep(tmp_path / "b")
    assert raised.value.code == "workspace"


class Actor:
    def __init__(self, name: str) -> None:
        self.name = name
        self.open = SimpleNamespace(remote=lambda *_: name)

    def __str__(self) -> str:
        return self.name


FACTS = NodeFacts(problem="", host="a", packages={}, pid=1)


def probed(ray: Ray, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[Any]:
    """Open the agent on nodes 0, 1, ..., which answer so; a node that raises RayError has died."""
    cluster = open_cluster()
    ray.rows = [ALIVE | {"NodeID": str(n), "NodeManagerHostname": f"host-{n}"} for n in range(len(answers))]
    ray.answers = {str(n): answer for n, answer in enumerate(answers)}
    monkeypatch.setattr(
        RayCluster, "start", lambda self, need, places, node: RayWorker(self._ray, Actor(node.id))
    )
    return cluster.probe((), 4)


def test_every_node_opens_the_agent_before_a_run(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(ray, monkeypatch, FACTS, FACTS)
    assert [(node.host, worker.actor.name, facts) for node, worker, facts in found] == [
        ("host-0", "0", FACTS), ("host-1", "1", FACTS),
    ]  # fmt: skip
    assert ray.calls == ["init"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (TimeoutOfRay(), "the node 'host-1' was not ready after 120 s"),
        (
            RayError("No module named 'pytest_tfgrpo'"),
            "'host-1' cannot start a worker: it has no package pytest-",
        ),
        (RayError("no\nroom"), "the node 'host-1' cannot start a worker: no room"),
    ],
)
def test_a_node_that_does_not_open_the_agent_is_named_and_all_workers_end(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, answer: Exception, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        probed(ray, monkeypatch, FACTS, answer)
    assert ray.calls == ["init", "kill 0 True", "kill 1 True"]


def test_a_node_that_died_meanwhile_is_left_out(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(ref: str, timeout: float) -> Any:
        if ref == "1":
            ray.rows = ray.rows[:1]
            raise RayError("gone")
        return FACTS

    ray.get = get  # type: ignore[method-assign, assignment]
    assert [node.host for node, _, _ in probed(ray, monkeypatch, FACTS, FACTS)] == ["host-0"]


@pytest.mark.parametrize(
    ("error", "message", "alone"),
    [
        (ActorError("it exited\npid: 7"), "it exited", True),
        (ActorError("its node has died"), "its node has died", False),
        (Unavailable("not now"), "not now", False),
        (TaskError(), "ValueError: no such word", True),
        (RayError("lost"), "lost", False),
    ],
)
def test_what_ray_raises_says_whether_the_process_alone_is_gone(
    ray: Ray, error: Exception, message: str, alone: bool
) -> None:
    async def fail() -> None:
        raise error

    actor = SimpleNamespace(collect=SimpleNamespace(remote=lambda *_: fail()))
    with pytest.raises(WorkerLost) as raised:
        asyncio.run(RayWorker(ray, actor).call("collect"))
    assert (str(raised.value), raised.value.alone) == (message, alone)


def test_a_message_of_ray_is_told_without_its_ids() -> None:
    text = "The actor died.\n\tclass_name: A\n actor_id: 1\npid: 2\n ip: 3\n\n namespace: x\nIts node: gone"
    assert _reason(text) == "The actor died. Its node: gone"


@pytest.mark.parametrize(
    ("named", "file", "found"),
    [
        ("local", "127.0.0.1:{port}", ""),
        ("far:1", "127.0.0.1:{port}", "far:1"),
        ("auto", " 127.0.0.1:{port}\n", "127.0.0.1:{port}"),
        (None, "127.0.0.1:{port}", "127.0.0.1:{port}"),
        (None, "127.0.0.1:x", ""),
        (None, None, ""),
    ],
)
def test_the_cluster_is_that_of_the_environment_or_of_this_machine(
    named: str | None, file: str | None, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if named is not None:
        monkeypatch.setenv("RAY_ADDRESS", named)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if file is not None:
            (tmp_path / "ray").mkdir()
            (tmp_path / "ray/ray_current_cluster").write_text(file.format(port=port))
        assert _found() == found.format(port=port)
    with pytest.raises(SettingError, match=f"no Ray cluster answers at '127.0.0.1:{port}'"):
        _require_reachable(f"127.0.0.1:{port}")


def test_an_executor_says_what_nodes_lack_and_how_many_rollouts_they_take() -> None:
    nodes = [ClusterNode(id=str(n), host=f"h{n % 2}", resources={"CPU": 4.0}) for n in range(3)]
    fields: dict[str, Any] = {"setup": b"", "run": "r", "paths": (), "suites": {}}
    counted = Outfit(need=Resources(cpu=3), most=9, **fields)
    assert executor.about(nodes, counted) == "ray: 3 nodes (h0, h1), 3 slots, 3 CPU each"
    assert (
        executor.about(nodes, Outfit(need=Resources(), most=2, **fields)) == "ray: 3 nodes (h0, h1), 2 slots"
    )

    def ready(**need: float) -> Any:
        outfit = Outfit(need=Resources(**need), most=9, **fields)  # type: ignore[arg-type]
        return SimpleNamespace(
            outfit=outfit, cluster=SimpleNamespace(nodes=lambda: nodes[:1]), file=SimpleNamespace(path="f")
        )

    executor._require_resources(ready(cpu=4), "agent")
    with pytest.raises(SettingError, match="f: a rollout of 'agent' needs 5 CPU, 1 GPU, which no node"):
        executor._require_resources(ready(cpu=5, gpu=1), "agent")
    with pytest.raises(SettingError, match="they have 'h0' 4 CPU, 0 GPU"):
        executor._require_resources(ready(cpu=5, gpu=1), "agent")


def test_environments_that_nodes_lack_are_named_by_their_suite_and_secrets_by_their_files() -> None:
    def lacks(host: str, *stamps: str) -> NodeFacts:
        return NodeFacts(problem="", host=host, packages={}, pid=1, lacks=stamps)

    suites = {"1": "shop", "2": "bank"}
    executor._require_environments(suites, [lacks("a")])
    with pytest.raises(
        SettingError, match="suite 'shop' are not built on the cluster's nodes b, c; run `tfgrpo"
    ) as it:
        executor._require_environments(suites, [lacks("c", "1"), lacks("a", "2"), lacks("b", "2", "1")])
    assert "harvest env shop" in str(it.value)
    found = [
        executor._left_here(Package(path=Path("p"), stamp="", files=1, secrets=tuple("abcdefghi")[:n]))
        for n in (0, 1, 9)
    ]
    assert found == [
        [],
        ["1 file stayed here, because their names look like secrets: a"],
        ["9 files stayed here, because their names look like secrets: a, b, c, d, e, f, g, h, ..."],
    ]


@pytest.mark.parametrize(("need", "places", "kept"), [({}, 4, 2), ({"cpu": 1.0}, 1, 0)])
def test_workers_of_the_check_before_a_run_are_used_where_rollouts_take_nothing(
    need: dict[str, float], places: int, kept: int
) -> None:
    asked, killed = list[int](), list[str]()
    fields: dict[str, Any] = {"setup": b"", "run": "r", "paths": (), "suites": {}}
    nodes = [
        (ClusterNode(id=id_, host=id_), SimpleNamespace(kill=lambda id_=id_: killed.append(id_)), FACTS)
        for id_ in "12"
    ]

    def probe(opening: object, places: int) -> Any:
        asked.append(places)
        return nodes

    outfit = Outfit(need=Resources(**need), most=4, **fields)  # type: ignore[arg-type]
    ready: Any = SimpleNamespace(outfit=outfit, cluster=SimpleNamespace(probe=probe))
    workers, found = executor._probed(ready, "agent", 4)
    assert (asked, len(workers), len(found), len(killed)) == ([places], kept, 2, 2 - kept)
    assert [(worker.node, worker.places, worker.host) for worker in workers] == [
        ("1", 4, "a"),
        ("2", 4, "a"),
    ][:kept]
    nodes[1] = (*nodes[1][:2], NodeFacts(problem="no module", host="b", packages={}, pid=1))
    with pytest.raises(SettingError, match="the node 'b' cannot open the actor 'agent': no module; send"):
        executor._probed(ready, "agent", 4)


@pytest.mark.parametrize(
    ("head", "others"),
    [("127.0.0.1:1", False), ("[::1]:1", False), ("localhost:1", False), ("10.0.0.1:1", True)],
)
def test_a_cluster_that_starts_here_is_for_this_machine_alone(
    head: str, others: bool, ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_found", lambda: "")
    monkeypatch.setattr(ray_cluster, "_on_loopback", nullcontext)
    ray.head = head
    if others:
        with pytest.raises(SettingError, match=r"would listen for others at 10\.0\.0\.1:1; start a cluster"):
            RayCluster("", package(), NodeWorker)
        assert ray.calls == ["init", "shutdown"]
        RayCluster("host:1", package("b"), NodeWorker)  # that one is somebody else's
    else:
        RayCluster("", package(), NodeWorker)
        assert (ray.opened["address"], ray.calls) == ("local", ["init"])
