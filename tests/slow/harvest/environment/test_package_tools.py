"""Package tools: how installers are run."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.environment.builder import tools_for

from pytest_tfgrpo.harvest.environment.package_tools import outside
from pytest_tfgrpo.sandbox.programs.cancelling import Cancelled, cancelled_by


def process_of(tmp_path: Path) -> int:
    return int((tmp_path / "pid").read_text())


def test_an_installer_ends_when_its_time_is_up_or_the_work_is_cancelled(tmp_path: Path) -> None:
    tools = replace(tools_for(tmp_path, "pip"), timeout_s=0.5)
    argv = ["/bin/sh", "-c", "echo $$ > pid; exec sleep 60"]
    assert outside(tools, argv, tmp_path) == (1, "sh took over 0.5 s")
    with pytest.raises(ProcessLookupError):
        os.kill(process_of(tmp_path), 0)
    tools = replace(tools, timeout_s=50)
    (tmp_path / "pid").unlink()
    began = time.monotonic()
    with cancelled_by((tmp_path / "pid").exists), pytest.raises(Cancelled):
        outside(tools, argv, tmp_path)
    assert time.monotonic() - began < 20
    with pytest.raises(ProcessLookupError):
        os.kill(process_of(tmp_path), 0)


def test_an_installer_prints_to_its_caller(tmp_path: Path) -> None:
    tools = tools_for(tmp_path, "pip")
    assert outside(tools, ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path) == (3, "out\nerr")
