"""A run that could teach or show nothing, as its user meets it."""

import pytest
from support.project import Project


def test_it_stops_before_it_learns_fails_and_goes_on_when_told_to(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(actor="python:agent:wrong", group_size=2, headroom="stop")
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = " ".join(result.stdout.str().split())
    assert "tfgrpo headroom: 0 of 8 first training groups had mixed results" in said
    assert "the run is incomplete: headroom = stop: none of the first 8 training groups" in said
    assert project.report()["status"] == "incomplete"
    assert len(project.calls) == 2 * 8  # nothing of the sweeps
    (run,) = project.runs()
    again = project.learn(f"--tfgrpo-resume={run.name}", "--tfgrpo-headroom=show")
    assert "tfgrpo headroom: 0 of 8" in " ".join(again.stdout.str().split())
    assert project.report()["status"] == "complete"
    assert sum("train" in id_ for id_ in project.calls) == 2 * 8 * 2


def test_where_there_is_something_to_gain_it_stops_nothing(project: Project) -> None:
    project.scenarios(train=8, sweep=8).ini(actor="python:agent:learner", group_size=4, headroom="stop")
    assert project.learn().ret == 0
    assert project.report()["status"] == "complete"
