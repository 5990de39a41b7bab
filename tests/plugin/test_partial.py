"""A part of a suite is never judged as the whole, and a dry run hides nothing."""

import pytest
from support.project import Project

FUNCTIONS = """
import pytest

@pytest.mark.tfgrpo(domain="d", prompt="an easy one", split="eval")
def test_easy(rollout):
    pass

@pytest.mark.tfgrpo(domain="d", prompt="a hard one", split="eval")
def test_hard(rollout):
    assert 0
"""


@pytest.mark.parametrize(
    "selection",
    [["test_it.py", "-k", "easy"], ["test_it.py::test_easy"], ["--deselect", "test_it.py::test_hard"]],
)
def test_leaving_out_a_marked_test_function_leaves_the_gate_open(
    project: Project, selection: list[str]
) -> None:
    project.ini(actor="python:agent:right", gate_min_mean=0.9).write("test_it.py", FUNCTIONS)
    assert project.learn().ret == 1
    result = project.learn(*selection)
    result.stdout.fnmatch_lines(["gate  inconclusive*", "*not checked*part of the suite*"])
    assert project.report()["partial_selection"] is True


def test_a_hook_that_drops_one_scenario_and_adds_another_makes_the_selection_partial(
    project: Project,
) -> None:
    project.scenarios(train=0, sweep=2).conftest("""
from dataclasses import replace

def pytest_tfgrpo_scenarios(config, scenarios):
    return [scenarios[0], replace(scenarios[0], id="more", prompt="more", stamp="f" * 64)]
""")
    project.learn().stdout.fnmatch_lines(["*not checked*part of the suite*"])


def test_last_failed_makes_the_selection_partial(project: Project) -> None:
    project.scenarios("good", train=0).scenarios("bad", train=0, min_score=1.0)
    checks = [{"kind": "exact", "value": "4"}]
    project.scenarios("bad", train=0, min_score=1.0, checks=checks)
    first = project.pytester.runpytest_inprocess("--tfgrpo")
    assert first.ret == 1
    result = project.pytester.runpytest_inprocess("--tfgrpo", "--lf")
    result.stdout.fnmatch_lines(["*not checked*part of the suite*"])


def test_a_broken_scenario_file_makes_the_selection_partial(project: Project) -> None:
    project.scenarios(train=0).write("broken.scenario.yaml", "id: [")
    result = project.learn("--continue-on-collection-errors")
    result.stdout.fnmatch_lines(["*not checked*part of the suite*"])
    assert result.ret == 1


def test_a_dry_run_does_not_hide_a_failing_test(project: Project) -> None:
    project.scenarios().write("test_other.py", "def test_it():\n    assert 0\n")
    assert project.learn("--tfgrpo-dry-run").ret == 1


def test_of_a_very_large_file_only_what_was_drawn_is_waited_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.plugin.items.BULK", 3)
    project.ini(actor="python:agent:right", sample_size=2).scenarios(train=5, sweep=3)
    assert project.learn().ret == 0
