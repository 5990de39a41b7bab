"""A plugin that uses every hook."""

from support.plugin.hooks import MADE
from support.project import Project


def test_workers_run_what_a_hook_makes_once(project: Project) -> None:
    project.plugins("xdist").conftest(MADE).write("test_x.py", "def test_x(): pass\n")
    project.run("-n", "2").assert_outcomes(passed=7)
    assert len(project.calls) == 6
