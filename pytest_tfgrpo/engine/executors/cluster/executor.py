"""The executor ``ray[:address]``: the calls of agents are made on the nodes of a Ray cluster.

The driver keeps everything else: journal, checks, rewards, budgets, learning and the gate.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TypeVar

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings.runs import OUT
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.engine.environments import folder_of
from pytest_tfgrpo.engine.executors.cluster.executor_file import (
    ExecutorFile,
    Resources,
    load_executor_file,
)
from pytest_tfgrpo.engine.executors.cluster.node import NodeFacts, NodeWorker, installed
from pytest_tfgrpo.engine.executors.cluster.package import Package, write_package
from pytest_tfgrpo.engine.executors.cluster.ray_cluster import ClusterNode, RayCluster
from pytest_tfgrpo.engine.executors.cluster.worker_link import Worker
from pytest_tfgrpo.engine.executors.cluster.workers import ClusterWorkers, Outfit
from pytest_tfgrpo.engine.executors.local import run_in_order
from pytest_tfgrpo.engine.executors.remote_actor import RemoteActor, lost_calls
from pytest_tfgrpo.engine.executors.worker import WorkerSetup
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import Actor
from pytest_tfgrpo.runs.job import Job

T = TypeVar("T")
OWN = "pytest-tfgrpo"
SHOWN = 8
"""Differences of versions that are named; of more only the number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """A cluster that is ready for a run."""

    cluster: RayCluster
    outfit: Outfit
    file: ExecutorFile
    package: Package
    workers: Sequence[Worker] = ()
    """Those that are ready before the run."""


_checked: dict[str, Connection] = {}
"""Connections that wait for their run, by its id."""


class ClusterExecutor:
    """Has the calls of one actor made on the nodes of a cluster; everything else runs here."""

    def __init__(self, actor: Actor, setup: WorkerSetup, job: Job, *, address: str, places: int) -> None:
        """Connect; raises SettingError."""
        self.places = places
        self._actor = actor
        ready = _checked.pop(job.run_id, None)
        if ready is None or not ready.cluster.reopen():
            ready = connect(setup, job, address, places)
        self._connection = ready
        self._workers = ClusterWorkers(ready.cluster, ready.outfit, ready.workers)
        self._stand_in = RemoteActor(actor, self._workers)
        nodes = self._connection.cluster.nodes()
        self.notes: Sequence[str] = [about(nodes, self._connection.outfit)]
        """What to say when the run begins."""
        self.warnings: Sequence[str] = ()
        """What was lost with workers, once it is over."""

    async def run(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Call `work` on every item, as many at once as there are places."""
        await run_in_order(items, work, self.places)

    def place(self, actor: Actor) -> Actor:
        """Return the stand-in of the run's actor; the agents of fixtures are called here."""
        return self._stand_in if actor is self._actor else actor

    async def aclose(self) -> None:
        """End all workers; a cluster that the run has started ends too."""
        self.warnings = lost_calls(self._workers.lost)
        try:
            await self._workers.aclose()
        finally:
            self._connection.cluster.close()


def connect(setup: WorkerSetup, job: Job, address: str, places: int) -> Connection:
    """Return a cluster that has the files of the project of a job; raises SettingError."""
    file = load_executor_file(job.root)
    with tempfile.TemporaryDirectory(prefix="tfgrpo-package-") as folder:
        package = write_package(
            job.root,
            Path(folder),
            left_out=[job.root / (OUT.of(job.settings) or "out")],
            exclude=file.exclude,
            most=file.package_max,
            environ=os.environ,
        )
        cluster = RayCluster(address, package, NodeWorker)
    root = job.root.resolve()
    entries = [Path(entry).resolve() for entry in setup.search if entry]
    outfit = Outfit(
        setup=pickle.dumps(setup),
        run=job.run_id,
        paths=tuple(one.relative_to(root).as_posix() for one in entries if one.is_relative_to(root)),
        need=file.of(job.actor.name),
        most=places,
        suites={s.environment: folder_of(s, Path()).as_posix() for s in job.scenarios if s.environment},
    )
    return Connection(cluster=cluster, outfit=outfit, file=file, package=package)


def require_cluster(setup: WorkerSetup, job: Job, address: str, places: int) -> list[str]:
    """Return what differs on the nodes; raises SettingError where they cannot call an actor.

    The connection stays open for the run, and so do workers that it can use.
    """
    ready, is_fit = connect(setup, job, address, places), False
    try:
        _require_resources(ready, job.actor.name)
        workers, found = _probed(ready, job.actor.name, places)
        differences = differing(installed(), found)
        for run in [run for run, one in _checked.items() if not one.cluster.is_open]:
            del _checked[run]
        _checked[job.run_id] = replace(ready, workers=workers)
        is_fit = True
    finally:
        ready.cluster.close(keep=is_fit)
    return [*differences, *_left_here(ready.package)]


def _probed(ready: Connection, actor: str, places: int) -> tuple[list[Worker], list[NodeFacts]]:
    """Return workers that a run can use, and what nodes say; raises SettingError."""
    outfit = ready.outfit
    shared = not outfit.need.wanted
    probed = ready.cluster.probe(outfit.opening, places if shared else 1)
    found = [facts for _, _, facts in probed]
    workers = [Worker(link, node=node.id, places=places, host=facts.host) for node, link, facts in probed]
    for facts in found:
        if facts.problem:
            raise SettingError(
                f"executor: the node {facts.host!r} cannot open the actor {actor!r}: "
                f"{line(redact(facts.problem), 500)}; send with the project what it needs, or install it"
            )
    _require_environments(outfit.suites, found)
    if not shared:  # they take nothing of their nodes, as those of the run have to
        while workers:
            workers.pop().link.kill()
    return workers, found


def _require_environments(suites: Mapping[str, str], nodes: Sequence[NodeFacts]) -> None:
    """Raise SettingError where nodes lack environments, which names those of the first suite."""
    lacking = [(facts.host, suites[stamp]) for facts in nodes for stamp in facts.lacks]
    if lacking:
        suite = lacking[0][1]
        hosts = few(sorted({host for host, one in lacking if one == suite}), SHOWN)
        raise SettingError(
            f"executor: environments of the suite {suite!r} are not built on the cluster's nodes {hosts}; "
            f"run `tfgrpo harvest env {quote(suite)}` in a copy of the project there"
        )


def _require_resources(ready: Connection, actor: str) -> None:
    need = ready.outfit.need
    nodes = ready.cluster.nodes()
    if not any(need.fit(node.resources, 1) for node in nodes):
        raise SettingError(
            f"{ready.file.path}: a rollout of {actor!r} needs {need}, which no node of the cluster has; "
            f"they have {_have(nodes, need)}"
        )


def _have(nodes: Sequence[ClusterNode], need: Resources) -> str:
    rows = [
        f"{node.host!r} " + ", ".join(f"{node.resources.get(name, 0):g} {name}" for name in need.wanted)
        for node in nodes[:SHOWN]
    ]
    return "; ".join(rows)


def differing(own: Mapping[str, str], nodes: Sequence[NodeFacts]) -> list[str]:
    """Return a line for each set of packages that nodes have in other versions than the driver.

    Raises SettingError for another version of this package.
    """
    hosts: dict[str, list[str]] = {}
    for facts in nodes:
        if facts.packages.get(OWN) != own.get(OWN):
            raise SettingError(
                f"executor: the node {facts.host!r} has {OWN} {facts.packages.get(OWN)}, this machine "
                f"{own.get(OWN)}; install the same version"
            )
        rows = [
            f"{name} {facts.packages.get(name, 'missing')} (here {version})"
            for name, version in sorted(own.items())
            if facts.packages.get(name) != version
        ]
        if rows:
            more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
            hosts.setdefault(", ".join(rows[:SHOWN]) + more, []).append(facts.host)
    return [
        f"other versions on {', '.join(sorted(set(names))[:SHOWN])}: {rows}" for rows, names in hosts.items()
    ]


def _left_here(package: Package) -> list[str]:
    if not package.secrets:
        return []
    count = plural(len(package.secrets), "file")
    names = ", ".join(package.secrets[:SHOWN]) + (", ..." if len(package.secrets) > SHOWN else "")
    return [f"{count} stayed here, because their names look like secrets: {names}"]


def about(nodes: Sequence[ClusterNode], outfit: Outfit) -> str:
    """Return a line on the nodes of a cluster and how many rollouts they take at once."""
    slots = min(outfit.most, sum(outfit.need.fit(node.resources, outfit.most) for node in nodes))
    hosts = sorted({node.host for node in nodes})
    names = ", ".join(hosts[:SHOWN]) + (", ..." if len(hosts) > SHOWN else "")
    each = f", {outfit.need} each" if outfit.need.wanted else ""
    return f"ray: {plural(len(nodes), 'node')} ({names}), {plural(slots, 'slot')}{each}"
