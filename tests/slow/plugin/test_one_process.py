"""Items in forked children, by a plugin that is not known: they fail at once, and the session says why."""

from __future__ import annotations

import pytest
from support.project import Project

FORK = """
import os
import signal

import pytest
from _pytest.runner import runtestprotocol

REPORTED = {reported}
FORKED = {forked}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if FORKED not in item.nodeid:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # one that waits for the engine would wait for ever
        try:
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            os.write(writing, str(reports[0].longrepr).encode()[:4000])
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        text = told.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hung, or fell over"
    with open("children.log", "a") as log:
        log.write(text + "\\n")
    if REPORTED:
        report = pytest.TestReport(item.nodeid, item.location, {{}}, "failed", text, "setup")
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""
SAYS = "scenarios and gates must run in process"
CHECKER = """
@pytest.mark.tfgrpo(**MARK, split="eval")
def test_forked(rollout):
    assert rollout.answer == "3"
"""


def run(project: Project, *args: str) -> pytest.RunResult:
    """Run pytest in a process of its own, which has no other threads that a fork could break."""
    return project.pytester.runpytest_subprocess("-p", "no:cacheprovider", *args, timeout=100)


def forking(project: Project, *, reported: bool = True, forked: str = "") -> Project:
    return project.conftest(FORK.format(reported=reported, forked=repr(forked)))


@pytest.mark.parametrize("mode", [(), ("--tfgrpo",)], ids=["plain", "learning"])
@pytest.mark.parametrize("reported", [True, False], ids=["reported", "silent"])
def test_a_scenario_in_a_child_ends_the_session_before_anything_is_asked(
    project: Project, mode: tuple[str, ...], reported: bool
) -> None:
    forking(project, reported=reported).scenarios()
    result = run(project, *mode)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*ERROR: {SAYS}*"])
    result.stdout.no_fnmatch_line("*the gate did not run*")
    (told,) = (project.root / "children.log").read_text().splitlines()
    assert told.startswith(SAYS)
    assert project.calls == []


def test_a_marked_test_function_in_a_child_waits_for_nothing(project: Project) -> None:
    """The run is under way when its first item is forked: it ends with what it has."""
    project.ini(actor="python:agent:right", out="out")
    forking(project, forked="test_forked").scenarios().checker(CHECKER)
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*ERROR: {SAYS}*"])
    assert project.report()["status"] == "cancelled"
    assert (project.root / "children.log").read_text().startswith(SAYS)


def test_a_gate_in_a_child_judges_nothing(project: Project) -> None:
    forking(project, forked="::gate").scenarios()
    result = run(project, "--tfgrpo")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*ERROR: {SAYS}*"])


def test_a_worker_hands_the_usage_error_to_its_controller(project: Project) -> None:
    forking(project.plugins("xdist")).scenarios()
    result = run(project, "-n", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert SAYS in result.stderr.str() + result.stdout.str()
    assert project.calls == []
