"""The end of an invocation: in which order runs end, what is shown, and what pytest's exit status becomes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.launch import agents
from pytest_tfgrpo.plugin import distributed
from pytest_tfgrpo.plugin.section import RunSection, markup_of
from pytest_tfgrpo.plugin.session_end import AGAIN, SessionEnd

GATED = {"gate_min_mean": 0.5}
OK, FAILED, NOTHING = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


class Run(SimpleNamespace):
    """A run that notes what is done with it."""

    def __init__(self, log: list[str], agent: str = "", **fields: Any) -> None:
        def noted(what: str) -> Any:
            return lambda *why: log.append(" ".join(filter(None, (what, agent, *why))))

        started = fields.pop("started", True)
        finish = fields.pop("finish", noted("finish"))
        live = SimpleNamespace(
            started=started,
            job=SimpleNamespace(run_id="run1"),
            finish=finish,
            **{name: noted(name) for name in ("stop", "join", "release")},
        )
        known: dict[str, Any] = {
            "lines": ["score 1"],
            "notes": [],
            "warnings": [],
            "failed": False,
            "unsound": False,
        }
        known |= {"ended": None, "folder": None}
        known |= fields
        launch = SimpleNamespace(prepared=SimpleNamespace(folder=known.pop("folder")))
        super().__init__(agent=agent, live=live, launch=launch, conclude=noted("conclude"), **known)


def make_end(runs: list[Any], options: Any = (), settings: Any = (), **config: Any) -> SessionEnd:
    made: Any = SimpleNamespace(
        getoption=dict(options).get,
        get_verbosity=lambda: 1,
        rootpath=SimpleNamespace(name="suite"),
        invocation_params=SimpleNamespace(dir="/here"),
        **config,
    )
    return SessionEnd(made, resolve(dict(settings), {}, {}), {run.agent: run for run in runs})


def finished(end: SessionEnd, exitstatus: int = OK, **session: Any) -> int:
    """End pytest's session; returns its exit status."""
    ended: Any = SimpleNamespace(
        **{"exitstatus": exitstatus, "shouldstop": False, "shouldfail": False, "testsfailed": 0} | session
    )
    end.pytest_sessionfinish(ended, exitstatus)
    found: int = ended.exitstatus
    return found


def ran(end: SessionEnd) -> SessionEnd:
    loop = end.pytest_runtestloop()
    next(loop)
    with pytest.raises(StopIteration) as result:
        loop.send(True)
    assert result.value.value is True
    return end


@pytest.mark.parametrize(
    ("is_over", "status", "session", "finishes"),
    [
        (True, OK, {}, True),
        (True, FAILED, {}, True),
        (False, OK, {}, False),
        (True, pytest.ExitCode.INTERRUPTED, {}, False),
        (True, pytest.ExitCode.USAGE_ERROR, {}, False),
        (True, FAILED, {"shouldstop": "stopped"}, False),
        (True, FAILED, {"shouldfail": "failed"}, False),
    ],
)
def test_runs_go_to_their_very_end_only_where_all_items_ran(
    is_over: bool, status: int, session: Any, finishes: bool
) -> None:
    log: list[str] = []
    end = make_end([Run(log, "a"), Run(log, "b")])
    assert finished(ran(end) if is_over else end, status, **session) == status
    stopped = "".join(f"pytest stopped: {why}" for why in session.values()) or "interrupted"
    assert log == ["finish a", "finish b"] * finishes + [
        *(f"stop a {stopped}", f"stop b {stopped}", "conclude a", "conclude b", "join a", "join b")
    ]
    assert end.section.lines == ["", "agent  a", "score 1", "", "agent  b", "score 1"]


@pytest.mark.parametrize("started", [[False], [True], [False, True], [True, False]])
def test_all_runs_end_once_one_of_them_has_started(started: list[bool]) -> None:
    log: list[str] = []
    finished(ran(make_end([Run(log, str(n), started=one) for n, one in enumerate(started)])))
    assert ("stop 0 interrupted" in log) is any(started)


@pytest.mark.parametrize(
    ("fields", "failed", "status", "then"),
    [
        ({}, False, OK, OK),
        ({"unsound": True}, False, OK, FAILED),
        ({"failed": True}, False, OK, FAILED),
        ({}, True, OK, FAILED),
        ({"unsound": True}, False, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERRUPTED),
        ({"failed": True}, False, NOTHING, NOTHING),
    ],
)
def test_what_a_run_found_fails_an_invocation_that_would_pass(
    fields: Any, failed: bool, status: int, then: int
) -> None:
    end = make_end([Run([]), Run([], "b", **fields)])
    if failed:
        end.section.fail("why")
    assert finished(ran(end), status) == then


@pytest.mark.parametrize(
    ("options", "lines", "then"),
    [
        ({"tfgrpo_dry_run": True}, ["plan"], OK),
        ({"tfgrpo_dry_run": True}, [], NOTHING),
        ({}, ["plan"], NOTHING),
    ],
)
def test_a_dry_run_that_shows_its_plan_passes_though_nothing_ran(
    options: Any, lines: list[str], then: int
) -> None:
    end = make_end([Run([], started=False)], options)
    end.section.lines += lines
    assert finished(end, NOTHING) == then


@pytest.mark.parametrize(
    ("runs", "options", "settings", "config", "misused", "bypassed"),
    [
        (1, {}, GATED, {}, None, True),
        (1, {}, GATED, {}, False, True),
        (1, {}, GATED, {}, True, False),
        (0, {}, GATED, {}, None, False),
        (1, {}, {}, {}, None, False),
        (1, {}, GATED, {"workerinput": {}}, None, False),
        (1, {"tfgrpo_dry_run": True}, GATED, {}, None, False),
        (1, {"setuponly": True}, GATED, {}, None, False),
        (1, {"setupplan": True}, GATED, {}, None, False),
    ],
)
def test_a_gate_whose_items_somebody_removed_fails_the_invocation(
    runs: int, options: Any, settings: Any, config: Any, misused: bool | None, bypassed: bool
) -> None:
    end = make_end([Run([], started=False)] * runs, options, settings, **config)
    end.process = None if misused is None else SimpleNamespace(misused=misused)  # type: ignore[assignment]
    assert finished(ran(end)) == (FAILED if bypassed else OK)
    told = "tfgrpo: the gate did not run: something removed its items, or ended the session"
    assert end.section.lines == [told] * bypassed


@pytest.mark.parametrize("failed", [0, 1])
def test_a_gate_is_not_said_to_be_removed_where_collection_failed(failed: int) -> None:
    end = make_end([Run([], started=False)], {}, GATED)
    stopped = pytest.ExitCode.INTERRUPTED
    assert finished(end, stopped, testsfailed=failed) == stopped
    assert end.section.lines[0].endswith("run: collection failed") is bool(failed)


def test_a_gate_whose_items_ran_is_not_bypassed() -> None:
    end = make_end([Run([])], {}, GATED)
    assert finished(ran(end)) == OK
    assert end.section.lines == ["score 1"]


@pytest.mark.parametrize(
    ("folder", "advice"), [(None, "nothing is kept"), ("/out", "go on with --tfgrpo-resume=run1")]
)
def test_a_second_interrupt_says_how_to_go_on(folder: str | None, advice: str) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    end = make_end([Run([], finish=interrupted, folder=folder)])
    assert finished(ran(end)) == pytest.ExitCode.INTERRUPTED
    assert end.section.lines == [AGAIN + advice]


@pytest.mark.parametrize("lines", [[], ["score 1"]])
def test_a_worker_hands_over_what_it_has_to_show(lines: list[str]) -> None:
    end = make_end([Run([], lines=lines, notes=["note"])], workerinput={}, workeroutput={})
    finished(ran(end))
    handed = end._config.workeroutput  # type: ignore[attr-defined]
    expected = {"lines": lines, "notes": ["note"], "warnings": [], "failed": False}
    assert handed == ({distributed.OUTPUT: expected} if lines else {})
    other = RunSection()
    other.adopt(expected)
    assert other.output() == expected


@pytest.mark.parametrize("ended", [[None, None], ["x", None], ["x", "y"], ["x", None, "z"]])
@pytest.mark.parametrize(("settings", "task"), [({}, "suite"), ({"task_id": "demo"}, "demo")])
def test_agents_whose_runs_ended_are_compared(
    ended: list[str | None], settings: Any, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def compare(*args: Any, **more: Any) -> list[str]:
        asked.append((args, more))
        return ["table"]

    monkeypatch.setattr(agents, "compare_agents", compare)
    runs = [Run([], f"a{n}", ended=one, folder=f"/{n}", lines=[]) for n, one in enumerate(ended)]
    end = make_end(runs, {}, settings)
    finished(ran(end))
    known = {f"a{n}": one for n, one in enumerate(ended) if one is not None}
    if len(known) < 2:
        assert (asked, end.section.lines) == ([], [])
        return
    folders = {f"a{n}": f"/{n}" for n in range(len(ended))}
    assert asked == [((known, folders), {"task": task, "verbosity": 1, "start": "/here"})]
    assert end.section.lines == ["", "2 agents", "table"]


def test_a_comparison_that_cannot_be_written_fails_the_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(*_: Any, **__: Any) -> list[str]:
        raise StoreError("/out is full")

    monkeypatch.setattr(agents, "compare_agents", compare)
    end = make_end([Run([], name, ended="x", lines=[]) for name in "ab"])
    assert finished(ran(end)) == FAILED
    assert end.section.lines[-1] == "tfgrpo: /out is full"


def test_the_process_is_as_it_was_before() -> None:
    log: list[str] = []
    end = make_end([Run(log, "a", started=False), Run(log, "b")])
    end.pytest_unconfigure()
    assert log == ["release a", "release b"]
    end.process = SimpleNamespace(close=lambda: log.append("close"))  # type: ignore[assignment]
    end.pytest_unconfigure()
    assert log[2:] == ["release a", "release b", "close"]


@pytest.mark.parametrize(
    ("line", "markup"),
    [
        ("gate  passed", {"green": True}),
        ("gate main  FAILED", {"red": True}),
        ("gate  inconclusive", {"yellow": True}),
        ("gate", {}),
        ("warning: x", {"yellow": True}),
        ("the run is incomplete", {"yellow": True}),
        ("gain  +0.1", {"bold": True}),
        ("score  passed", {}),
        ("", {}),
    ],
)
def test_outcomes_and_warnings_have_a_colour(line: str, markup: dict[str, bool]) -> None:
    assert markup_of(line) == markup


@pytest.mark.parametrize("lines", [[], ["gate  passed", "score 1"]])
def test_the_section_is_shown_with_its_annotations(lines: list[str]) -> None:
    section, shown = RunSection(), []
    section.lines, section.notes = lines, ["::notice::x"]
    reporter: Any = SimpleNamespace(
        config=SimpleNamespace(inipath=Path("pytest.ini")),
        section=lambda title: shown.append(("section", title)),
        write_line=lambda line, **markup: shown.append((line, *markup)),
    )
    section.show(reporter)
    whole = [("section", "tfgrpo"), ("gate  passed", "green"), ("score 1",), ("::notice::x",)]
    assert shown == (whole if lines else [])


def test_what_several_runs_say_is_all_shown_under_their_names() -> None:
    first = Run([], "a", notes=["note a"], warnings=["odd", "rare"], failed=True)
    end = make_end([first, Run([], "b", notes=["note b"], warnings=["odd"], lines=[])], workerinput={})
    assert finished(ran(end)) == FAILED
    assert end.section.output() == {
        "lines": ["", "agent  a", "score 1"],
        "notes": ["note a", "note b"],
        "warnings": ["a: odd", "a: rare", "b: odd"],
        "failed": True,
    }
    other = RunSection()
    other.adopt(end.section.output())
    assert other.output() == end.section.output()


def test_the_first_of_two_runs_fails_the_invocation_and_says_how_to_go_on() -> None:
    end = make_end([Run([], unsound=True), Run([], "b")])
    assert finished(ran(end)) == FAILED

    def interrupted() -> None:
        raise KeyboardInterrupt

    end = make_end([Run([], finish=interrupted, folder="/out", lines=[]), Run([], "b")])
    end.section.lines = ["said before"]
    assert finished(ran(end)) == pytest.ExitCode.INTERRUPTED
    assert end.section.lines == [AGAIN + "go on with --tfgrpo-resume=run1"]


def test_a_gate_that_was_removed_is_all_that_is_said_though_a_file_was_not_collected() -> None:
    end = make_end([Run([], started=False)], {}, GATED)
    end.section.lines = ["said before"]
    assert finished(ran(end), FAILED, testsfailed=1) == FAILED
    told = "tfgrpo: the gate did not run: something removed its items, or ended the session"
    assert end.section.lines == [told]


def test_the_outcome_is_bold_and_refused_warnings_are_errors_of_the_ini_file_or_the_rootdir() -> None:
    for inipath, place in ((Path("/suite/pytest.ini"), "pytest.ini"), (None, "suite")):
        section, shown, stats = RunSection(), list[Any](), dict[str, Any](error=["another"])
        section.lines = ["score 1", "score 2"]
        section._refused = ["odd", "rare"]
        reporter: Any = SimpleNamespace(
            config=SimpleNamespace(inipath=inipath, rootpath=Path("/suite")),
            section=lambda title: None,
            write_line=lambda line, **markup: shown.append((line, markup)),  # noqa: B023
            stats=stats,
        )
        section.show(reporter)
        assert shown == [("score 1", {"bold": True}), ("score 2", {})]
        another, *refused = stats["error"]
        assert (another, [report.nodeid for report in refused]) == ("another", [place, place])
        assert [report.longrepr.reprcrash.message for report in refused] == [
            "TfgrpoWarning: odd",
            "TfgrpoWarning: rare",
        ]
