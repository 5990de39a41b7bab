"""The Ray cluster of a run: its nodes, and one actor of Ray for each worker (extra ``ray``)."""

from __future__ import annotations

import os
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.errors import LOST_WORKER, ProviderError, SettingError, describe
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources
from pytest_tfgrpo.engine.executors.cluster.package import Package

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.executors.cluster.node import NodeFacts, NodeWorker

REACH_S = 5.0
"""How long a cluster's address may take to answer."""
OPEN_S = 120.0
"""How long nodes may take to unpack the project and open the agent, before a run."""
ROOM = 16
"""Calls of a worker beside its rollouts: those that cancel and end them."""
APART = "apart"
"""Ray's name for calls that a thread and an event loop of their own answer."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_TQDM_PATCH_PRINT": "0",
}
"""Ray sends no statistics, warns of nothing that it will do otherwise one day, starts no workers that have
not the project's files, which nobody would use, and puts no function of its own in the place of `print`."""


class WorkerLost(Exception):
    """A worker is gone; `alone`: its process ended, and its node goes on."""

    def __init__(self, message: str, *, alone: bool) -> None:
        super().__init__(message)
        self.alone = alone


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterNode:
    """A node that is alive."""

    id: str
    host: str
    resources: Mapping[str, float] = field(default_factory=dict)
    """What it has, by the cluster's names."""


class _Link:
    """The connection of this process, which has one at most; runs of one address and package share it."""

    def __init__(self, key: tuple[str, str], head: str) -> None:
        self.key = key
        self.head = head
        """Its address."""
        self.uses = 0


_lock = threading.RLock()  # garbage collection may end a run that was given up, while its own thread holds it
_links: list[_Link] = []
"""The one that is open, if any."""


class RayCluster:
    """A connection to a cluster, which the runs of one process share."""

    def __init__(self, address: str, package: Package, worker: type[NodeWorker]) -> None:
        """Connect, and start a cluster on this machine where there is none; raises SettingError.

        `address` is host:port; empty: that of ``RAY_ADDRESS``, else of what runs on this machine. The files
        of `package` travel to the nodes, where objects of the class `worker` serve.
        """
        self._ray, self._worker = _import_ray(), worker
        key = (address, package.stamp)
        with _lock:
            if not _links or _links[0].key != key:
                if any(link.uses for link in _links):
                    raise SettingError("executor: another run of this process uses Ray with other files")
                if _links:
                    _links.clear()
                    self._ray.shutdown()
                self._connect(address, package.path)
                _links.append(_Link(key, self._ray.get_runtime_context().gcs_address))
            self._link = _links[0]
            self._link.uses += 1

    def _connect(self, address: str, package: Path) -> None:
        ray = self._ray
        if ray.is_initialized():
            raise SettingError(
                "executor: this process is connected to Ray already, with a job of its own; call "
                "ray.shutdown() before, or run pytest in a process of its own"
            )
        address = address or _found()
        if address:
            _require_reachable(address)
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        try:
            with warnings.catch_warnings(), nullcontext() if address else _on_loopback():
                warnings.simplefilter("ignore")
                ray.init(
                    address=address or "local",
                    include_dashboard=False,
                    runtime_env={"working_dir": str(package)},
                    log_to_driver=False,
                    logging_level="ERROR",
                )
        except Exception as error:
            ray.shutdown()
            raise SettingError(_why_not(address, error)) from error
        head = ray.get_runtime_context().gcs_address
        if not address and not head.startswith(("127.", "[::1]", "localhost:")):
            ray.shutdown()
            raise SettingError(
                f"executor = 'ray': this version of Ray would listen for others at {head}; start a cluster "
                "yourself with `ray start --head`, behind a firewall, and name it as ray:HOST:PORT"
            )

    def reopen(self) -> bool:
        """Use again what was closed to be kept; return False where it is gone."""
        with _lock:
            if self.is_open:
                self._link.uses += 1
            return self.is_open

    @property
    def is_open(self) -> bool:
        """Return whether it is still connected."""
        return self._link in _links

    def nodes(self) -> list[ClusterNode]:
        """Return the nodes that are alive, none where the head is not; blocks for a moment."""
        try:
            _require_reachable(self._link.head)
        except SettingError:  # Ray would wait for it, and end this process after a minute
            return []
        return [
            ClusterNode(id=row["NodeID"], host=row["NodeManagerHostname"], resources=row["Resources"])
            for row in self._ray.nodes()
            if row["Alive"]
        ]

    def start(self, need: Resources, places: int, node: ClusterNode | None) -> RayWorker:
        """Return a worker that is about to start, on `node` or wherever what it needs is free.

        Raises ProviderError (LOST_WORKER) where Ray refuses it.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options: dict[str, Any] = {
            "num_cpus": need.cpu,
            "num_gpus": need.gpu,
            "resources": dict(need.custom),
            "max_concurrency": places + ROOM,
        }
        if need.memory:
            options["memory"] = need.memory
        if node is not None:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node.id, soft=False)
        try:
            actor = self._ray.remote(concurrency_groups={APART: 1})(self._worker).options(**options).remote()
        except Exception as error:
            reason = line(describe(error), 500)
            raise ProviderError(f"a worker did not start: {reason}", LOST_WORKER) from error
        return RayWorker(self._ray, actor)

    def keep(self, path: Path) -> Any:
        """Keep the bytes of a file where every node can fetch them; raises ProviderError."""
        try:
            return self._ray.put(path.read_bytes())
        except (OSError, self._ray.exceptions.RayError) as error:
            reason = line(describe(error), 500)
            raise ProviderError(f"cannot send {path} to the cluster: {reason}", "workspace") from error

    def probe(self, outfit: Sequence[object], places: int) -> list[tuple[ClusterNode, RayWorker, NodeFacts]]:
        """Return a worker of each node that has opened the agent, and what it says; blocks.

        A node that has died by then is left out. Raises SettingError for another that has none.
        """
        try:
            started = [(node, self.start(Resources(), places, node)) for node in self.nodes()]
        except ProviderError as error:
            raise SettingError(f"executor: {error}") from error
        opened = [worker.actor.open.remote(*outfit) for _, worker in started]
        self._ray.wait(opened, num_returns=len(opened), timeout=OPEN_S)
        found = []
        try:
            for (node, worker), ref in zip(started, opened, strict=True):
                try:
                    found.append((node, worker, self._fact(node, ref)))
                except SettingError:
                    alive = {one.id for one in self.nodes()}
                    if node.id in alive or not alive:
                        raise
        except BaseException:
            for _, worker in started:
                worker.kill()
            raise
        return found

    def _fact(self, node: ClusterNode, ref: Any) -> NodeFacts:
        try:
            facts: NodeFacts = self._ray.get(ref, timeout=0.1)
        except self._ray.exceptions.GetTimeoutError as error:
            raise SettingError(
                f"executor: the node {node.host!r} was not ready after {OPEN_S:g} s"
            ) from error
        except self._ray.exceptions.RayError as error:
            text = str(error)
            if "No module named 'pytest_tfgrpo" in text:
                text = (
                    "it has no package pytest-tfgrpo; install it on all nodes, in the version of this machine"
                )
            raise SettingError(
                f"executor: the node {node.host!r} cannot start a worker: {_reason(text)}"
            ) from error
        return facts

    def close(self, *, keep: bool = False) -> None:
        """Disconnect, once no other run uses the connection; a cluster that it started ends.

        `keep`: the next run finds the connection.
        """
        with _lock:
            self._link.uses -= 1
            if not (keep or self._link.uses):
                _links.clear()
                self._ray.shutdown()


class RayWorker:
    """One worker, as the driver sees it; its calls raise WorkerLost."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self.actor = actor
        """Ray's own handle."""

    async def ping(self) -> None:
        """Return when the process answers, also where an agent keeps its event loop busy."""
        await self._answered(self.actor.ping.options(concurrency_group=APART).remote())

    async def call(self, name: str, *arguments: object) -> Any:
        """Return what a method of NodeWorker returns; a cancelled call goes on there."""
        return await self._answered(getattr(self.actor, name).remote(*arguments))

    async def _answered(self, call: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return await call
        except errors.RayActorError as error:
            text = str(error)
            alone = "node has died" not in text and not isinstance(error, errors.ActorUnavailableError)
            raise WorkerLost(_reason(text), alone=alone) from error
        except errors.RayTaskError as error:
            raise WorkerLost(line(describe(error.cause), 500), alone=True) from error
        except errors.RayError as error:
            raise WorkerLost(_reason(str(error)), alone=False) from error

    def kill(self) -> None:
        """End its process at once."""
        self._ray.kill(self.actor, no_restart=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise SettingError(
            "executor = 'ray' needs the package ray; install it with `pip install 'pytest-tfgrpo[ray]'`"
        ) from None
    return ray


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Let a cluster that starts here listen on loopback alone, as Ray does on macOS and Windows.

    Whoever reaches its ports runs code. Ray has no argument for it: it takes 127.0.0.1 for a mistake.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _found() -> str:
    """Return the address of the cluster that the environment names or that runs here; empty: there is none.

    Ray 2.60 can look for it too (``auto``), but then starts no actor with an environment there.
    """
    named = os.environ.get("RAY_ADDRESS", "auto")
    if named != "auto":
        return "" if named == "local" else named
    current = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")
    try:
        address = current.read_text(encoding="utf-8").strip()
        _require_reachable(address)
    except (OSError, ValueError):  # there never was one, or it has ended
        return ""
    return address


def _require_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except (OSError, ValueError) as error:
        raise SettingError(
            f"executor = 'ray:{address}': no Ray cluster answers at {address!r} ({error}); start one with "
            "`ray start --head`, or leave the address out to start one here"
        ) from error


def _why_not(address: str, error: Exception) -> str:
    spec, text = f"ray:{address}" if address else "ray", str(error)
    if "ersion mismatch" in text:
        return f"executor = {spec!r}: {line(text, 500)}; install the cluster's versions here"
    return f"executor = {spec!r}: cannot connect to Ray: {line(describe(error), 500)}"


def _reason(text: str) -> str:
    """Return what a message of Ray says, without the ids in it."""
    rows = [row.strip() for row in text.splitlines()]
    kept = [
        row
        for row in rows
        if row and not row.partition(":")[0].endswith(("_id", "_name", "pid", "ip", "namespace"))
    ]
    return line(" ".join(kept), 500)
