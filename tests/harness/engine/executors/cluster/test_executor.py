"""What a cluster is refused for before anybody is asked: another version of this package, or of Ray."""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from support.executors import job_of
from support.ray_nodes import listening, load_ray

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harness.engine.executors.cluster.executor import differing
from pytest_tfgrpo.harness.engine.executors.cluster.node import NodeFacts, installed
from pytest_tfgrpo.harness.engine.executors.cluster.package import write_package
from pytest_tfgrpo.harness.engine.executors.cluster.ray_cluster import RayCluster
from pytest_tfgrpo.harness.engine.executors.registry import require_executor

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same in a socket of IPv6, and ::1, as ``/proc/net`` writes them."""
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


def test_a_node_says_which_python_and_which_packages_it_has() -> None:
    found = installed()
    assert found["python"] == platform.python_version()
    assert found["pytest-tfgrpo"] == version("pytest-tfgrpo")


@pytest.mark.service
def test_a_cluster_that_it_starts_listens_on_loopback_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_ray()
    monkeypatch.setenv("RAY_ADDRESS", "local")
    for name in ("project", "archive"):
        (tmp_path / name).mkdir()
    package = write_package(tmp_path / "project", tmp_path / "archive", most=1000, environ={})
    cluster = RayCluster("", package)
    try:
        found = listening()
    finally:
        cluster.close()
    assert found
    assert found <= LOOPBACK


@pytest.mark.service
def test_another_version_of_ray_on_the_cluster_is_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def refuse(**_: Any) -> None:
        raise RuntimeError(
            "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.11.7\n"
            "This process on node 10.0.0.1 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
        )

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with pytest.raises(SettingError) as caught:
        require_executor(job_of("half", "ray", tmp_path, job_root=tmp_path))
    said = str(caught.value)
    assert said.startswith("executor = 'ray': Version mismatch: The cluster was started with: Ray: 2.9.0 ")
    assert said.endswith("; install the cluster's versions here")
