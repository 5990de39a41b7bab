"""The guard of the default tier, around tests that break its rule."""

import os

import pytest
from support import ROOT

GUARDED = """
from pathlib import Path
from support import guard

pytest_plugins = ["pytester"]
guard.TESTS = Path(__file__).parent
guard.SLOW = guard.TESTS / "slow"

def pytest_configure(config):
    config.pluginmanager.register(guard.Guard())
"""

BROKEN = """
import os, subprocess, sys, time

def test_child():
    subprocess.run([sys.executable, "-c", ""])

def test_fork():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)

def test_left():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])

def test_sleep():
    time.sleep(0.06)

def test_runs(pytester):
    for _ in range(5):
        pytester.inline_run("--version")

def test_git():
    subprocess.run(["git", "--version"], capture_output=True)
    for _ in range(10):
        time.sleep(0.01)
"""


def test_a_test_that_breaks_the_rule_fails_by_name_and_says_where_it_belongs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests'}{os.pathsep}{ROOT}")
    pytester.makeconftest(GUARDED)
    for folder in (".", "slow"):
        (pytester.path / folder).mkdir(exist_ok=True)
        (pytester.path / folder / "test_it.py").write_text(BROKEN)
    flags = ("-p", "no:cacheprovider", "-p", "no:randomly", "--import-mode=importlib")
    result = pytester.runpytest_subprocess(*flags, "-W", "ignore", ".", "slow")
    errors = [line for line in result.outlines if "it belongs in" in line]
    told = {line.split(" ", 2)[0].rpartition("::")[2]: line.split(" ", 1)[1] for line in errors}
    assert told.keys() == {"test_child", "test_fork", "test_left", "test_sleep", "test_runs"}
    assert told["test_fork"].startswith("starts a process (os.fork): it belongs in")
    assert told["test_sleep"].startswith("sleeps 0.06 s")
    assert told["test_runs"].startswith("runs pytest 5 times")
    assert all(line.endswith("slow/test_it.py") for line in told.values())
