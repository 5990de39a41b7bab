"""Test functions marked with ``tfgrpo``."""

from support.plugin.markers import LONG
from support.project import Project


def test_what_a_test_function_says_of_a_rollout_does_not_depend_on_the_verbosity(project: Project) -> None:
    project.checker(LONG).ini(actor="python:agent:right", epochs=1, eval_mode="separate", group_size=2)
    reasons = []
    for arguments in ((), ("-q",), ("-v",), ("-vv",), ("-vvv",)):
        project.learn(*arguments)
        reasons.append([event["reason"] for event in project.events("judgement")])
    assert len(reasons[0]) == 8
    assert all(reasons[0])
    assert "0x" not in "".join(reasons[0])
    assert reasons == [reasons[0]] * 5
