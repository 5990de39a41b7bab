"""Live RL as an application uses it, over a real store."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.builders import make_experience
from support.live.loop import CONFIG, runs_of, scored, serve, wait

from pytest_tfgrpo.cli.live_demo import open_failing
from pytest_tfgrpo.cli.open_live import open_live
from pytest_tfgrpo.harness.learning.library.library import of, save_library
from pytest_tfgrpo.live.records import LiveStatus


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_library(tmp_path / "library.json", of([make_experience()]))
    (tmp_path / "live.toml").write_text(CONFIG.format(inference="trace_v2"))
    return tmp_path


def test_processes_that_share_a_store_share_what_is_learned(folder: Path) -> None:
    config = scored(folder)
    with open_live(config) as one, open_live(config) as other:
        serve(one, 0, 64)
        one.flush()
        wait(lambda: other.backend is not None and other.backend.selector >= 4)


UNCLOSED = """
import os, sys, warnings
import pytest_tfgrpo as tfgrpo
warnings.simplefilter("ignore", DeprecationWarning)
live = tfgrpo.open_live()
def serve(keys):
    for key in keys:
        with live.run(key) as run:
            run.choose("config")
            run.end("done", score=0.5)
serve("abc")
child = os.fork()
serve("def" if child == 0 else "ghi")
if child:
    os.waitpid(child, 0)
raise RuntimeError("neither closes")
"""


def test_a_process_that_ends_without_closing_and_its_forked_child_lose_nothing(folder: Path) -> None:
    """As of a server that forks its workers after it has loaded the application."""
    done = subprocess.run([sys.executable, "-c", UNCLOSED], cwd=folder, capture_output=True, timeout=100)
    assert done.returncode == 1
    assert sorted(run.run for run in runs_of(folder)) == [*"abcdefghi"]
    assert {run.status for run in runs_of(folder)} == {LiveStatus.SUCCEEDED}


def test_failures_hold_the_gate_until_a_reset(folder: Path) -> None:
    """C-03."""
    live, store = open_failing(folder)
    with live:
        serve(live, 0, 8)
        store.failures = 3
        with live.run("unlucky") as run:
            run.choose("config")
        wait(lambda: live.status()["gate"]["state"] == "hold")
        assert live.status()["gate"]["last_error"].endswith("the disk is full")
        with live.run("held") as run:
            assert (run.choose("config").name, run.choose("config").propensity) == ("bare", 1.0)
        assert store.counts()["succeeded"] == 8
