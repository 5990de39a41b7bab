"""pytest-xdist: scenario items go to one worker, and the report is the same as without."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from pytest_tfgrpo.core.records import Mode
from pytest_tfgrpo.core.texts.named_values import phase_label
from pytest_tfgrpo.plugin.distributed import (
    MISUSE,
    OUTPUT,
    PLACES,
    RUN_ID,
    SCREEN,
    Controller,
    WorkerScreen,
    is_scenario_id,
    places,
    raise_again,
    screen_of,
)
from pytest_tfgrpo.plugin.progress import screen
from pytest_tfgrpo.plugin.progress.live_line import Moment, Part

SCENARIO = "a.scenario.yaml::x"
ASKED = set(get_args(Mode)) - {"evidence", "dev"}
"""Phases whose rollouts test functions can judge."""


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        ("fixtures/a.scenario.yaml::x[epoch1]", True),
        ("a.scenarios.jsonl::x", True),
        ("pytest.ini::gate", True),
        ("pytest.ini::added[baseline]", True),
        ("test_a.py::test_x[tfgrpo-epoch3-eval-r0]", True),
        *((f"test_a.py::test_x[tfgrpo-{phase_label(2, mode)}-r0]", True) for mode in sorted(ASKED)),
        ("test_a.py::test_x[a-b-tfgrpo-baseline-r11]", True),
        ("test_a.py::test_x[a-b-tfgrpo-gpt-x.1-epoch2-r0]", True),
        ("test_a.py::test_x[tfgrpo]", False),
        ("test_a.py::test_x", False),
        ("test_tfgrpo.py::test_epoch1", False),
    ],
)
def test_scenario_items_are_known_by_their_node_ids(node_id: str, expected: bool) -> None:
    assert is_scenario_id(node_id, "pytest.ini") is expected


def test_the_live_line_of_a_worker_that_is_gone_is_taken_away(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    channel = SimpleNamespace(setcallback=lambda show, endmarker: given.update(show=show, end=endmarker))
    node = SimpleNamespace(workerinput={}, gateway=SimpleNamespace(newchannel=lambda: channel))
    done: list[str] = []
    screen = SimpleNamespace(clear=lambda: done.append("clear"), keep=done.append)
    monkeypatch.setattr(pytestconfig, "get_verbosity", lambda *_: 0)
    controller = Controller(pytestconfig, lambda _: None)
    monkeypatch.setattr(controller, "_screen", screen)
    controller.pytest_configure_node(node)
    given["show"](("keep", "tfgrpo epoch1: ..."))
    given["show"](given["end"])  # what execnet passes on when the worker is killed
    assert done == ["tfgrpo epoch1: ...", "clear"]


@pytest.mark.parametrize(
    ("ids", "reports", "mode", "options", "error"),
    [
        (["test_a.py::test_x"], [], "each", {}, None),
        (["test_a.py::test_x"], ["test_b.py"], "load", {}, None),
        ([SCENARIO], [], "load", {}, None),
        ([SCENARIO], [], "loadfile", {}, None),
        ([SCENARIO], [], "loadscope", {}, None),
        (
            ["test_a.py::test_x", SCENARIO],
            [],
            "each",
            {},
            "scenarios cannot run with --dist each; use --dist",
        ),
        ([SCENARIO], ["test_b.py"], "load", {}, "1 error during collection"),
        ([SCENARIO], ["test_b.py", "test_c.py"], "each", {}, "2 errors during collection"),
        ([SCENARIO], ["test_b.py"], "load", {"continue_on_collection_errors": True}, None),
        ([SCENARIO], ["test_b.py"], "each", {"continue_on_collection_errors": True}, "cannot run with"),
        ([], [SCENARIO], "load", {}, "1 error during collection"),
        ([], [], "each", {}, None),
    ],
)
def test_scenarios_are_refused_where_workers_would_run_them_apart_or_in_part(
    ids: list[str], reports: list[str], mode: str, options: Any, error: str | None
) -> None:
    config: Any = SimpleNamespace(getoption=({"dist": mode} | options).get, inipath=None)
    controller: Any = Controller.__new__(Controller)
    controller._config, controller._errors, controller._scenarios = config, 0, False
    controller._screen = SimpleNamespace()
    for node_id in reports:
        controller.pytest_collectreport(SimpleNamespace(failed=True, nodeid=node_id))
    controller.pytest_collectreport(SimpleNamespace(failed=False, nodeid="test_z.py"))
    refusal = pytest.Session.Interrupted if error and "error" in error else pytest.UsageError
    with pytest.raises(refusal, match=error) if error else nullcontext():
        controller.pytest_xdist_node_collection_finished(ids)


@pytest.mark.parametrize("output", [{}, {OUTPUT: {"lines": []}}, {MISUSE: "why", OUTPUT: {"lines": []}}])
def test_a_worker_that_ended_hands_over_its_report_or_its_refusal(output: dict[str, Any]) -> None:
    controller: Any = Controller.__new__(Controller)
    adopted: list[object] = []
    controller._adopt = adopted.append
    with pytest.raises(pytest.UsageError, match="why") if MISUSE in output else nullcontext():
        controller.pytest_testnodedown(SimpleNamespace(workeroutput=output) if output else SimpleNamespace())
    assert adopted == ([output[OUTPUT]] if OUTPUT in output and MISUSE not in output else [])


@pytest.mark.parametrize(
    ("worker", "verbosity", "shown"),
    [
        ({"workerinput": {}}, 0, None),
        ({"workerinput": {SCREEN: None}}, 0, None),
        ({"workerinput": {SCREEN: "channel"}}, 0, "worker"),
        ({"workerinput": {SCREEN: "channel"}}, -1, "worker"),
        ({}, 0, "own"),
        ({}, -1, None),
    ],
)
def test_a_worker_shows_how_far_it_is_where_its_controller_does(
    worker: Any, verbosity: int, shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "open_screen", lambda config: "own")
    config: Any = SimpleNamespace(get_verbosity=lambda: verbosity, **worker)
    found = screen_of(config)
    assert ("worker" if isinstance(found, WorkerScreen) else found) == shown


class Node:
    """A worker of pytest-xdist."""


@pytest.mark.parametrize(
    ("mode", "own", "scopes"),
    [
        ("load", "LoadScheduling", ["test_a.py::T::test_x", "test_a.py::test_y"]),
        ("loadfile", "LoadFileScheduling", ["test_a.py", "test_a.py"]),
        ("loadscope", "LoadScopeScheduling", ["test_a.py::T", "test_a.py"]),
    ],
)
def test_scenarios_are_one_scope_and_other_tests_have_those_of_the_mode(
    mode: str, own: str, scopes: list[str]
) -> None:
    config: Any = SimpleNamespace(getoption={"dist": mode}.get, inipath=None)
    config.getvalue = lambda _: ["popen", "popen"]
    controller = Controller(config, lambda _: None)
    others = ["test_a.py::T::test_x", "test_a.py::test_y"]
    for items, kind in ((others, own), ([*others, SCENARIO, "added.scenario.yaml::y"], "Together")):
        deferring: Any = controller.pytest_xdist_make_scheduler(config, None)
        nodes = Node(), Node()
        for node in nodes:
            deferring.add_node(node)
        assert type(deferring._inner).__name__ == own
        for node in nodes:
            deferring.add_node_collection(node, items)
        assert type(deferring._inner).__name__ == kind
        assert list(deferring.nodes) == [*nodes]
        assert deferring.collection_is_completed
    split = deferring._split_scope
    assert [split(id_) for id_ in others] == scopes
    assert split(SCENARIO) == split("added.scenario.yaml::y") not in scopes
    assert controller.pytest_xdist_make_scheduler(SimpleNamespace(getoption=lambda _: "each"), None) is None


def started(root: Path, *args: str, source: str = "ARGS", start: str = "", verbosity: int = 0) -> Any:
    """Return the configuration of a controller that was given these words in a folder of its rootdir."""
    return SimpleNamespace(
        rootpath=root,
        args=args,
        args_source=pytest.Config.ArgsSource[source],
        invocation_params=SimpleNamespace(dir=root / start),
        get_verbosity=lambda: verbosity,
    )


@pytest.mark.parametrize(
    ("args", "source", "start", "found", "whole"),
    [
        (["a.yaml::x", "b"], "ARGS", "", ["a.yaml", "b"], False),
        (["a", "."], "ARGS", "", ["a", ""], True),
        ([".."], "ARGS", "a", [""], True),
        (["b.yaml::x"], "ARGS", "a", ["a/b.yaml"], False),
        (["a", "b"], "TESTPATHS", "", ["a", "b"], True),
        (["../.."], "INVOCATION_DIR", "a", [".."], True),
    ],
)
def test_the_whole_suite_is_what_testpaths_says_or_a_folder_that_holds_the_rootdir(
    args: list[str], source: str, start: str, found: list[str], whole: bool, tmp_path: Path
) -> None:
    root = tmp_path.resolve() / "suite"
    expected = [str((root / one).resolve()) for one in found]
    assert places(started(root, *args, source=source, start=start)) == (expected, whole)
    worker: Any = SimpleNamespace(workerinput={PLACES: (["/x"], False)})
    assert places(worker) == (["/x"], False)
    assert places(SimpleNamespace(workerinput={})) == ([], True)  # type: ignore[arg-type]


def test_all_workers_have_one_run_and_a_channel_each_to_show_what_they_do(tmp_path: Path) -> None:
    calls: list[Any] = []

    def node() -> Any:
        channel = SimpleNamespace(setcallback=lambda show, endmarker: calls.append(show))
        return SimpleNamespace(workerinput={}, gateway=SimpleNamespace(newchannel=lambda: channel))

    controller = Controller(started(tmp_path, "a"), lambda _: None)
    nodes = [node(), node()]
    for one in nodes:
        controller.pytest_configure_node(one)
    first, second = (one.workerinput for one in nodes)
    assert first[RUN_ID] == second[RUN_ID] != ""
    assert first[PLACES] == second[PLACES] == ([str(tmp_path.resolve() / "a")], False)
    assert None is not first[SCREEN] is not second[SCREEN]
    calls[0](("keep", "before there is a screen"))

    told: list[Any] = []
    controller._screen = SimpleNamespace(  # type: ignore[assignment]
        show=told.append,
        keep=told.append,
        clear=lambda: told.append("clear"),
        finish=lambda: told.append("end"),
    )
    moment = Moment(1.5, 0.25, [Part("tfgrpo ", "", "1"), Part("x", colour="red")])
    sent: list[Any] = []
    worker = WorkerScreen(SimpleNamespace(send=sent.append))
    worker.show(moment)
    worker.keep("kept")
    worker.finish()
    for message in sent:
        calls[1](message)
    controller.pytest_sessionfinish()
    assert told == [moment, "kept", "clear", "end"]
    Controller(started(tmp_path), lambda _: None).pytest_sessionfinish()


def test_a_worker_whose_controller_has_gone_goes_on() -> None:
    def send(message: object) -> None:
        raise OSError("cannot send (already closed?)")

    WorkerScreen(SimpleNamespace(send=send)).keep("kept")


def test_the_misuse_of_a_worker_is_raised_again_where_it_has_one() -> None:
    with pytest.raises(pytest.UsageError, match=r"^why$"):
        raise_again(SimpleNamespace(workeroutput={MISUSE: "why"}))  # type: ignore[arg-type]
    for config in (SimpleNamespace(workeroutput={}), SimpleNamespace()):
        raise_again(config)  # type: ignore[arg-type]


def test_scenarios_that_one_of_several_files_has_stay_known() -> None:
    config: Any = SimpleNamespace(getoption={"dist": "each"}.get, inipath=None)
    controller: Any = Controller(config, lambda _: None)
    controller._screen = SimpleNamespace()
    for node_id in (SCENARIO, "test_b.py"):
        controller.pytest_collectreport(SimpleNamespace(failed=True, nodeid=node_id))
    with pytest.raises(pytest.Session.Interrupted, match="2 errors during collection"):
        controller.pytest_xdist_node_collection_finished([])
