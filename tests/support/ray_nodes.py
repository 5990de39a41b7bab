"""A real Ray cluster on this machine, with nodes that join and die."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest


class Nodes:
    """A cluster whose nodes are processes of this machine; its head is the first of them."""

    def __init__(self, cluster: Any, cache: str) -> None:
        self._cluster = cluster
        self.cache = Path(cache)
        """What ``XDG_CACHE_HOME`` names on its nodes."""
        self.executor = f"ray:{cluster.address}"
        """The setting that names it."""
        self._folders: list[str] = []
        """Those of nodes that joined."""

    def add(self, **resources: Any) -> Any:
        """Let a node join, whose files are its own, as on a machine of its own."""
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # short, as a socket's name is
        self._folders.append(folder)
        with _with_cache(str(self.cache)):
            return self._cluster.add_node(num_cpus=1, temp_dir=folder, **resources)

    def remove(self, node: Any) -> None:
        """Let a node leave, which the cluster knows at once."""
        self._cluster.remove_node(node)

    def kill(self, node: Any) -> None:
        """End a node at once, with all that runs on it."""
        helpers = _children(_raylet(node))
        self._cluster.remove_node(node, allow_graceful=False)
        for pid in helpers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self, node: Any) -> None:
        """Let all processes of a node stand still, as if its machine hung."""
        for pid in self.processes(node):
            os.kill(pid, signal.SIGSTOP)

    def thaw(self, node: Any) -> None:
        """Let them go on."""
        for pid in self.processes(node):
            os.kill(pid, signal.SIGCONT)

    def processes(self, node: Any) -> list[int]:
        """Return the processes of a node."""
        raylet = _raylet(node)
        return [raylet, *_children(raylet)]

    def settle(self) -> None:
        """Wait until the cluster knows which nodes have died."""
        self._cluster.wait_for_nodes(100)

    @property
    def is_whole(self) -> bool:
        """Return whether it has its head."""
        return self._cluster.head_node is not None

    def kill_head(self) -> None:
        """End its head, with all that runs there."""
        self.kill(self._cluster.head_node)

    def end(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()
        for folder in (*self._folders, str(self.cache)):
            shutil.rmtree(folder, ignore_errors=True)


def _raylet(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


def _children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(folder.name))
    return found


def listening(known: Collection[int] = ()) -> set[str]:
    """Return the addresses at which processes below this one listen, as ``/proc/net`` writes them.

    Those below the children `known` are passed over.
    """
    inodes, left = set(), [pid for pid in children() if pid not in known]
    while left:
        pid = left.pop()
        left += _children(pid)
        with suppress(OSError):
            inodes |= {str(fd.readlink())[8:-1] for fd in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [
        row.split()
        for name in ("tcp", "tcp6")
        for row in Path("/proc/net", name).read_text().splitlines()[1:]
    ]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def children() -> list[int]:
    """Return the processes that this one started."""
    return _children(os.getpid())


def load_ray() -> None:
    """Import Ray; call it before a test's `pytester` notes which modules are there.

    `pytester` takes out what was imported after it, and a second copy of Ray refuses classes of the first.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray.cluster_utils  # noqa: F401


@contextmanager
def _with_cache(folder: str) -> Iterator[None]:
    """Start nodes whose caches are not those of this process."""
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("XDG_CACHE_HOME", folder)
        yield


@contextmanager
def open_cluster(**head: Any) -> Iterator[Nodes]:
    """Start a cluster of one node, its head; end it with all others that have joined."""
    load_ray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        arguments = {"num_cpus": 1, "include_dashboard": False, **head}
        cache = tempfile.mkdtemp(prefix="ray-cache-")
        with _with_cache(cache):
            cluster: Any = Cluster(initialize_head=True, connect=False, head_node_args=arguments)
    nodes = Nodes(cluster, cache)
    try:
        yield nodes
    finally:
        nodes.end()
