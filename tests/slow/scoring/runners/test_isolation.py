"""Isolation: what ends an isolated program."""

import threading
from pathlib import Path

import pytest
from support.tools import require_tool

from pytest_tfgrpo.sandbox.programs.cancelling import Cancelled, cancelled_by
from pytest_tfgrpo.scoring.runners.isolation import IsolatedProgram, run_isolated
from pytest_tfgrpo.scoring.runners.protocol import Isolation


@pytest.mark.parametrize("isolation", ["bwrap", "none"])
def test_cancelled_work_ends_its_program_and_all_that_this_started(
    tmp_path: Path, isolation: Isolation
) -> None:
    if isolation == "bwrap":
        require_tool("bwrap")
    stop, alive = threading.Event(), tmp_path / "alive"
    script = "(while :; do date +%N > alive; sleep .05; done) & sleep 60"

    def stop_it() -> bool:
        if alive.exists():
            stop.set()
        return stop.is_set()

    program = IsolatedProgram(argv=["sh", "-c", script], tree=tmp_path, environment={}, isolation=isolation)
    with cancelled_by(stop_it), pytest.raises(Cancelled):
        run_isolated(program, timeout_s=50)
    left = alive.read_text()
    assert not threading.Event().wait(0.3)
    assert alive.read_text() == left


def test_work_that_is_not_cancelled_goes_on(tmp_path: Path) -> None:
    with cancelled_by(lambda: True):
        pass
    program = IsolatedProgram(argv=["sh", "-c", "echo x"], tree=tmp_path, environment={}, isolation="none")
    ended = run_isolated(program, timeout_s=50)
    assert (ended.code, ended.output) == (0, "x\n")
