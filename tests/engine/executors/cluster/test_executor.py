"""What a cluster is refused for before anybody is asked: another version of this package, or of Ray."""

import asyncio
import pickle
import platform
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.jobs import ScriptedActor

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.engine.executors.cluster import executor
from pytest_tfgrpo.engine.executors.cluster.executor import differing
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.engine.executors.cluster.node import NodeFacts, installed
from pytest_tfgrpo.engine.executors.cluster.package import Package
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import ClusterNode
from pytest_tfgrpo.engine.executors.worker import WorkerSetup

OWN = {"pytest-tfgrpo": "1.2.0", "ray": "2.60.0", "numpy": "2.1.0", "httpx": "0.28", "python": "3.11.7"}


def facts(host: str, **packages: str) -> NodeFacts:
    return NodeFacts(problem="", host=host, packages={**OWN, **packages}, pid=1)


def test_a_node_with_another_version_of_the_package_is_named() -> None:
    nodes = [facts("a"), facts("b", **{"pytest-tfgrpo": "1.1.0"})]
    with pytest.raises(SettingError, match=r"the node 'b' has pytest-tfgrpo 1\.1\.0, this machine 1\.2\.0"):
        differing(OWN, nodes)


def test_other_packages_that_differ_are_told_once_for_all_nodes_that_have_them() -> None:
    rest = {name: version for name, version in OWN.items() if name != "httpx"}
    without = NodeFacts(problem="", host="d", packages=rest, pid=1)
    older = facts("e", python="3.11.4")
    nodes = [facts("a"), facts("b", numpy="2.0.0"), facts("c", numpy="2.0.0"), without, older]
    assert differing(OWN, nodes) == [
        "other versions on b, c: numpy 2.0.0 (here 2.1.0)",
        "other versions on d: httpx missing (here 0.28)",
        "other versions on e: python 3.11.4 (here 3.11.7)",
    ]


@pytest.mark.parametrize(("number", "more"), [(8, ""), (9, " and 1 more")])
def test_of_many_packages_and_nodes_that_differ_eight_are_told(number: int, more: str) -> None:
    own = {"pytest-tfgrpo": "1", **{f"p{n}": "1" for n in range(number)}}
    nodes = [NodeFacts(problem="", host=f"h{n}", packages={"pytest-tfgrpo": "1"}, pid=1) for n in range(9)]
    hosts = ", ".join(f"h{n}" for n in range(8))
    rows = ", ".join(f"p{n} missing (here 1)" for n in range(8))
    assert differing(own, nodes) == [f"other versions on {hosts}: {rows}{more}"]


def test_a_node_says_which_python_and_which_packages_it_has() -> None:
    found = installed()
    assert found["python"] == platform.python_version()
    assert found["pytest-tfgrpo"] == version("pytest-tfgrpo")


class OpenCluster:
    """A connection that is open until it is closed for good."""

    def __init__(self, address: str, package: Package, worker: type) -> None:
        self.address, self.package = address, package
        self.is_open, self.closed = True, list[bool]()

    def reopen(self) -> bool:
        return self.is_open

    def nodes(self) -> list[ClusterNode]:
        return [ClusterNode(id="1", host="h", resources={"CPU": 2.0})]

    def close(self, *, keep: bool = False) -> None:
        self.closed.append(keep)


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what was packed, for clusters that stand in for Ray's."""
    found: list[dict[str, Any]] = []

    def write(root: Path, folder: Path, **how: Any) -> Package:
        found.append({"root": root, **how})
        return Package(path=folder / "p.zip", stamp="s", files=1, secrets=())

    monkeypatch.setattr(executor, "write_package", write)
    monkeypatch.setattr(executor, "RayCluster", OpenCluster)
    monkeypatch.setattr(executor, "_checked", {})
    return found


def job_of(root: Path, out: str | None = "runs", **more: Any) -> Any:
    suite = SimpleNamespace(environment="e1", source="suite/a.yaml:3")
    plain = SimpleNamespace(environment=None, source="other/b.yaml:1")
    known = {"root": root, "run_id": "run1", "settings": {"out": out}, "scenarios": (suite, plain)}
    return SimpleNamespace(**known | {"actor": SimpleNamespace(name="solver")} | more)


def test_a_cluster_gets_the_project_without_its_runs_and_workers_know_where_to_look(
    tmp_path: Path, packed: list[dict[str, Any]]
) -> None:
    search = ("", str(tmp_path / "src"), str(tmp_path), "/elsewhere")
    setup = WorkerSetup(agent=b"", root=tmp_path, search=search)
    ready = executor.connect(setup, job_of(tmp_path), "host:1", 7)
    assert (packed[0]["root"], packed[0]["left_out"]) == (tmp_path, [tmp_path / "runs"])
    assert ready.cluster.address == "host:1"  # type: ignore[attr-defined]
    assert pickle.loads(ready.outfit.setup) == setup
    assert (ready.outfit.run, ready.outfit.most, ready.outfit.need) == ("run1", 7, Resources())
    assert (ready.outfit.paths, ready.outfit.suites) == (("src", "."), {"e1": "suite"})
    executor.connect(setup, job_of(tmp_path, None), "", 7)
    assert packed[1]["left_out"] == [tmp_path / "out"]


def test_a_connection_that_was_checked_is_used_once_and_only_while_it_is_open(
    tmp_path: Path, packed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "_probed", lambda ready, actor, places: ([], []))
    monkeypatch.setattr(executor, "installed", dict)
    setup = WorkerSetup(agent=b"", root=tmp_path, search=())
    job, actor = job_of(tmp_path), ScriptedActor(lambda _: "3")
    assert executor.require_cluster(setup, job, "", 2) == []
    checked: Any = executor._checked["run1"].cluster
    assert checked.closed == [True]
    one = executor.ClusterExecutor(actor, setup, job, address="", places=2)
    assert (len(packed), one.notes, one.places) == (1, ["ray: 1 node (h), 2 slots"], 2)
    assert one._connection.cluster is checked
    assert one.place(actor) is not actor
    assert one.place(other := ScriptedActor(lambda _: "3")) is other
    asyncio.run(one.aclose())
    assert (checked.closed, one.warnings) == ([True, False], [])
    executor.ClusterExecutor(actor, setup, job, address="", places=2)
    assert len(packed) == 2, "it was used already"
    executor.require_cluster(setup, job, "", 2)
    gone: Any = executor._checked["run1"].cluster
    gone.is_open = False
    executor.ClusterExecutor(actor, setup, job, address="", places=2)
    assert len(packed) == 4, "it is gone"


def test_a_cluster_that_cannot_call_the_actor_is_left(
    tmp_path: Path, packed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[OpenCluster] = []

    def refuse(ready: Any, actor: str, places: int) -> Any:
        made.append(ready.cluster)
        raise SettingError("no")

    monkeypatch.setattr(executor, "_probed", refuse)
    setup = WorkerSetup(agent=b"", root=tmp_path, search=())
    with pytest.raises(SettingError, match="no"):
        executor.require_cluster(setup, job_of(tmp_path), "", 2)
    assert (made[0].closed, executor._checked) == ([False], {})


@pytest.mark.parametrize(("gpus", "fits"), [((0.0, 1.0), True), ((1.0, 0.0), True), ((0.0, 0.5), False)])
def test_one_node_that_has_what_a_rollout_needs_is_enough(gpus: tuple[float, ...], fits: bool) -> None:
    nodes = [ClusterNode(id=f"{n}", host=f"h{n}", resources={"GPU": gpu}) for n, gpu in enumerate(gpus)]
    ready: Any = SimpleNamespace(
        outfit=SimpleNamespace(need=Resources(gpu=1)),
        cluster=SimpleNamespace(nodes=lambda: nodes),
        file=SimpleNamespace(path="executor.toml"),
    )
    said = r"executor\.toml: a rollout of 'solver' needs 1 GPU, .*; they have 'h0' 0 GPU; 'h1' 0\.5 GPU$"
    with nullcontext() if fits else pytest.raises(SettingError, match=said):
        executor._require_resources(ready, "solver")
