"""The run writer: writes the files of a run as it goes; without a folder it writes nothing.

The journal comes first; ``metrics.jsonl``, ``per-epoch.json``, ``library.json`` and the lesson store
follow from it and are made again from the start when a run is resumed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import EXPERIENCES, JOURNAL, LIBRARY, METRICS, PER_EPOCH
from pytest_tfgrpo.core.lessons import Experience, Revision, Tombstone
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import (
    CheckerResult,
    Failure,
    Group,
    JudgeResult,
    ModelCall,
    PhaseResult,
    Rollout,
    Run,
    Status,
    header_fields,
)
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.learning.library.library import save_library
from pytest_tfgrpo.learning.library.registry import open_store
from pytest_tfgrpo.metrics.epochs import MadeRows, metric_lines, per_epoch
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal import SCHEMA, Journal
from pytest_tfgrpo.runs.journal.stored_groups import GroupStore
from pytest_tfgrpo.runs.output_folder import make_output
from pytest_tfgrpo.suite.packs import packs_in_use

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.library.experience_store import ExperienceStore

COMMIT_EVERY_S = 0.02


class RunWriter:
    """Keeps the files of one run; used from the engine's thread only.

    Every method raises JournalError when the disk refuses, which ends the run with what was committed intact.
    """

    def __init__(self, folder: Path | None, job: Job) -> None:
        """Open the files in `folder` (``out/<task_id>/runs/<run_id>``); None records nothing."""
        self._folder = folder
        self._job = job
        self._journal: Journal | None = None
        self._metrics: TextIO | None = None
        self._store: ExperienceStore | None = None
        self._rows: MadeRows = {}
        self.group_store: GroupStore = job.resumed.store or GroupStore(folder or job.temporary)
        """Where scored groups go."""
        if folder is None:
            return
        make_output(folder.parent.parent.parent)
        known = job.resumed.path == folder / JOURNAL
        lines, end = (job.resumed.lines, job.resumed.end) if known else (0, 0)
        self._journal = Journal(folder / JOURNAL, lines, end)
        try:
            self._metrics = (folder / METRICS).open("w", encoding="utf-8")
        except OSError as error:
            self._journal.close()
            raise JournalError(f"cannot write {folder / METRICS}: {error}") from error
        if self._journal.events:
            self._journal.append("resume", {"versions": dict(job.versions)})
        else:
            self._journal.append_long("run", header(job), "scenarios", map(to_wire, job.scenarios))

    def rollout(self, rollout: Rollout) -> Rollout:
        """Write a finished rollout; returns it, or what it counts as when JSON cannot hold it."""
        return self._rollout("rollout", rollout)

    def abandoned(self, rollout: Rollout) -> Rollout:
        """Write an attempt that a budget or an interrupt ended: not a result, but it cost money."""
        return self._rollout("abandoned", rollout)

    def _rollout(self, event: str, rollout: Rollout) -> Rollout:
        if self._journal is None:
            return rollout
        try:
            self._journal.append(event, to_wire(rollout))
        except (TypeError, ValueError, RecursionError) as error:
            rollout = _garbled(rollout, error)
            self._journal.append(event, to_wire(rollout))
        return rollout

    def call(self, call: ModelCall) -> None:
        """Write a model call that is no part of a rollout, answered or not."""
        if self._journal is not None:
            self._journal.append("call", to_wire(call))

    def opinion(self, rollout_id: str, opinion: JudgeResult) -> None:
        """Write the judge's result for a rollout."""
        if self._journal is not None:
            self._journal.append("opinion", {"rollout_id": rollout_id, **to_wire(opinion)})

    def checker_result(self, rollout_id: str, checker_result: CheckerResult) -> None:
        """Write what a marked test function found."""
        if self._journal is not None:
            self._journal.append("judgement", {"rollout_id": rollout_id, **to_wire(checker_result)})

    def world(self, rollout_id: str, scenario_id: str, *, up: bool) -> None:
        """Write that the world of a rollout is going to be set up, or that it was torn down."""
        if self._journal is not None:
            value = {"rollout_id": rollout_id, "scenario_id": scenario_id, "up": up}
            self._journal.append("world", value)

    def group(self, group: Group, first: int = 0) -> None:
        """Write the scores of a group, and its lines of ``metrics.jsonl`` from rollout `first` on."""
        if self._journal is None:
            return
        resumed = self._job.resumed
        on_file = len(resumed.members[group.group_id]) if group.group_id in resumed.groups else 0
        if on_file != len(group.rollouts):
            value = to_wire(replace(group, rollouts=()))
            value["rollouts"] = [[r.rollout_id, r.status] for r in group.rollouts]
            self._journal.append("group", value)
        self.metrics(group, first)

    def metrics(self, group: Group, first: int = 0) -> None:
        """Write the lines of ``metrics.jsonl`` for a group, scored or not, from rollout `first` on."""
        if self._metrics is None:
            return
        try:
            for line in metric_lines(replace(group, rollouts=group.rollouts[first:])):
                self._metrics.write(json.dumps(line) + "\n")
        except OSError as error:
            raise JournalError(f"cannot write {self._metrics.name}: {error}") from error

    def settled(self, epoch: int) -> None:
        """Write that the gate is decided, so that a sweep starts nothing new."""
        if self._journal is not None and epoch not in self._job.resumed.settled:
            self._journal.append("settled", {"epoch": epoch})

    def candidate(self, candidate: Revision) -> None:
        """Write what an epoch would do to the library, before it is tried on the dev split."""
        if self._journal is not None and candidate.epoch not in self._job.resumed.candidates:
            self._journal.append("candidate", to_wire(candidate))

    def revision(self, revision: Revision) -> list[str]:
        """Write what an epoch did to the library: to the store, the journal, and the library file.

        Returns complaints about the store's file, when it is opened (decision 17).
        """
        if self._folder is None or self._journal is None:
            return []
        task_folder = self._folder.parent.parent
        complaints: list[str] = []
        if self._store is None:
            self._store = open_store(task_folder / EXPERIENCES)
            complaints = self._store.complaints
        self._store.append(_store_records(revision, self._job.run_id))
        if revision.epoch not in self._job.resumed.revisions:
            self._journal.append("revision", to_wire(revision))
        save_library(task_folder / LIBRARY, revision.library)
        return complaints

    def phase(self, result: PhaseResult, run: Run) -> None:
        """Write the end of a phase, and rewrite ``per-epoch.json`` from `run`, the run so far."""
        if self._folder is None or self._journal is None or self._metrics is None:
            return
        if result.phase.epoch not in self._job.resumed.complete_phases:
            value = to_wire(replace(result, groups=(), revision=None, calls=(), loose=(), dev=(), shared=()))
            self._journal.append("phase", value)
        try:
            self._metrics.flush()
        except OSError as error:
            raise JournalError(f"cannot write {self._metrics.name}: {error}") from error
        write_json(self._folder / PER_EPOCH, per_epoch(run, self._rows))

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Commit often, beside what goes on."""
        committer = asyncio.create_task(self._commit_often())
        try:
            yield
        finally:
            committer.cancel()

    async def _commit_often(self) -> None:
        with suppress(JournalError):  # the commit at the end of the phase raises it
            while True:
                await asyncio.sleep(COMMIT_EVERY_S)
                await self.commit()

    async def commit(self) -> None:
        """Return once all that was written to the journal is on disk."""
        if self._journal is not None:
            await self._journal.commit()

    def finish(self, run: Run) -> None:
        """Write the end of the run and close the journal."""
        if self._journal is None:
            return
        value = {"status": run.status, "reason": run.reason, "finished_at": run.finished_at}
        if run.endpoints:
            value["endpoints"] = to_wire(run.endpoints)
        if run.prices:
            value["prices"] = to_wire(run.prices)
        self._journal.append("finish", value | {"warnings": list(run.warnings)})
        self.close()

    def close(self) -> None:
        """Close the files, with all that was written on disk."""
        try:
            if self._store is not None:
                self._store.close()
            if self._metrics is not None:
                self._metrics.close()
        except OSError as error:
            raise JournalError(f"cannot write {METRICS}: {error}") from error
        finally:
            if self._journal is not None:
                self._journal.close()


def header(job: Job) -> dict[str, Json]:
    """Return the first event of a journal: all that the rest of the run follows from, but its scenarios."""
    return {
        "schema": SCHEMA,
        **to_wire(header_fields(job) | {"scenarios": ()}),
        "phases": to_wire(job.phases),
        "library": to_wire(job.library),
        "packs": to_wire(packs_in_use(job.packs, (s.domain for s in job.scenarios))),
        **({} if job.reference is None else {"reference": to_wire(job.reference)}),
    }


def _garbled(rollout: Rollout, error: Exception) -> Rollout:
    failure = Failure(code="garbage", message=f"the trajectory is not JSON: {error}")
    lost = tuple(replace(check, credit=0.0, reason="not reached: garbage") for check in rollout.checks)
    status: Status = "cancelled" if rollout.status == "cancelled" else "failed"
    return replace(rollout, status=status, failure=failure, frames=(), extra={}, checks=lost)


def _store_records(revision: Revision, run_id: str) -> list[Experience | Tombstone]:
    records: list[Experience | Tombstone] = []
    for operation in revision.applied:
        if operation.experience is not None:
            records.append(operation.experience)
        if operation.kind == "remove":
            records.extend(
                Tombstone(
                    id=target,
                    run_id=run_id,
                    epoch=revision.epoch,
                    reason=operation.reason,
                    created_at=utc_now(),
                )
                for target in operation.targets
            )
    return records
