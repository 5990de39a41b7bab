"""Tools of workers for tests, which prove what they are told to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.integrity import MadeSnapshot
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

    def rebuild(self, snapshot: WorkSnapshot, _repository: Path) -> MadeSnapshot:
        raise SnapshotError(f"there is no commit {snapshot.commit!r}")

    def retake(self, _manifest: JobManifest, _out: Path) -> MadeSnapshot:
        raise SnapshotError("it failed again")

    def drop(self, _repository: Path, ref: str) -> None:
        self.dropped.append(ref)


class RemadeGit(ToldGit):
    """A `SnapshotGit` that makes any snapshot again, with another tarball."""

    def rebuild(self, snapshot: WorkSnapshot, _repository: Path) -> MadeSnapshot:
        work = replace(snapshot, tarball_sha256=stamp_bytes(b"tar"))
        return MadeSnapshot(work=work, files=("prices.py",), diff=b"diff", tarball=b"tar")

    def retake(self, manifest: JobManifest, _out: Path) -> MadeSnapshot:
        ref = f"refs/learning/{manifest.job_id}"
        ids = dict.fromkeys(("commit", "base", "tree", "base_tree"), "a" * 40)
        digest = stamp_bytes(b"diff")
        return self.rebuild(WorkSnapshot(ref=ref, diff_sha256=digest, tarball_sha256="", **ids), Path())


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
