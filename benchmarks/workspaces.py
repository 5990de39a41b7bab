"""Make workspaces of 10,000 files from an archive, and find what changed in them, against tar and git.

python benchmarks/workspaces.py [ROUNDS [FOLDER]]
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack
from pytest_tfgrpo.sandbox.changes import changes_in
from pytest_tfgrpo.sandbox.removal import remove
from pytest_tfgrpo.sandbox.workspace import Workspace

FILES = 10_000
SHARED_MEMORY = Path("/dev/shm")


def write_project(path: Path) -> WorkspaceArchive:
    """Write an archive of many text files of uneven sizes, 44 MB in 280 folders."""
    rng = random.Random(1)
    words = [f"{rng.getrandbits(40):x}" for _ in range(5000)]
    entries = [
        ArchiveEntry(
            name=f"package{n % 40}/part{n % 7}/module{n}.py",
            data=" ".join(rng.choices(words, k=int(rng.lognormvariate(7.8, 1)) // 10)).encode(),
        )
        for n in range(FILES)
    ]
    path.write_bytes(pack(entries))
    return WorkspaceArchive(archive=path.name, path=path, sha256=stamp_bytes(path.read_bytes()))


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds and seconds of processor time, of this process and its children."""
    before, began = os.times(), time.perf_counter()
    work()
    wall_s, after = time.perf_counter() - began, os.times()
    return wall_s, sum(after[:4]) - sum(before[:4])


def main(rounds: int, folder: Path) -> None:
    """Print medians, and the ratios to tar and git of the same round."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        archive = write_project(place / "project.tar.gz")
        first = measured(lambda: Workspace(place / "first", archive=archive).make())
        remove(place / "first")
        rows: list[list[tuple[float, float]]] = []
        for _ in range(rounds):
            (place / "tar").mkdir()
            tar = measured(
                lambda: subprocess.run(["tar", "-xzf", archive.path, "-C", place / "tar"], check=True)
            )
            workspace = Workspace(place / "ours", archive=archive)
            ours = measured(workspace.make)
            found = measured(lambda: changes_in(workspace))  # noqa: B023 - called at once
            status = measured(lambda: subprocess.run(["git", "status"], cwd=place / "ours", check=True))
            assert changes_in(workspace) == ()
            for made in ("tar", "ours"):
                remove(place / made)
            rows.append([tar, ours, found, status])
    print(f"first use: {first[0]:.2f} s, {first[1]:.2f} s of processor time")
    for title, ours, other in (("workspace / tar -xzf", 1, 0), ("changes_in / git status", 2, 3)):
        for unit, k in (("wall", 0), ("processor", 1)):
            ratios = [row[ours][k] / row[other][k] for row in rows]
            times = [statistics.median(row[n][k] for row in rows) for n in (ours, other)]
            print(
                f"{title:24} {unit:9} {times[0]:.3f} / {times[1]:.3f} s, "
                f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 7,
        Path(sys.argv[2]) if len(sys.argv) > 2 else SHARED_MEMORY,
    )
