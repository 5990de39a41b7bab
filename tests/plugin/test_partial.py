"""A part of a suite is never judged as the whole, and a dry run hides nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.frozen import Frozen
from support.project import Project

from pytest_tfgrpo import run
from pytest_tfgrpo.plugin.items import catalog

FUNCTIONS = """
import pytest

@pytest.mark.tfgrpo(domain="d", prompt="an easy one", split="eval")
def test_easy(rollout):
    pass

@pytest.mark.tfgrpo(domain="d", prompt="a hard one", split="eval")
def test_hard(rollout):
    assert 0
"""


def fail(project: Project) -> None:
    project.ini(actor="python:agent:right", gate_min_mean=0.9).write("test_it.py", FUNCTIONS)
    assert project.learn().ret == 1


@pytest.mark.parametrize(
    "selection",
    [["test_it.py", "-k", "easy"], ["test_it.py::test_easy"], ["--deselect", "test_it.py::test_hard"]],
)
def test_leaving_out_a_marked_test_function_leaves_the_gate_open(
    frozen: Frozen, selection: list[str]
) -> None:
    project = frozen(fail)
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
    monkeypatch.setattr("pytest_tfgrpo.plugin.items.items.BULK", 3)
    project.ini(actor="python:agent:right", sample_size=2).scenarios(train=5, sweep=3)
    assert project.learn().ret == 0


@pytest.mark.parametrize(
    ("named", "modes"),
    [
        ("suite.scenarios.jsonl", ["baseline", "train", "train", "eval"]),
        ("suite.scenarios.jsonl::epoch1", ["train", "train"]),
    ],
)
def test_a_very_large_file_is_read_once_whatever_is_selected_of_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, named: str, modes: list[str]
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.plugin.items.items.BULK", 3)
    project.scenarios().scenarios("other", train=0)
    rows = [{"id": f"s{n}", "split": "train" if n else "eval", "prompt": str(n)} for n in range(5)]
    checks = [{"kind": "exact", "value": "3"}]
    project.write("suite.scenarios.jsonl", "\n".join(json.dumps(row | {"checks": checks}) for row in rows))
    read: list[Path] = []
    load = catalog.load_scenarios

    def noted(path: Path, **given: Any) -> Any:
        read.append(path)
        return load(path, **given)

    monkeypatch.setattr(catalog, "load_scenarios", noted)
    assert project.learn(named).ret == 0
    assert [path.name for path in read] == ["suite.scenarios.jsonl"]
    assert [row["mode"] for row in project.report()["epochs"]] == modes


def limited_to(project: Project, n: int, *args: str) -> list[str]:
    """Return the eval scenarios that a learning run with this limit took."""
    project.learn(f"--tfgrpo-limit={n}", *args)
    return [s["id"] for s in project.report()["scenarios"] if s["split"] == "eval"]


def test_a_limit_draws_some_eval_scenarios_and_the_gate_is_not_judged(project: Project) -> None:
    project.scenarios(train=2, sweep=12)
    result = project.learn("--tfgrpo-limit=5")
    assert result.ret == 0
    result.assert_outcomes(passed=2 * 2 + 2 * 5 + 1, deselected=2 * 7)
    result.stdout.fnmatch_lines(["gate  inconclusive*", "*not checked*part of the suite*"])
    assert "tfgrpo_limit takes 5 of 12 eval scenarios" in str(project.report()["gate"])
    assert sum(name.startswith("suite-train") for name in set(project.calls)) == 2


def test_a_larger_limit_keeps_the_scenarios_of_a_smaller_one(project: Project) -> None:
    project.scenarios(train=0, sweep=12)
    three, six = limited_to(project, 3), limited_to(project, 6)
    assert len(three) == 3
    assert len(six) == 6
    assert set(three) < set(six)
    assert set(limited_to(project, 6, "--tfgrpo-seed=1")) != set(six)


def test_the_python_api_takes_a_limit(project: Project) -> None:
    project.scenarios(train=0, sweep=12)
    found = run(project.root, actor="python:agent:right", limit=4, learning=False, gate_min_mean=0.5)
    assert len(found.run.scenarios) == 4
    assert found.run.partial_selection
