"""The harvest: candidates of a history, one after another, become proven scenarios of a suite.

What is proven is written at once: first the proof, then the archives, the scenario last, then the row. A
harvest that was killed goes on after what is there, and proves nothing twice.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.errors import BudgetError, SnapshotError, StoreError
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.harvest.fixes import FixCandidate, HarvestRow, HarvestStatus, HistoryChange
from pytest_tfgrpo.harvest.history.candidates import CandidateRules, candidates, few_lines
from pytest_tfgrpo.harvest.history.changes import changes, merged_changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.job.plan import HarvestedFix, HarvestPlan, HarvestStep, HarvestTools
from pytest_tfgrpo.harvest.job.progress import (
    HarvestEstimate,
    HarvestReading,
    WorkerProgress,
    estimate_from_round,
    estimate_from_rows,
)
from pytest_tfgrpo.harvest.job.worker import HarvestWorker
from pytest_tfgrpo.harvest.locked_folder import WORK, locked_folder
from pytest_tfgrpo.harvest.suite.harvest_log import HarvestLog, read_log_of
from pytest_tfgrpo.harvest.suite.suite_files import lacks_archives, resplit
from pytest_tfgrpo.sandbox.programs.cancelling import LOOK_S, Cancelled, cancelled_by

AGAIN = (HarvestStatus.VALIDATION_FAILED, HarvestStatus.NEEDS_MANUAL, HarvestStatus.REFUSED)
"""What ``retry`` does again."""
WatchHarvest = Callable[[HarvestReading], None]


def harvest(
    plan: HarvestPlan, tools: HarvestTools, watch: WatchHarvest | None = None
) -> Iterator[HarvestStep]:
    """Harvest what is new of a range; yields each change when it is done.

    `watch` is called about twice a second while candidates run. Raises SettingError on a bad range,
    repository or locked suite, StoreError where the suite cannot be written, and in the end BudgetError where
    `budget_s` has passed and something is left, SnapshotError where the history breaks off, as in a shallow
    clone.
    """
    deadline = math.inf if plan.budget_s is None else time.monotonic() + plan.budget_s
    with GitObjects(plan.repository) as objects:
        found, broken = screened(plan, objects)
    done = total = 0
    with HarvestLog(plan.suite) as log:
        new = [_as_known(one, log.rows) for one in found if _is_new(plan, one, log.rows)]
        rows = [one for one in new if isinstance(one, HarvestRow)]
        todo = [one for one in new if isinstance(one, FixCandidate)]
        total, earlier = len(new), list(log.rows.values())
        log.append(rows)
        for done, row in enumerate(rows, 1):
            yield HarvestStep(row=row, done=done, total=total)
        watched = _Watched(watch, total, estimate_from_rows(earlier, len(todo), plan.jobs))
        for step in _all(plan, tools, log, todo, watched, deadline):
            done = step.done
            yield step
        resplit(plan.suite, log.rows.values())
    if broken is not None:
        raise broken
    if done < total:
        raise BudgetError(_stopped(plan, done - len(rows), total - done))


def _stopped(plan: HarvestPlan, done: int, left: int) -> str:
    """Return the message of a harvest that stopped with candidates left."""
    of = plural(left, "candidate", "is", "are")
    if not done:
        return f"stopped after {plan.budget_s:g} s, before one was finished: {of} left; set --budget-s higher"
    return f"stopped after {plan.budget_s:g} s: {of} left; run the same command again for the rest"


def preview(plan: HarvestPlan) -> Iterator[FixCandidate | HarvestRow]:
    """Yield what a harvest would do, and write nothing; raises SettingError, SnapshotError as `harvest`."""
    with GitObjects(plan.repository) as objects:
        known = read_log_of(plan.suite)
        found, broken = screened(plan, objects)
        for one in found:
            if _is_new(plan, one, known):
                one = _as_known(one, known)
                yield few_lines(objects, one) if isinstance(one, FixCandidate) else one
    if broken is not None:
        raise broken


def screened(
    plan: HarvestPlan, objects: GitObjects
) -> tuple[list[FixCandidate | HarvestRow], SnapshotError | None]:
    """Return the candidates of a plan's range and the rows of other changes, the oldest first.

    Beside them why the history breaks off before them, if it does.
    """
    broken: list[SnapshotError] = []

    def whole(each: Iterable[HistoryChange]) -> Iterator[HistoryChange]:
        try:
            for change in each:
                if change.base and not change.base_tree:
                    broken.append(_broken_off(objects, change))
                yield change
        except SnapshotError as error:
            broken.append(error)

    commits = range_of(objects, plan.commits)
    found = changes(objects, commits, each_commit=plan.each_commit, paths=plan.paths, limit=plan.limit)
    left_out = (*plan.exclude, *own_folder(plan, objects))
    rules = CandidateRules(tests=plan.tests, protected=plan.protected, left_out=left_out)
    each = candidates(whole(found), rules, lambda merge: merged_changes(objects, merge, plan.paths))
    return list(each)[::-1], broken[0] if broken else None


def _broken_off(objects: GitObjects, change: HistoryChange) -> SnapshotError:
    hint = ", `git fetch --unshallow` completes a shallow clone" if objects.place.is_shallow else ""
    return SnapshotError(
        f"the history in {objects.where!r} breaks off before {change.commit[:12]}: {change.missing} is "
        f"missing{hint}; or name a shorter range"
    )


def holds_changes(plan: HarvestPlan) -> bool:
    """Return whether the range of a plan holds any change; raises SettingError, SnapshotError."""
    with GitObjects(plan.repository) as objects:
        commits = range_of(objects, plan.commits)
        found = changes(objects, commits, each_commit=plan.each_commit, paths=plan.paths, limit=1)
        return any(True for _ in found)


def own_folder(plan: HarvestPlan, objects: GitObjects) -> tuple[str, ...]:
    """Return the suite's folder as the repository calls it, where it lies there."""
    root, suite = Path(objects.where).resolve(), plan.suite.resolve()
    if not suite.is_relative_to(root) or suite == root:
        return ()
    return (suite.relative_to(root).as_posix(),)


def _is_new(plan: HarvestPlan, one: FixCandidate | HarvestRow, known: dict[str, HarvestRow]) -> bool:
    """Return whether a change is to be done: for the first time, again, or as archives of it are gone."""
    row = known.get(one.commit if isinstance(one, HarvestRow) else one.change.commit)
    if row is None or (plan.retry and row.status in AGAIN):
        return True
    validated = row.status is HarvestStatus.VALIDATED and isinstance(one, FixCandidate)
    return validated and lacks_archives(plan.suite, row.id)


def _as_known(one: FixCandidate | HarvestRow, known: dict[str, HarvestRow]) -> FixCandidate | HarvestRow:
    """Return a change under its id of an earlier harvest."""
    row = known.get(one.commit if isinstance(one, HarvestRow) else one.change.commit)
    return one if row is None else replace(one, id=row.id)


def _all(
    plan: HarvestPlan,
    tools: HarvestTools,
    log: HarvestLog,
    todo: list[FixCandidate],
    watched: _Watched,
    deadline: float,
) -> Iterator[HarvestStep]:
    """Validate candidates until the deadline, as many at once as the plan says, and keep each row at once."""
    if not todo:
        return
    spent_s, before = 0.0, watched.total - len(todo)
    told: set[str] = set()
    with locked_folder(WORK) as folder, _Workers(plan, tools, folder) as workers:
        numbered = [(before + n, candidate) for n, candidate in enumerate(todo, 1)]
        watched.progress, count = workers.progress, 0
        for found in workers.each(numbered, deadline):
            if found is None:
                watched.look(len(todo) - count)
                continue
            count += 1
            spent_s += found.row.elapsed_s
            log.append([found.row])
            left = len(todo) - count
            yield HarvestStep(
                row=found.row,
                done=before + count,
                total=watched.total,
                left_s=spent_s / count * left / min(plan.jobs, left) if left else None,
                notes=tuple(note for note in found.notes if note not in told),
            )
            told.update(found.notes)


class _Watched:
    """What is shown of a harvest to whom watches it."""

    def __init__(self, watch: WatchHarvest | None, total: int, estimate: HarvestEstimate | None) -> None:
        """`estimate` is what is known before the first candidate."""
        self._watch, self.total, self._estimate = watch, total, estimate
        self.progress: Sequence[WorkerProgress] = ()

    def look(self, left: int) -> None:
        """Show what the workers do, while `left` candidates are not done."""
        if self._watch is None:
            return
        self._estimate = self._estimate or estimate_from_round(self.progress, left)
        running = [worker.running for worker in self.progress]
        found = sorted((one for one in running if one is not None), key=lambda one: one.number)
        self._watch(
            HarvestReading(
                at_s=time.monotonic(), total=self.total, running=tuple(found), estimate=self._estimate
            )
        )


class _Workers:
    """Threads that each have a folder and a connection to the repository; processes do most of the work."""

    def __init__(self, plan: HarvestPlan, tools: HarvestTools, folder: Path) -> None:
        self._plan, self._tools, self._folder = plan, tools, folder
        self._stop = threading.Event()
        self.progress = [WorkerProgress() for _ in range(plan.jobs)]
        self._free: list[tuple[HarvestWorker, WorkerProgress]] = []
        self._pool = ThreadPoolExecutor(plan.jobs, thread_name_prefix="tfgrpo-harvest")

    def __enter__(self) -> _Workers:
        with GitObjects(self._plan.repository) as objects:
            left_out = own_folder(self._plan, objects)
        for n, progress in enumerate(self.progress):
            folder = self._folder / f"tree-{n}"
            worker = HarvestWorker(self._plan, self._tools, folder, left_out, progress)
            self._free.append((worker, progress))
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        for worker, _progress in self._free:
            worker.close()

    def each(self, todo: list[tuple[int, FixCandidate]], deadline: float) -> Iterator[HarvestedFix | None]:
        """Yield what comes of each candidate, as it ends, and None now and then; raises StoreError.

        After the deadline no candidate is begun, and those that run are ended, of which nothing is kept.
        """
        waiting, running = iter(todo), set[Future[HarvestedFix]]()
        while True:
            if time.monotonic() >= deadline:
                self._stop.set()
            while (
                not self._stop.is_set()
                and len(running) < self._plan.jobs
                and (one := next(waiting, None)) is not None
            ):
                running.add(self._pool.submit(self._one, *one))
            if not running:
                return
            left = max(0.0, deadline - time.monotonic()) if not self._stop.is_set() else LOOK_S
            ended, running = wait(running, timeout=min(LOOK_S, left), return_when=FIRST_COMPLETED)
            if not ended:
                yield None
            for future in ended:
                if not isinstance(future.exception(), Cancelled):
                    yield future.result()

    def _one(self, number: int, candidate: FixCandidate) -> HarvestedFix:
        worker, progress = self._free.pop()
        progress.begin(number, candidate.id)
        try:
            with cancelled_by(self._stop.is_set):
                return worker.harvest(candidate)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"cannot continue with {candidate.id}: {error}; make room and harvest again"
            ) from error
        finally:
            progress.end()
            self._free.append((worker, progress))
