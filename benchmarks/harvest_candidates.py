"""Candidates of a history of 10,000 commits against ``git log --raw``: at most 2 times its time.

The history is made here, or given: ``python benchmarks/harvest_candidates.py [REPOSITORY [RANGE]]``. Both run
in turns on the same files, in memory where there is room; the least time of each counts, as other programs
only ever add to it.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.harvest.fixes import FixCandidate
from pytest_tfgrpo.harvest.history.candidates import candidates
from pytest_tfgrpo.harvest.history.changes import changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects

COMMITS = 10_000
FILES = 2000
WITH_TESTS = 0.3
"""Share of the commits that touch tests and sources; in pytest's own history it is 0.27."""
TURNS = 7
BAR = 2.0


def made_history(folder: Path, commits: int) -> Path:
    """Make a repository with so many commits after its first, packed as a clone is."""
    git(folder, "init", "-q", "--bare", "--initial-branch=main", ".")
    stream = subprocess.Popen(["git", "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE)
    assert stream.stdin is not None
    for part in history(commits):
        stream.stdin.write(part)
    stream.stdin.close()
    assert stream.wait() == 0
    git(folder, "repack", "-adq")
    return folder


def history(commits: int) -> Iterator[bytes]:
    """Yield a stream for ``git fast-import``."""
    chance = random.Random(1)
    words = [bytes(chance.choices(b"abcdefghij_=().", k=36)) + b"\n" for _ in range(5000)]
    files = [f"src/pkg{n % 10}/part{n % 50}/mod{n}.py" for n in range(FILES * 4 // 5)]
    tests = [f"tests/pkg{n % 10}/test_mod{n}.py" for n in range(FILES // 5)]
    rows = {name: chance.choices(words, k=chance.randint(20, 400)) for name in (*files, *tests)}
    for n in range(commits + 1):
        message = b"Mend the number %d\n\nIt was wrong where it had to be right.\n" % n
        yield b"commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata %d\n" % (
            1_500_000_000 + n,
            len(message),
        )
        yield message
        touched = chance.sample(files, chance.choice((1, 1, 1, 2, 2, 3, 5)))
        if chance.random() < WITH_TESTS:
            touched += chance.sample(tests, chance.choice((1, 1, 2)))
        for name in (*files, *tests) if n == 0 else touched:
            for _ in range(3):
                rows[name][chance.randrange(len(rows[name]))] = chance.choice(words)
            data = b"".join(rows[name])
            yield b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)


def git(folder: Path, *arguments: str) -> None:
    """Run git, its output dropped."""
    subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def screened(repository: Path, span: str) -> Counter[str]:
    """Return how many changes are candidates, and how many are not, by reason."""
    with GitObjects(repository) as objects:
        found = candidates(changes(objects, range_of(objects, span)))
        return Counter("candidate" if isinstance(one, FixCandidate) else one.reason[:20] for one in found)


def seconds(action: object) -> float:
    """Return the seconds of a call."""
    assert callable(action)
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def measure(repository: Path, span: str) -> float:
    """Print both times; return their ratio."""
    ours, logs = [], []
    for _ in range(TURNS):
        ours.append(seconds(lambda: screened(repository, span)))
        logs.append(seconds(lambda: git(repository, "log", "--first-parent", "--raw", span)))
    counts = screened(repository, span)
    ratio = min(ours) / min(logs)
    print(f"{counts.total()} changes, {counts['candidate']} candidates; load {os.getloadavg()[0]:.1f}")
    print(f"git log --raw {min(logs):.2f} s, candidates {min(ours):.2f} s: {ratio:.2f} times (bar: {BAR:g})")
    return ratio


def main() -> int:
    """Measure; return 1 where the bar is missed."""
    if len(sys.argv) > 1:
        return int(measure(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "HEAD") > BAR)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        return int(measure(made_history(Path(folder), COMMITS), "main") > BAR)


if __name__ == "__main__":
    sys.exit(main())
