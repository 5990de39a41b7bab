"""The author of a job's pattern: what the job's folder holds, written up and laid on the shelf."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.harvest.suite.provenance import read_provenance
from pytest_tfgrpo.patterns.authoring.crystalizer import AskModel, TellReader, crystalize
from pytest_tfgrpo.patterns.authoring.subject import FixedTest, PatternSubject
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest
from pytest_tfgrpo.patterns.shelf.moves import write_candidate
from pytest_tfgrpo.patterns.shelf.pattern import PatternEvidence
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario_files import load_scenarios

DIFF, PROMPT = "diff.patch", "prompt.md"
READ = 5_000_000
"""Bytes of a diff or a prompt that are read."""


class JobAuthor:
    """Writes patterns of proven jobs; `ask` is a model's answer, None: the template writes."""

    def __init__(self, ask: AskModel | None, *, screens: PatternScreens, tell: TellReader) -> None:
        self._ask, self._screens, self._tell = ask, screens, tell

    def __call__(self, job: JobManifest, folder: Path) -> Callable[[], str]:
        """Return what lays the pattern of a job on the shelf of its repository, and returns its name.

        Done again it lays no second one. Raises PatternError, StoreError and ScenarioError.
        """
        shelf = Shelf(Path(job.captured.repository))
        subject = subject_of(job, folder)
        pattern = crystalize(subject, self._ask, screens=self._screens, say=self._tell)
        return lambda: write_candidate(shelf, pattern).name


def subject_of(job: JobManifest, folder: Path) -> PatternSubject:
    """Return what a proven job's pattern is written of; raises PatternError where it is not proven."""
    if job.snapshot is None or not job.scenario:
        raise PatternError(f"job {job.job_id} has no proven scenario; no pattern is written of it")
    (scenario,) = load_scenarios(folder / f"{job.scenario}.scenario.yaml", root=folder, kinds=KINDS)
    proof = read_provenance(folder / "provenance" / f"{job.scenario}.json").validation
    return PatternSubject(
        prompt=_read(folder / PROMPT),
        diff=_read(folder / DIFF),
        domain=scenario.domain,
        evidence=PatternEvidence(
            job=job.job_id,
            scenario=scenario.id,
            scenario_stamp=scenario.stamp,
            commit=job.snapshot.commit,
            tarball_sha256=job.snapshot.tarball_sha256,
            diff_sha256=job.snapshot.diff_sha256,
        ),
        tests=tuple(FixedTest(id=test, message=proof.messages.get(test, "")) for test in proof.fail_to_pass),
    )


def _read(path: Path) -> str:
    try:
        return read_plain(path, READ).decode("utf-8", "replace")
    except OSError as error:
        raise PatternError(f"cannot read {path}: {error.strerror or error}; no pattern is written") from error
