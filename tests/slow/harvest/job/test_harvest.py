"""The harvest: what becomes of each change, and that nothing is proven twice."""

import os
import signal
import subprocess
import sys

import pytest
from support import ROOT
from support.harvest.harvest import Shop

from pytest_tfgrpo.harvest.fixes import HarvestStatus
from pytest_tfgrpo.harvest.suite.harvest_log import read_log_of
from pytest_tfgrpo.harvest.suite.suite_files import SuitePaths


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from support.text_tests import TextRunner, text_plan, text_tools
from pytest_tfgrpo.harvest.job.harvest import harvest

repository, commits, suite, stop_at, mark = sys.argv[1:]
places, really = [], {"replace": Path.replace, "fsync": os.fsync}

def reach():
    places.append(None)
    if len(places) == int(stop_at):
        os.kill(os.getpid(), signal.SIGKILL)

def replace(self, target):
    reach()
    done = really["replace"](self, target)
    reach()
    return done

def fsync(handle):
    reach()
    really["fsync"](handle)

Path.replace, os.fsync = replace, fsync
runner = TextRunner()
list(harvest(text_plan(Path(repository), commits, Path(suite), jobs=2), text_tools(runner)))
Path(mark).write_text("done")
"""


@pytest.mark.faults
@pytest.mark.parametrize("stop_at", [5, 12, 19, 26, 40])
def test_a_harvest_with_two_workers_that_is_killed_goes_on(shop, tmp_path, stop_at):
    for word in ("one", "two", "three"):
        shop.fix(word)
    mark = tmp_path / "mark"
    words = [str(shop.repository.folder), f"{shop.first}..main", str(shop.suite), str(stop_at), str(mark)]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT}",
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", KILLED, *words], env=environment, timeout=100)
    assert (done.returncode, mark.exists()) in ((-signal.SIGKILL, False), (0, True))
    for scenario in shop.suite.glob("*.yaml"):
        paths = SuitePaths(suite=shop.suite, id=scenario.name.removesuffix(".scenario.yaml"))
        assert all(path.is_file() for path in (paths.base, paths.hidden, paths.reference, paths.provenance))
    proven = len(list((shop.suite / "provenance").glob("*.json")))
    shop.harvest()
    assert len(shop.runner.runs) == 9 * (3 - proven)
    assert len(list(shop.suite.glob("*.yaml"))) == 3
    assert {row.status for row in read_log_of(shop.suite).values()} == {HarvestStatus.VALIDATED}
    assert not list(shop.suite.rglob("*.tmp"))
