"""Progress while a run works."""

from support.project import Project


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
