"""Snapshots of work in small repositories, as a capture makes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, WorkSnapshot
from support.patterns.jobs import job_id, manifest
from support.patterns.working import write_files
from support.repositories import Repository, git

Files: TypeAlias = dict[str | bytes, str | bytes | None]
BEFORE: Files = {"prices.py": "def total(a, b):\n    return a - b\n", "notes.txt": "1\n"}
AFTER: Files = {
    "prices.py": "def total(a, b):\n    return a + b\n",
    "test_prices.py": "def test_it(): pass\n",
}


def captured(folder: Path, repository: Repository, n: int = 0) -> JobManifest:
    """Commit a change behind the last commit of a repository, with the files of its job; return that."""
    base = repository.commit(BEFORE)
    commit = repository.commit(AFTER)
    ref = f"refs/learning/{job_id(n)}"
    git(repository.folder, "update-ref", ref, commit)
    git(repository.folder, "update-ref", "refs/heads/main", base)
    one = write_files(folder, manifest(n))
    assert one.snapshot is not None
    snapshot = WorkSnapshot(
        ref=ref,
        commit=commit,
        base=base,
        tree=git(repository.folder, "rev-parse", f"{commit}^{{tree}}"),
        base_tree=git(repository.folder, "rev-parse", f"{base}^{{tree}}"),
        tarball_sha256=one.snapshot.tarball_sha256,
        diff_sha256=one.snapshot.diff_sha256,
    )
    work = replace(one.captured, repository=str(repository.folder))
    return replace(one, captured=work, snapshot=snapshot)
