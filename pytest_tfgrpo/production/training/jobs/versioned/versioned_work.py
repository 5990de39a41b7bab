"""Work of a job whose result becomes a policy version, validated and kept, before the job ends."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from pytest_tfgrpo.core.errors import JournalError, StoreError
from pytest_tfgrpo.core.files import JOURNAL, REPORT_HTML, REPORT_JSON
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.learning.attribution.untested import held_back
from pytest_tfgrpo.learning.library.library import save_library, without
from pytest_tfgrpo.production.training.jobs.process import LOG, StartProcess, find_process
from pytest_tfgrpo.production.training.jobs.run_end import end_of, read_report
from pytest_tfgrpo.production.training.jobs.run_progress import RunProgress, newest_run
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.work import EVIDENCE_FILE, JobWork
from pytest_tfgrpo.production.training.versions.curve import curve_svg
from pytest_tfgrpo.production.training.versions.policies import CURVES, LOGS, Policies
from pytest_tfgrpo.production.training.versions.safety_run import (
    SafetyPlaces,
    safe,
    safety_pages,
    safety_reasons,
    try_suites,
)
from pytest_tfgrpo.production.training.versions.validation import Validation, validate
from pytest_tfgrpo.runs.evidence_epoch import PREFIX
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.suite.evidence_file import EvidenceFile

OUT, SAFETY = "out", "safety"
PARENT, START, LEARNED = "parent", "start.json", "learned.json"
"""Files of a job: the version that was deployed when it began, its library, and the one that was learned."""
IN_PROJECT = ".tfgrpo-safety"
"""Folder of the project that holds the packaged safety suites while they are tried."""
_LOOK_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionPlan:
    """How what a job learned becomes a version."""

    policies: Policies
    project: Path
    safety: Sequence[str]
    """Packaged suites, and folders of the project."""
    args: Sequence[str] = ()
    """Further arguments of pytest."""
    budget_usd: float = 0.0
    """Of the job; safety suites may spend what its run has left."""


def starting_library(policies: Policies, folder: Path) -> Path:
    """Return the library file that a job starts from: that of the version deployed when it began.

    Raises StoreError, BusError and OSError.
    """
    file = folder / PARENT
    if not file.exists():
        file.write_text(policies.deployed(), "utf-8")
    library = folder / START
    if not library.exists():
        policies.save_library(file.read_text("utf-8"), library)
    return library


class VersionedWork:
    """A run, then its version; see `JobWork`."""

    def __init__(
        self, work: JobWork, job_id: str, folder: Path, plan: VersionPlan, start: StartProcess
    ) -> None:
        self._work, self._job_id, self._plan, self._start = work, job_id, plan, start
        self._folder = folder.absolute()  # pytest runs in the project's
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tfgrpo-version")
        self._keeping: Future[JobOutcome] | None = None
        self._run_usd = 0.0
        """What the run cost."""

    def look(self) -> JobOutcome | None:
        """See `JobWork`."""
        if self._keeping is None:
            outcome = self._work.look()
            if outcome is None or outcome.trigger != "finish":
                return outcome
            self._keeping = self._pool.submit(self._keep, outcome)
        if not self._keeping.done():
            return None
        self._pool.shutdown(wait=False)
        return self._keeping.result()

    def parts(self) -> Mapping[str, Json]:
        """See `JobWork`."""
        return self._billed(self._work.parts())

    def _billed(self, parts: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return parts of a status whose bill has what the safety suites cost."""
        spent, usage = self._safety_usd(), parts.get("resource_usage", {})
        if not spent:
            return parts
        whole = round((usage.get("cost_usd") or 0.0) + spent, 6)
        return {**parts, "resource_usage": {**usage, "cost_usd": whole}}

    def _safety_usd(self) -> float:
        """Return what the runs of safety suites cost, as far as their journals can be read."""
        total = 0.0
        for journal in (self._folder / SAFETY).glob(f"*/*/runs/*/{JOURNAL}"):
            run = RunProgress(journal.parent)
            with suppress(JournalError):
                run.look()
            total += run.cost_usd
        return total

    def interrupt(self) -> None:
        """See `JobWork`."""
        self._stop.set()
        self._work.interrupt()

    def kill(self) -> None:
        """See `JobWork`."""
        self._stop.set()
        self._work.kill()
        self._pool.shutdown()

    def _keep(self, outcome: JobOutcome) -> JobOutcome:
        """Return the outcome with the version that the run became; raises TfgrpoError and OSError."""
        policies = self._plan.policies
        folder = newest_run(self._folder / OUT)
        report = None if folder is None else read_report(folder)
        if folder is None or report is None:
            raise StoreError(f"{self._folder / OUT} has no complete run; ask for another job")
        run, parent = _tested(load_run(folder)), (self._folder / PARENT).read_text("utf-8")
        policies.add_first(run)
        self._run_usd = (outcome.parts.get("resource_usage") or {}).get("cost_usd") or 0.0
        if run.library.hash == run.library_start.hash:
            return _with(outcome, {"final_checkpoint": policies.place(parent)}, {"policy_version": parent})
        validation = self._validated(run, report)
        outcome = JobOutcome(trigger=outcome.trigger, parts=self._billed(outcome.parts))
        if validation is None:
            bill = {name: part for name, part in outcome.parts.items() if name == "resource_usage"}
            return JobOutcome(trigger="cancel", parts=bill)
        evidence = self._folder / EVIDENCE_FILE
        version = policies.add(
            run,
            job=self._job_id,
            parent=parent,
            validation=validation,
            dataset=to_wire(EvidenceFile(evidence).header) if evidence.exists() else {},
            attempts=_attempts(run),
        )
        self._log(folder, report)
        places = {
            "final_checkpoint": policies.place(version.name),
            "tensorboard_logs": policies.files.place(f"{LOGS}/{self._job_id}"),
            "training_curves": policies.files.place(f"{CURVES}/{self._job_id}/curve.svg"),
            "model_card": f"{policies.place(version.name)}/README.md",
        }
        metadata = {"policy_version": version.name, "validation": to_wire(validation)}
        return _with(outcome, places, metadata)

    def _validated(self, run: Run, report: Mapping[str, Json]) -> Validation | None:
        """Return what a run and the safety suites say of its library; None where the job is to end."""
        plan, project = self._plan, self._plan.project.absolute()
        files = project / IN_PROJECT
        learned = self._folder / LEARNED
        save_library(learned, run.library)
        findings = try_suites(
            plan.safety,
            places=SafetyPlaces(
                project=project,
                files=files / self._job_id,
                out=self._folder / SAFETY,
                library=learned,
            ),
            domains=sorted({scenario.domain for scenario in run.scenarios}),
            seed=int(self._job_id[:8], 16),
            judge="judge" in run.identities,
            arguments=plan.args,
            call=self._call,
        )
        with suppress(OSError):
            rmtree(files / self._job_id)
            files.rmdir()
        if self._stop.is_set():
            return None
        return validate(report, safe=safe(findings), safety=safety_reasons(findings))

    def _log(self, run: Path, report: Mapping[str, Json]) -> None:
        files = self._plan.policies.files
        for name in (JOURNAL, REPORT_JSON, REPORT_HTML):
            if (run / name).exists():
                files.write(f"{LOGS}/{self._job_id}/{name}", (run / name).read_bytes())
        for name, page in safety_pages(self._folder / SAFETY).items():
            files.write(f"{LOGS}/{self._job_id}/{name}", page.read_bytes())
        files.write(f"{CURVES}/{self._job_id}/curve.svg", curve_svg(report).encode())

    def _call(self, command: Sequence[str]) -> str | None:
        """Run a command of pytest in the project; returns the end of its output, None if it was killed."""
        folder = self._folder / SAFETY
        folder.mkdir(exist_ok=True)
        process = find_process(folder)  # of a service that died meanwhile
        if process is None:
            (folder / LOG).unlink(missing_ok=True)
            left = max(0.0, self._plan.budget_usd - self._run_usd - self._safety_usd())
            process = self._start([*command, f"--tfgrpo-budget-usd={left:g}"], folder, cwd=self._plan.project)
        while not process.ended():
            if self._stop.wait(_LOOK_S):
                process.kill()
        killed = process.code is None or process.code < 0
        return None if killed and not self._stop.is_set() else end_of(folder / LOG)


def _tested(run: Run) -> Run:
    """Return a run without the lessons that it holds back."""
    held = held_back(run, run.library)
    return replace(run, library=without(run.library, {lesson.id for lesson in held})) if held else run


def _attempts(run: Run) -> dict[str, list[str]]:
    """Return the ids of trajectories by the key of the group of evidence that they are in."""
    return {
        group.scenario_id.removeprefix(PREFIX): [
            str(one.extra["trajectory_id"]) for one in group.rollouts if "trajectory_id" in one.extra
        ]
        for result in run.phases
        if result.phase.mode == "evidence"
        for group in result.groups
    }


def _with(outcome: JobOutcome, artifacts: Mapping[str, Json], metadata: Mapping[str, Json]) -> JobOutcome:
    parts = outcome.parts
    merged = {"artifacts": artifacts, "metadata": {**parts.get("metadata", {}), **metadata}}
    return JobOutcome(trigger=outcome.trigger, parts={**parts, **merged})
