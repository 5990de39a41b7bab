"""Items that are known beforehand to run in another process than their run: nothing is asked."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from support.project import Project

from pytest_tfgrpo.plugin import one_process
from pytest_tfgrpo.plugin.distributed import MISUSE
from pytest_tfgrpo.plugin.one_process import InOtherProcess, OneProcess, refuse_known

OPTION = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--forked", action="store_true")

def pytest_configure(config):
    config.addinivalue_line("markers", "forked: run this test in a process of its own")

def pytest_runtest_setup(item):
    assert not item.config.getoption("forked"), "the run was not refused"
"""
MARKED = """
@pytest.mark.forked
@pytest.mark.tfgrpo(**MARK, split="eval")
def test_marked(rollout):
    assert rollout.answer == "3"
"""
SAYS = "*ERROR: scenarios and gates must run in process *"


@pytest.mark.parametrize("args", [("--forked",), ("--forked", "--tfgrpo")], ids=["plain", "learning"])
def test_the_option_is_a_usage_error_before_anything_is_asked(
    project: Project, args: tuple[str, ...]
) -> None:
    result = project.conftest(OPTION).scenarios().run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([SAYS])
    assert project.calls == []
    assert project.run("--forked", "--collect-only").ret == pytest.ExitCode.OK


def test_the_mark_means_something_where_a_plugin_has_the_option(project: Project) -> None:
    project.checker(MARKED)
    assert project.run("-W", "ignore").ret == pytest.ExitCode.OK
    result = project.conftest(OPTION).run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([SAYS])


def test_tests_without_a_run_are_forked_as_they_like(project: Project) -> None:
    project.conftest(OPTION.replace("assert not", "assert")).write("test_x.py", "def test_x(): pass\n")
    project.run("--forked", "test_x.py").assert_outcomes(passed=1)


Looping = type("Looping", (), {"__module__": "xdist.looponfail"})


@pytest.mark.parametrize(
    ("plugins", "forked", "marked", "refused"),
    [
        ([], None, [False], None),
        ([object()], None, [True], None),
        ([], False, [], None),
        ([], False, [False, False], None),
        ([], False, [False, True], "must run in process"),
        ([], True, [False], "must run in process"),
        ([object(), Looping()], None, [False], "cannot run with --looponfail"),
    ],
)
def test_what_would_run_items_elsewhere_or_for_ever_is_refused_beforehand(
    plugins: list[object], forked: bool | None, marked: list[bool], refused: str | None
) -> None:
    config: Any = SimpleNamespace(
        pluginmanager=SimpleNamespace(get_plugins=lambda: plugins),
        getoption=lambda name, default: default if forked is None else forked,
    )
    items: Any = [
        SimpleNamespace(get_closest_marker=lambda name, one=one: name == "forked" and one) for one in marked
    ]
    with pytest.raises(pytest.UsageError, match=refused) if refused else nullcontext():
        refuse_known(config, items)


def test_an_item_in_another_process_fails_at_once_and_ends_the_session_of_the_run_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config: Any = SimpleNamespace(workeroutput={})
    monkeypatch.setattr(one_process, "is_scenario_item", lambda item: item == "scenario")
    process, (scenario, other) = OneProcess(config), ("scenario", "another test")
    try:
        own = process._pid
        for item in (scenario, other):
            process.pytest_runtest_setup(item)  # type: ignore[arg-type]
        process._pid = own + 1
        process.pytest_runtest_setup(other)  # type: ignore[arg-type]
        assert process.misused is False
        process.pytest_runtest_logreport()
        with pytest.raises(InOtherProcess, match=f"must run in process {own + 1}"):
            process.pytest_runtest_setup(scenario)  # type: ignore[arg-type]
        assert process.misused is True
        process.pytest_runtest_logreport()  # in the other process nothing ends
        assert config.workeroutput == {}
        process._pid = own
        for end in (process.pytest_runtest_logreport, process.pytest_runtest_logfinish):
            with pytest.raises(pytest.UsageError, match=f"must run in process {own}"):
                end()
        assert "must run in process" in config.workeroutput[MISUSE], "the controller hears of it"
    finally:
        process.close()
