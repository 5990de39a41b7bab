"""Tools of workers for tests, which prove what they are told to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus, WorkSnapshot
from pytest_tfgrpo.patterns.jobs.worker import WorkTools


@dataclass(frozen=True)
class Proof:
    """What came of a proof."""

    status: LearningStatus = LearningStatus.VALIDATED
    root_cause: RootCause | None = None
    reason: str = ""
    scenario: str = "fix-prices"
    broken: int = 0


class ToldGit:
    """A `SnapshotGit` that says what it is told, or raises it."""

    def __init__(self, tree: str = "") -> None:
        self.tree, self.dropped = tree, list[str]()

    def applied(self, _repository: Path, _base: str, _diff: bytes) -> str:
        return self.tree

    def status(self, _repository: Path) -> str:
        return "# branch.head main\n"

    def archive(self, _repository: Path, commit: str) -> bytes:
        return f"archive of {commit}".encode()

    def drop(self, _repository: Path, ref: str) -> None:
        self.dropped.append(ref)


def tools(
    prove: Callable[[JobManifest, Path], Proof] = lambda _job, _folder: Proof(),
    *,
    author: Callable[[JobManifest, Path], Callable[[], str]] | None = None,
    git: ToldGit | None = None,
) -> WorkTools:
    """Return tools; a pattern is called as its scenario."""
    named = author or (lambda job, _folder: lambda: job.scenario)
    return WorkTools(git=git or ToldGit(), prove=prove, author=named)


def write_files(folder: Path, one: JobManifest) -> JobManifest:
    """Write the files of a job and return it with their digests."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, field in (("diff.patch", "diff_sha256"), ("snapshot.tar.gz", "tarball_sha256")):
        (folder / name).write_text(f"{name} of {one.job_id}\n")
        found[field] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "prompt.md").write_text("Mend the prices.\n")
    (folder / "logs").mkdir(exist_ok=True)
    snapshot: WorkSnapshot | None = one.snapshot
    assert snapshot is not None
    return replace(one, snapshot=replace(snapshot, **found))
