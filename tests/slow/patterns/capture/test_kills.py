"""A capture that is killed before each of its steps: nothing half-made stays, and the next one clears up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.captures import job_of, kept, learning, refs_of
from support.repositories import ENVIRONMENT, Repository, git

DRIVER = """
import os, signal, subprocess, sys
from pathlib import Path
from support.captures import captured
from pytest_tfgrpo.patterns.capture import job_folder

steps, last = 0, int(sys.argv[2])

def deadly(function):
    def step(*given, **named):
        global steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)
    return step

subprocess.run = deadly(subprocess.run)
subprocess.Popen.wait = deadly(subprocess.Popen.wait)
Path.rename, Path.mkdir = deadly(Path.rename), deadly(Path.mkdir)
job_folder.write_pieces = deadly(job_folder.write_pieces)
job_folder.sync_folder = deadly(job_folder.sync_folder)
captured(Path(sys.argv[1]))
print(steps)
"""


def capture_until(shop: Path, step: int, places: dict[str, str]) -> str | None:
    """Capture in a process that is killed before a step; return what it prints, None where it was killed."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(shop), str(step)],
        env={**ENVIRONMENT, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", **places},
        capture_output=True,
        text=True,
        timeout=100,
    )
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("part", range(4))
def test_a_kill_before_any_step_leaves_nothing_half_made(tmp_path: Path, part: int) -> None:
    repository = Repository(tmp_path / "shop")
    shop = repository.folder
    repository.commit({"a": "1\n", "b": "1\n"})
    git(shop, "reset", "-q", "--hard", "main")
    (shop / "a").write_text("2\n")
    (shop / "new").write_text("3\n")
    (tmp_path / "tmp").mkdir()
    places = {"TMPDIR": str(tmp_path / "tmp")}
    total = int(capture_until(shop, -1, places) or "0")
    assert total > 20
    before = kept(shop)
    for step in range(part + 1, total + 1, 4):
        assert capture_until(shop, step, places) is None
        assert kept(shop) == before
        assert not list((shop / ".git").rglob("*.lock"))
        git(shop, "fsck", "--strict", "--no-dangling")
    assert capture_until(shop, -1, places) is not None
    job = job_of(shop)
    complete = sorted(path.name for path in learning(shop).glob("*-*-*") if not path.name.startswith("."))
    assert job.job_id in complete
    assert refs_of(shop) == [f"refs/learning/{name}" for name in complete]
    assert all((learning(shop) / name / "manifest.json").is_file() for name in complete)
    assert not list(learning(shop).glob(".capture-*"))
    assert not list((tmp_path / "tmp").glob("tfgrpo-learning-*"))
