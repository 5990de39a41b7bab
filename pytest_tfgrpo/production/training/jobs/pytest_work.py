"""A job that learns without weights: ``pytest --tfgrpo`` in the project's folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.fitting import ValueScrubber
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.process import (
    LOG,
    JobProcess,
    StartProcess,
    find_process,
    is_left,
    start_or_find,
)
from pytest_tfgrpo.production.training.jobs.run_end import (
    end_of,
    failure,
    read_report,
    run_outcome,
    unfinished,
)
from pytest_tfgrpo.production.training.jobs.run_progress import RunProgress, newest_run, parts_of
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.work import EVIDENCE_FILE

MOST_DEATHS = 3
"""Processes of a job that a signal may end before it fails."""
OUT = "out"


@dataclass(frozen=True, kw_only=True, slots=True)
class PytestPlan:
    """How pytest is called."""

    project: Path
    args: Sequence[str] = ()
    library: Path | None = None
    """File of the library that the run starts from; None: that of the project's settings."""
    budget_usd: float = 0.0
    """0: pytest refuses an agent or model that costs money."""


class PytestWork:
    """A run of a job's own, which is resumed where it was left; see `JobWork`."""

    def __init__(
        self,
        job: TrainingJob,
        folder: Path,
        plan: PytestPlan,
        start: StartProcess,
        scrubber: ValueScrubber,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin, or go on: with a process that still lives, or with what its run left. Raises OSError."""
        self._job, self._folder, self._plan = job, folder.absolute(), plan
        self._start, self._scrubber, self._clock = start, scrubber, clock
        self._deaths = 0
        self._stopped = False
        self._progress: RunProgress | None = None
        self._since = (clock(), 0)
        """When this process first looked, and how many rollouts were made then."""
        self._process: JobProcess | None = find_process(self._folder)
        if self._process is None and self._report() is None:
            self._process = self._begin()

    def look(self) -> JobOutcome | None:
        """See `JobWork`."""
        if self._process is not None and not self._process.ended():
            self._read_journal()
            return None
        outcome = self._conclude(None if self._process is None else self._process.code)
        if outcome is None:
            self._process = self._begin()
        return outcome

    def parts(self) -> Mapping[str, Json]:
        """See `JobWork`."""
        return {} if self._progress is None else parts_of(self._progress, self._per_s())

    def interrupt(self) -> None:
        """See `JobWork`."""
        self._stopped = True
        if self._process is not None:
            self._process.interrupt()

    def kill(self) -> None:
        """See `JobWork`."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def leave(self) -> bool:
        """See `JobWork`."""
        return is_left(self._process)

    def _conclude(self, code: int | None) -> JobOutcome | None:
        """Return how it ended; None: it is to go on."""
        self._read_journal()
        report = self._report()
        if report is not None and report["status"] == "complete":
            return self._with_progress(run_outcome(self._run(), report))
        if self._stopped:
            return self._with_progress(JobOutcome(trigger="cancel", parts={}))
        if code is None:  # nobody knows why, so it goes on
            return None
        output = self._scrubber.text(end_of(self._folder / LOG))
        if code < 0:
            self._deaths += 1
            return None if self._deaths < MOST_DEATHS else self._with_progress(failure(code, output, ""))
        if report is not None and code < 3:
            cancelled = report["status"] == "cancelled"
            ended = JobOutcome(trigger="cancel", parts={}) if cancelled else unfinished(report, output)
            return self._with_progress(ended)
        return self._with_progress(failure(code, output, EVIDENCE_FILE))

    def _with_progress(self, outcome: JobOutcome) -> JobOutcome:
        parts = {**self.parts(), **outcome.parts}
        if outcome.trigger == "finish" and "progress" in parts:
            parts["progress"] = {**parts["progress"], "eta_seconds": 0, "percent_complete": 100.0}
        return JobOutcome(trigger=outcome.trigger, parts=parts)

    def _begin(self) -> JobProcess:
        out = self._folder / OUT
        out.mkdir(exist_ok=True)
        flags = [
            f"--tfgrpo-out={out}",
            f"--tfgrpo-evidence={self._folder / EVIDENCE_FILE}",
            "--tfgrpo-untested=hold",
            f"--tfgrpo-budget-usd={self._plan.budget_usd:g}",
        ]
        if self._plan.library is not None:
            flags.append(f"--tfgrpo-library={self._plan.library}")
        if (run := newest_run(out)) is not None:
            flags.append(f"--tfgrpo-resume={run.name}")
        if self._job.request.epochs is not None:
            flags.append(f"--tfgrpo-epochs={self._job.request.epochs}")
        command = [sys.executable, "-m", "pytest", "--tfgrpo", "-p", "no:cacheprovider", *flags]
        whole = [*command, *self._plan.args]
        return start_or_find(self._start, whole, self._folder, cwd=self._plan.project)

    def _run(self) -> Path:
        run = newest_run(self._folder / OUT)
        assert run is not None, "a report has a run"
        return run

    def _report(self) -> Mapping[str, Json] | None:
        run = newest_run(self._folder / OUT)
        return None if run is None else read_report(run)

    def _read_journal(self) -> None:
        if self._progress is None:
            run = newest_run(self._folder / OUT)
            if run is None:
                return
            self._progress = RunProgress(run)
            self._progress.look()
            self._since = (self._clock(), self._progress.steps)
        self._progress.look()

    def _per_s(self) -> float | None:
        if self._progress is None:
            return None
        began, steps = self._since
        spent = self._clock() - began
        return (self._progress.steps - steps) / spent if spent > 0 else None
