"""How a job tries a version: runs of the project's pytest, one after the other, within the job's budget."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.files import JOURNAL, REPORT_HTML
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.learning.library.library import save_library
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.training.jobs.process import (
    LOG,
    JobProcess,
    StartProcess,
    find_process,
    is_left,
    start_or_find,
)
from pytest_tfgrpo.production.training.jobs.pytest_work import MOST_DEATHS
from pytest_tfgrpo.production.training.jobs.run_end import end_of, read_report
from pytest_tfgrpo.production.training.jobs.run_progress import RunProgress, newest_run
from pytest_tfgrpo.production.training.jobs.work import EVIDENCE_FILE
from pytest_tfgrpo.production.training.settings import CHECKPOINT
from pytest_tfgrpo.production.training.versions.artifacts import LOGS
from pytest_tfgrpo.production.training.versions.safety_run import (
    SafetyFinding,
    SafetyPlaces,
    safety_pages,
    try_suites,
)
from pytest_tfgrpo.suite.evidence_file import EvidenceFile

if TYPE_CHECKING:
    from pytest_tfgrpo.production.training.versions.policies import Policies

SAFETY, EVALUATION = "safety", "evaluation"
"""Folders of a job: runs of safety suites, with the process of the day; runs of the project's suite."""
PARENT, START, LEARNED = "parent", "start.json", "learned.json"
"""Files of a job: the version that was deployed when it began, its library, and the one that was learned."""
IN_PROJECT = ".tfgrpo-safety"
"""Folder of the project that holds the packaged safety suites while they are tried."""
ROLLOUTS = 5
"""Of each eval scenario, as in a run that learns."""
HOW_TO_RUN = f'set [training] project and checkpoint_args, such as ["--tfgrpo-actor=openai:{CHECKPOINT}"]'
_LOOK_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionPlan:
    """How what a job made becomes a version."""

    policies: Policies
    project: Path | None
    """None: nothing is run, and no job learns here."""
    safety: Sequence[str]
    """Packaged suites, and folders of the project."""
    args: Sequence[str] = ()
    """Further arguments of pytest."""
    checkpoint_args: Sequence[str] = ()
    """Those that run a checkpoint, with its place in them; none: nobody knows how."""
    budget_usd: float = 0.0
    """Of the job; what tries the version may spend what its run has left."""


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


class VersionTrials:
    """What a job runs in the project; for one thread, but for `stop`, `leave`, `stopped` and `spent_usd`."""

    def __init__(self, job_id: str, folder: Path, plan: VersionPlan, start: StartProcess) -> None:
        self.job_id, self.plan, self._start = job_id, plan, start
        self.folder = folder.absolute()  # pytest runs in the project's
        self._stop = threading.Event()
        self._is_left = False
        self._process: JobProcess | None = None
        """What runs, or ran last."""
        self.trained_usd = 0.0
        """What the work before cost."""

    @property
    def parent(self) -> str:
        """The version that was deployed when the job began."""
        return (self.folder / PARENT).read_text("utf-8")

    @property
    def _project(self) -> Path:
        assert self.plan.project is not None, "nothing is run without a project"
        return self.plan.project

    @property
    def checkpoint(self) -> str:
        """The weights of that version's model; empty where the project's own model answers."""
        parent = self.parent
        return "" if parent == FIRST else self.plan.policies.read(parent).checkpoint

    @property
    def dataset(self) -> Mapping[str, Json]:
        """The header of the job's evidence; empty where it is in the journal alone."""
        evidence = self.folder / EVIDENCE_FILE
        header: Mapping[str, Json] = to_wire(EvidenceFile(evidence).header) if evidence.exists() else {}
        return header

    @property
    def stopped(self) -> bool:
        """Whether the job is to end."""
        return self._stop.is_set()

    @property
    def seed(self) -> int:
        """Of its runs, so that each side is asked the same."""
        return int(self.job_id[:8], 16)

    def stop(self) -> None:
        """End what runs, and let nothing begin."""
        self._stop.set()
        if self._is_left and self._process is not None:  # else who waits for it does
            self._process.kill()

    def leave(self) -> bool:
        """Let nothing begin; return whether what runs is over, or in other hands."""
        self._is_left = True
        self._stop.set()
        return is_left(self._process)

    def spent_usd(self) -> float:
        """Return what its runs cost, as far as their journals can be read."""
        total = 0.0
        for pattern in (f"{SAFETY}/*/*/runs/*/{JOURNAL}", f"{EVALUATION}/*/*/runs/*/{JOURNAL}"):
            for journal in self.folder.glob(pattern):
                run = RunProgress(journal.parent)
                with suppress(JournalError):
                    run.look()
                total += run.cost_usd
        return total

    def model_args(self, checkpoint: str) -> tuple[str, ...]:
        """Return what has pytest run a checkpoint; raises SettingError where nobody says how."""
        if not checkpoint:
            return ()
        if not self.plan.checkpoint_args:
            raise SettingError(
                f"the model of version {self.parent} is the checkpoint {checkpoint!r}, and nothing says how "
                f"to run it: {HOW_TO_RUN}"
            )
        return tuple(one.replace(CHECKPOINT, checkpoint) for one in self.plan.checkpoint_args)

    def evaluated(self, name: str, library: Path, arguments: Sequence[str]) -> Path | str:
        """Return the complete run of the suite's eval split under a name, or why there is none.

        It goes on where it was left, and a signal ends it three times at most.
        """
        out = self.folder / EVALUATION / name
        said: str | None = None
        for _ in range(MOST_DEATHS):
            run = newest_run(out) if out.exists() else None
            if run is not None and (report := read_report(run)) is not None:
                return run if report["status"] == "complete" else _why(report)
            if said is not None or self.stopped:
                break
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--tfgrpo-out={out}"]
            command += [f"--tfgrpo-library={library}", f"--tfgrpo-seed={self.seed}"]
            command += [f"--tfgrpo-eval-rollouts={ROLLOUTS}", *self.plan.args, *arguments]
            said = self._call([*command, *([f"--tfgrpo-resume={run.name}"] if run is not None else [])])
        return "a signal ended it, again and again" if said is None else said

    def safety(self, run: Run, arguments: Sequence[str] = ()) -> tuple[SafetyFinding, ...]:
        """Return what the safety suites come to with the library of a run."""
        plan, project = self.plan, self._project.absolute()
        files = project / IN_PROJECT
        learned = self.folder / LEARNED
        save_library(learned, run.library)
        findings = try_suites(
            plan.safety,
            places=SafetyPlaces(
                project=project,
                files=files / self.job_id,
                out=self.folder / SAFETY,
                library=learned,
            ),
            domains=sorted({scenario.domain for scenario in run.scenarios}),
            seed=self.seed,
            judge="judge" in run.identities,
            arguments=(*plan.args, *arguments),
            call=self._call,
        )
        if not self._is_left:  # else another service tries them
            with suppress(OSError):
                rmtree(files / self.job_id)
                files.rmdir()
        return findings

    def log(self, files: Mapping[str, Path]) -> str:
        """Keep files that are there and the pages of all runs as the job's logs; return their place."""
        store = self.plan.policies.files
        pages = {
            f"{EVALUATION}-{page.parents[3].name}.html": page
            for page in sorted(self.folder.glob(f"{EVALUATION}/*/*/runs/*/{REPORT_HTML}"))
        }
        for name, file in {**files, **safety_pages(self.folder / SAFETY), **pages}.items():
            if file.exists():
                store.write(f"{LOGS}/{self.job_id}/{name}", file.read_bytes())
        return store.place(f"{LOGS}/{self.job_id}")

    def _call(self, command: Sequence[str]) -> str | None:
        """Run a command of pytest in the project; returns the end of its output, None if it was killed."""
        if self.stopped:
            return ""
        folder = self.folder / SAFETY
        folder.mkdir(exist_ok=True)
        process = find_process(folder)  # of a service that is gone
        if process is None:
            (folder / LOG).unlink(missing_ok=True)
            left = max(0.0, self.plan.budget_usd - self.trained_usd - self.spent_usd())
            whole = [*command, f"--tfgrpo-budget-usd={left:g}"]
            process = start_or_find(self._start, whole, folder, cwd=self._project)
        self._process = process
        while not process.ended():
            if self._stop.wait(_LOOK_S):
                if self._is_left:
                    break
                process.kill()
        killed = process.code is None or process.code < 0
        return None if killed and not self._stop.is_set() else end_of(folder / LOG)


def _why(report: Mapping[str, Json]) -> str:
    """Return why a run that ended is not complete."""
    return f"its run is {report['status']}: {report.get('reason') or 'it was interrupted'}"
