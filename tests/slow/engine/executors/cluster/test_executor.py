"""What a cluster is refused for before anybody is asked: another version of this package, or of Ray."""

from pathlib import Path
from typing import Any

import pytest
from support.executors import job_of
from support.ray_nodes import children, listening, load_ray

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.engine.executors.cluster.node import NodeWorker
from pytest_tfgrpo.engine.executors.cluster.package import write_package
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import RayCluster
from pytest_tfgrpo.engine.executors.registry import require_executor

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same in a socket of IPv6, and ::1, as ``/proc/net`` writes them."""


def test_a_cluster_that_it_starts_listens_on_loopback_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_ray()
    monkeypatch.setenv("RAY_ADDRESS", "local")
    for name in ("project", "archive"):
        (tmp_path / name).mkdir()
    package = write_package(tmp_path / "project", tmp_path / "archive", most=1000, environ={})
    others = children()  # of a cluster that other tests share
    cluster = RayCluster("", package, NodeWorker)
    try:
        found = listening(others)
    finally:
        cluster.close()
    assert found
    assert found <= LOOPBACK


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
