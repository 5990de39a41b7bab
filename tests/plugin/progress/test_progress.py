"""Progress while a run works."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.project import Project
from support.sweeps import make_result

from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.plugin.progress import progress
from pytest_tfgrpo.plugin.progress.progress import Progress


def test_each_phase_leaves_a_line_below_the_list_of_tests_but_not_with_q(project: Project) -> None:
    project.scenarios()
    result = project.learn()
    result.stdout.fnmatch_lines(
        [
            "*[[]100%[]]",
            "tfgrpo epoch2: 4 rollouts scored, gt mean 1.000*",
            "tfgrpo baseline: 4 rollouts scored, gt mean 1.000, 2 scenarios with the answers",
            "  of the final sweep",
            "tfgrpo epoch3-eval: *",
            "",
            "*= tfgrpo =*",
        ]
    )
    project.learn("-q").stdout.no_fnmatch_line("tfgrpo baseline: *")


class Kept:
    """A screen that keeps what it is told."""

    every_s = 0.5

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.told: list[str] = []

    def keep(self, text: str) -> None:
        self.lines.append(text)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.told.append(name)


JOB: Any = SimpleNamespace()


def lesson(fate: str) -> Any:
    return SimpleNamespace(fate=fate)


def revised(*fates: str, lessons: int = 2) -> Any:
    tried = SimpleNamespace(lessons=[lesson(fate) for fate in fates])
    return SimpleNamespace(library=SimpleNamespace(experiences=("",) * lessons), acceptance=tried)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "epoch1: 3 rollouts scored, gt mean 0.667"),
        ({"groups": ()}, "epoch1: 0 rollouts scored, nothing scored"),
        ({"revision": revised()}, "epoch1: 3 rollouts scored, gt mean 0.667, 2 active lessons"),
        (
            {"revision": revised("refused", "accepted", "refused", lessons=1)},
            "epoch1: 3 rollouts scored, gt mean 0.667, 1 active lesson, 2 lessons left out by the dev split",
        ),
        (
            {"revision": revised("accepted", "kept", "replaced")},
            "epoch1: 3 rollouts scored, gt mean 0.667, 2 active lessons, accepted on the dev split",
        ),
        (
            {"status": "incomplete", "reason": "no budget"},
            "epoch1: 3 rollouts scored, gt mean 0.667 (incomplete: no budget)",
        ),
    ],
)
@pytest.mark.parametrize(("agent", "name"), [("", "tfgrpo"), ("gpt-x", "tfgrpo gpt-x")])
def test_the_line_of_a_phase_says_what_came_of_it(
    fields: dict[str, Any], text: str, agent: str, name: str
) -> None:
    screen = Kept()
    result = make_result({"a": [1.0, None], "b": [1.0, 0.0]}, mode="train")
    Progress(screen, Gauge(), JOB, agent).phase(replace(result, **fields))
    assert screen.lines == [f"{name} {text}"]


def test_without_a_screen_nothing_is_said_and_nothing_breaks() -> None:
    silent = Progress(None, Gauge(), JOB)
    for tell in (silent.tick, silent.clear, silent.finish):
        tell()
    silent.notice("paused")
    silent.phase(make_result({"a": [1.0]}))


def test_a_notice_is_one_line_with_the_name_of_the_run() -> None:
    screen = Kept()
    Progress(screen, Gauge(), JOB, "x").notice("paused\n" + "w" * 2000)
    [text] = screen.lines
    assert text.startswith("tfgrpo x paused")
    assert text.isprintable()
    assert len(text) <= 809


def test_what_goes_on_is_shown_no_more_often_than_is_wanted_and_affordable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A showing may cost a hundredth of the processor time, and comes after five seconds at the latest."""
    now, used, cost = [100.0], [50.0], [0.0]

    def thread_time() -> float:
        cost[0] += 0.01  # between two calls: what one showing takes
        return cost[0]

    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "process_time", lambda: used[0])
    monkeypatch.setattr(progress, "thread_time", thread_time)
    screen = Kept()
    shown = Progress(screen, Gauge(), JOB)
    monkeypatch.setattr(shown, "_moment", lambda: None)
    told = []
    for later, more in ((0.0, 0.0), (0.4, 2.0), (0.1, 0.0), (0.5, 0.0), (0.5, 0.5), (3.9, 0.0), (0.1, 0.0)):
        now[0] += later
        used[0] += more
        shown.tick()
        told.append(screen.told.pop() if screen.told else "")
    assert told == ["show", "", "show", "restore", "restore", "restore", ""]
    now[0] += 1.0
    shown.tick()
    assert screen.told == ["show"]
