"""Two processes decide about the same patterns and are killed: lint brings log and files together."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import ROOT
from support.patterns.shelves import make_evidence, make_pattern, put
from support.repositories import git

from pytest_tfgrpo.patterns.shelf.lint import fix, lint
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision, status_in_log, unfinished, write_candidate
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf

ADA = ShelfDecision(by="ada", reason="after a kill")
KILLS = 12
GROWN = 2_000
"""Bytes that the log grows by before a kill: some decisions."""


def killed(root: Path, seeds: tuple[str, str], after_s: float) -> None:
    """Start two processes that decide, and kill both with what they started."""
    path = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    argv = [sys.executable, "-m", "support.patterns.mover", str(root)]
    started = [
        subprocess.Popen(
            [*argv, seed],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for seed in seeds
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        log = Shelf(root).log.path
        until = log.stat().st_size + GROWN
        while log.stat().st_size < until and all(process.poll() is None for process in started):
            time.sleep(0.005)
        time.sleep(after_s)
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.mark.parametrize("tracked", [False, True], ids=["files", "git"])
def test_every_kill_leaves_a_shelf_that_lint_mends(tmp_path: Path, tracked: bool) -> None:
    screens, draw = PatternScreens(), random.Random(7)
    shelf = put(tmp_path)
    for n in range(3):
        write_candidate(shelf, make_pattern(f"n{n}", evidence=make_evidence(job=str(n))))
    if tracked:
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "x")
    differed = 0
    for n in range(KILLS):
        killed(tmp_path, (f"{n}a", f"{n}b"), draw.uniform(0.0, 0.05))
        (tmp_path / ".git/index.lock").unlink(missing_ok=True)
        shelf = Shelf(tmp_path)
        differed += bool(unfinished(shelf))
        list(fix(shelf, screens, ADA))
        assert lint(shelf, screens) == []
        where = status_in_log(shelf.log.entries())
        assert {file.name for file in shelf.files()} == {"n0", "n1", "n2"}
        assert all(file.pattern and file.status is where[file.pattern.id] for file in shelf.files())
    assert len(shelf.log.entries()) > 3 * KILLS
    print(f"{len(shelf.log.entries())} entries, {differed} of {KILLS} kills between log and file")
