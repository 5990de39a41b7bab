"""Processes of jobs: one in a folder, found again by who did not start it."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tfgrpo.production.training.jobs.process import LOCK, LOG, ProcessStarter, find_process

SLEEPS = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(100)"]


def until(done: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_has_the_folder_to_itself_and_its_output_is_kept(tmp_path: Path) -> None:
    start = ProcessStarter({"ONLY": "this"})
    process = start([sys.executable, "-c", "import os; print(sorted(os.environ))"], tmp_path, cwd=tmp_path)
    until(process.ended)
    assert process.code == 0
    assert "'ONLY'" in (tmp_path / LOG).read_text()
    assert "'HOME'" not in (tmp_path / LOG).read_text()
    running = start(SLEEPS, tmp_path, cwd=tmp_path)
    with pytest.raises(BlockingIOError):
        start(SLEEPS, tmp_path, cwd=tmp_path)
    running.interrupt()
    until(running.ended)
    assert find_process(tmp_path) is None


def test_who_only_looks_keeps_nobody_from_starting_it(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with (tmp_path / LOCK).open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        assert find_process(tmp_path) is None
        threading.Timer(0.05, fcntl.flock, (look, fcntl.LOCK_UN)).start()
        process = ProcessStarter(os.environ)([sys.executable, "-c", ""], tmp_path, cwd=tmp_path)
    until(process.ended)
    assert process.code == 0


def test_whoever_found_it_last_looks_after_it(tmp_path: Path) -> None:
    process = ProcessStarter(os.environ)(SLEEPS, tmp_path, cwd=tmp_path)
    assert not process.is_taken()
    found = find_process(tmp_path)
    assert found is not None
    assert (process.is_taken(), found.is_taken()) == (True, False)
    again = find_process(tmp_path)
    assert again is not None
    assert (process.is_taken(), found.is_taken(), again.is_taken()) == (True, True, False)
    process.kill()
    assert find_process(tmp_path) is None
    process = ProcessStarter(os.environ)(SLEEPS, tmp_path, cwd=tmp_path)
    assert not process.is_taken()
    process.kill()


@pytest.mark.parametrize("end", ["interrupt", "kill"])
def test_one_whose_starter_died_is_found_and_ended(tmp_path: Path, end: str) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from pytest_tfgrpo.production.training.jobs.process import ProcessStarter\n"
        f"ProcessStarter(os.environ)({SLEEPS!r}, Path({str(tmp_path)!r}), cwd=Path({str(tmp_path)!r}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run([sys.executable, "-c", program], env=environ, check=False, timeout=100)
    assert died.returncode == -signal.SIGKILL
    until(lambda: "here" in (tmp_path / LOG).read_text())
    found = find_process(tmp_path)
    assert found is not None
    assert not found.ended()
    assert found.code is None
    getattr(found, end)()
    until(found.ended)
    assert find_process(tmp_path) is None
