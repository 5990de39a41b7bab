"""A part of a suite is never judged as the whole, and a dry run hides nothing."""

from support.project import Project


def test_a_limit_that_leaves_out_nothing_changes_nothing(project: Project) -> None:
    project.ini(actor="python:agent:right", gate_min_mean=0.9).scenarios(train=0, sweep=10)
    result = project.run("--tfgrpo-limit=10")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["gate  passed*"])
