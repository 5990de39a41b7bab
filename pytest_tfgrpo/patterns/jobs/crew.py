"""The workers of one process: threads that work a queue until nothing is left to take."""

from __future__ import annotations

import queue as queues
import threading
from collections.abc import Generator
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.patterns.jobs.leases import LeaseWatch
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import RENEWED_S, TTL_S, JobQueue
from pytest_tfgrpo.patterns.jobs.worker import LearningWorker, WorkedJob, WorkTools, own_holders
from pytest_tfgrpo.sandbox.programs.cancelling import LOOK_S, Cancelled


@dataclass(frozen=True, kw_only=True, slots=True)
class CrewPlan:
    """How many jobs are worked, and by how many."""

    workers: int = 1
    once: bool = False
    """One job for each worker at most."""
    ttl_s: float = TTL_S
    renewed_s: float = RENEWED_S


def work_queue(folder: Path, tools: WorkTools, plan: CrewPlan) -> Generator[WorkedJob, None, None]:
    """Work the jobs of a queue; yields each when its worker is done with it.

    It ends when no job is left that a worker could take, nor one whose worker may be gone. Who closes the
    iterator, or interrupts it, has each job put back into the queue. Raises StoreError where the queue fails.
    """
    stop, found = threading.Event(), queues.SimpleQueue[WorkedJob | BaseException | None]()
    watch = LeaseWatch(ttl_s=plan.ttl_s)
    threads = [
        threading.Thread(
            target=_work, args=(folder, tools, plan, watch, stop, found), name=f"tfgrpo-learn-{n}"
        )
        for n in range(plan.workers)
    ]
    for thread in threads:
        thread.start()
    try:
        left = len(threads)
        while left:
            one = found.get()
            if isinstance(one, BaseException):
                raise one
            if one is None:
                left -= 1
            else:
                yield one
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _work(
    folder: Path,
    tools: WorkTools,
    plan: CrewPlan,
    watch: LeaseWatch,
    stop: threading.Event,
    found: queues.SimpleQueue[WorkedJob | BaseException | None],
) -> None:
    """Work jobs in one thread; puts each that is done, and None or an error in the end."""
    try:
        with JobQueue(folder) as queue:
            worker = LearningWorker(
                queue, tools, ttl_s=plan.ttl_s, renewed_s=plan.renewed_s, stopped=stop.is_set
            )
            while not stop.is_set():
                for job in watch.look(queue):
                    if job.status is not LearningStatus.QUEUED:
                        found.put(WorkedJob(manifest=job.manifest, elapsed_s=0.0, lost=True))
                done = worker.work()
                if done is not None:
                    found.put(done)
                    if plan.once:
                        break
                elif not watch.is_unsure(own_holders()):
                    break
                else:
                    stop.wait(min(LOOK_S, plan.ttl_s / 4))
    except Cancelled:
        pass
    except BaseException as error:  # noqa: BLE001 - it is raised where the queue is worked
        found.put(error)
    found.put(None)
