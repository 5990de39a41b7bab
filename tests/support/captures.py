"""Captures of finished work in small repositories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_tfgrpo.patterns.capture.capture import CaptureRequest, capture
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest
from support.repositories import git

OURS = "refs/learning/"


@dataclass
class Sink:
    """A queue that only remembers."""

    jobs: list[JobManifest] = field(default_factory=list)
    notes: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def add(self, manifest: JobManifest, /) -> None:
        self.jobs.append(manifest)

    def note(self, event: str, entry: Mapping[str, Any], /) -> None:
        self.notes.append((event, entry))


def captured(
    folder: Path, sink: Sink | None = None, sleep: Any = lambda _: None, **options: Any
) -> JobManifest | None:
    """Capture the work in a repository; the output folder is beside it."""
    place = folder.parent / "out" / "task" / "learning"
    request = CaptureRequest(
        **{"repository": folder, "learning": place, "task_id": "task", "approver": "ann", **options}
    )
    environ = {"HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    return capture(request, environ, sink or Sink(), sleep)


def learning(folder: Path) -> Path:
    """Return the folder of the jobs of `captured`."""
    return folder.parent / "out" / "task" / "learning"


def job_of(folder: Path, **options: Any) -> JobManifest:
    """Return the job of a capture that leads to one."""
    job = captured(folder, **options)
    assert job is not None
    return job


def tree_of(folder: Path, **options: Any) -> str:
    """Return the tree of a snapshot."""
    snapshot = job_of(folder, **options).snapshot
    assert snapshot is not None
    return snapshot.tree


def staged_tree(folder: Path, copy: Path) -> str:
    """Return the tree that plain ``git add -A`` makes in a copy of the folder, which keeps its times."""
    shutil.copytree(folder, copy, symlinks=True)
    git(copy, "add", "-A")
    tree = git(copy, "write-tree")
    shutil.rmtree(copy)
    return tree


def kept(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, time and content of all that a capture leaves alone: all but its objects and ref."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() and not path.is_symlink():
            continue
        if name.startswith(f".git/{OURS}") or (name.startswith(".git/objects/")):
            continue
        status = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        found[name] = (status.st_mode, status.st_mtime_ns, content)
    return found


def objects_of(folder: Path) -> set[str]:
    """Return the ids of all objects of a repository."""
    listed = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(listed.split())


def refs_of(folder: Path) -> list[str]:
    """Return the references that captures made."""
    return git(folder, "for-each-ref", "--format=%(refname)", OURS).split()
