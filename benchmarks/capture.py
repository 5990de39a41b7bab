"""A capture of finished work among 10,000 files, against what git alone takes for index, tree and archive.

Usage: python benchmarks/capture.py [FILES]
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.patterns.capture.capture import CaptureRequest, capture
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest

FILES, CHANGED, ADDED, ROUNDS = 10_000, 20, 10, 5
GOAL = 2.0
SOURCE = Path(__file__).parents[1] / "pytest_tfgrpo"
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")


class Queue:
    """Takes the job and nothing else."""

    def add(self, manifest: JobManifest, /) -> None:
        """Require that it was captured."""
        assert manifest.snapshot is not None, manifest.reason

    def note(self, event: str, entry: Mapping[str, Json], /) -> None:
        """Fail: there is a change."""
        raise AssertionError(event, entry)


def make(root: Path, files: int) -> None:
    """Make a repository of Python files, and the work in it."""
    draw = random.Random(0)
    sources = [path.read_text() for path in sorted(SOURCE.rglob("*.py"))]
    for n in range(files):
        path = root / f"package{n % 100}" / f"module{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {n}\n" + draw.choice(sources)[:6000])
    (root / ".gitignore").write_text("out/\n")
    for argv in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Begin"), ("gc", "-q")):
        subprocess.run([*GIT, *argv], cwd=root, check=True)
    for n in range(CHANGED):
        with (root / f"package{n % 100}" / f"module{n}.py").open("a") as file:
            file.write("CHANGED = True\n")
    for n in range(ADDED):
        (root / f"added{n}.py").write_text("ADDED = True\n")


def plain(root: Path) -> None:
    """Stage all into a copy of the index, write the tree, and pack it."""
    index = root / ".git" / "copy"
    shutil.copy2(root / ".git" / "index", index)
    environ = {**os.environ, "GIT_INDEX_FILE": str(index)}
    subprocess.run(["git", "add", "-A"], cwd=root, env=environ, check=True)
    done = subprocess.run(
        ["git", "write-tree"], cwd=root, env=environ, check=True, capture_output=True, text=True
    )
    archive = f"git archive {done.stdout.strip()} | gzip -1 > .git/copy.tar.gz"
    subprocess.run(["bash", "-c", archive], cwd=root, check=True)


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(files: int) -> None:
    """Print the medians and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "shop"
        make(root, files)
        request = CaptureRequest(
            repository=root,
            learning=Path(folder) / "out" / "shop" / "learning",
            task_id="shop",
            approver="ann",
        )
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(seconds(lambda: capture(request, {}, Queue())))
            theirs.append(seconds(lambda: plain(root)))
        size = sum(path.stat().st_size for path in root.rglob("*.py")) / 1e6
    own, other = statistics.median(ours), statistics.median(theirs)
    print(f"{files} files, {size:.0f} MB, {CHANGED} changed, {ADDED} added, medians of {ROUNDS} rounds")
    print(f"capture                                        {own:.2f} s")
    print(f"git add -A, write-tree, git archive | gzip -1  {other:.2f} s")
    print(f"ratio {own / other:.2f} (goal: at most {GOAL:g})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES)
