"""What a contaminated suite comes to: an error before anything is asked, or a warning where that is set."""

from support.project import Project


def test_earlier_runs_on_the_same_eval_tasks_are_counted(project: Project) -> None:
    project.scenarios(train=4, sweep=4).ini(actor="python:agent:learner", group_size=2)
    project.learn()
    assert project.report()["evaluations"] == {"earlier": 0, "runs": [], "looks": 1}
    project.learn("--tfgrpo-seed", "2", "--tfgrpo-max-steps", "3")
    first, second = (folder.name for folder in project.runs())
    assert project.report()["evaluations"] == {"earlier": 1, "runs": [first], "looks": 2}
    project.learn("--tfgrpo-dry-run")
    project.scenarios("more", train=2, sweep=0)
    project.learn()
    assert project.report()["evaluations"]["runs"] == [first, second]
    project.scenarios("other", train=0, sweep=1)
    project.learn()
    assert project.report()["evaluations"] == {"earlier": 0, "runs": [], "looks": 1}
