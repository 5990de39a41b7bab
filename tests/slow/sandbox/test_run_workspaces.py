"""The folder of a run's workspaces: where it is, who may use it again, and that it goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.sandbox.run_workspaces import (
    CORRUPTIONS,
    RUN,
)

from pytest_tfgrpo.sandbox.run_workspaces import KEPT_S, RunWorkspaces


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run."""
    folder = tmp_path / "out" / "demo" / "runs" / RUN
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def left_behind(temporary: Path, pointer: Path | None) -> Path:
    """Use a workspace in a process that is then killed; return the workspace."""
    program = f"""
import os, signal
from pathlib import Path
from pytest_tfgrpo.sandbox.run_workspaces import RunWorkspaces
pointer = {None if pointer is None else str(pointer)!r}
workspaces = RunWorkspaces({RUN!r}, Path({str(temporary)!r}), pointer and Path(pointer))
workspace = workspaces.new("r0", ())
(workspace.path / "answer.txt").write_text("half an answer")
print(workspace.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip())


def test_a_resumed_run_finds_what_a_killed_one_left_and_removes_it_at_its_end(
    temporary: Path, run: Path
) -> None:
    pointer = run / "workspaces.json"
    folder = left_behind(temporary, pointer)
    workspaces = RunWorkspaces(RUN, temporary, pointer)
    workspace = workspaces.left("r0", ())
    assert workspace is not None
    assert (workspace.path / "answer.txt").read_text() == "half an answer"
    assert workspaces.left("r1", ()) is None
    assert list(workspaces.new("r0", ()).path.iterdir()) == []
    assert workspaces.close(keep=False) == ""
    assert not folder.parent.exists()
    assert not pointer.exists()


if os.geteuid() == 0:
    CORRUPTIONS["is somebody else's"] = lambda pointer, folder: os.chown(folder, 65534, 65534)
    CORRUPTIONS["is in somebody else's"] = lambda pointer, folder: os.chown(folder.parent, 65534, 65534)


@pytest.mark.parametrize("how", CORRUPTIONS)
def test_a_pointer_is_not_believed_when_the_folder(temporary: Path, run: Path, how: str) -> None:
    pointer = run / "workspaces.json"
    folder = left_behind(temporary, pointer).parent
    before = sorted(path for path in temporary.rglob("*") if path.name == "answer.txt")
    assert before
    CORRUPTIONS[how](pointer, folder)
    kept = [path for path in temporary.rglob("*") if path.name == "answer.txt"]
    workspaces = RunWorkspaces(RUN, temporary, pointer)
    assert workspaces.left("r0", ()) is None
    assert list(workspaces.new("r0", ()).path.iterdir()) == []
    assert workspaces.close(keep=False) == ""
    assert [path for path in temporary.rglob("*") if path.name == "answer.txt"] == kept


def test_the_next_run_removes_what_a_killed_one_left(temporary: Path, run: Path) -> None:
    folder = left_behind(temporary, None).parent
    needed = left_behind(temporary, run / "workspaces.json").parent
    going_on = RunWorkspaces("20260101T000001-00000000", temporary)
    in_use = going_on.new("r0", ()).path
    foreign = temporary / "tfgrpo-workspaces-of-mine"
    foreign.mkdir(mode=0o755)
    (foreign / "file").touch()
    link = temporary / f"tfgrpo-workspaces-{RUN}.01234567"
    link.symlink_to(run)
    old = time.time() - KEPT_S - 60

    def next_run() -> None:
        workspaces = RunWorkspaces("20260101T000002-00000000", temporary)
        _ = workspaces.new("r0", ()).path
        deadline = time.monotonic() + 100
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        workspaces.close(keep=False)

    next_run()
    assert not folder.exists()
    assert needed.exists()
    assert in_use.exists()
    assert (foreign / "file").exists()
    assert link.is_symlink()
    os.utime(needed, (old, old))
    folder.mkdir(mode=0o700)
    next_run()
    assert not needed.exists()
    going_on.close(keep=False)
