"""Named gates as items of pytest: order, severity, JUnit, annotations, and misuse before anybody is asked."""

from pathlib import Path

import pytest
from support.plugin.named_gates import GATES, POLITENESS, gates_of, junit
from support.project import Project, item_names
from support.tools import tfgrpo


@pytest.fixture(autouse=True)
def outside_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)


@pytest.fixture
def gated(project: Project) -> Project:
    """A project with two named gates and a right agent."""
    project.write("gates.yaml", GATES).scenarios(train=0, sweep=12)
    return project.ini(actor="python:agent:right", gates="gates.yaml", baseline_sweep="off")


@pytest.fixture
def rude(gated: Project) -> Project:
    """A project whose agent is always right and never polite, with a gate of either."""
    gates = "gates:\n  right: {min_mean: .9}\n  polite: {metric: politeness, min_mean: .5}\n"
    return gated.conftest(POLITENESS).write("gates.yaml", gates)


@pytest.fixture
def saved(rude: Project) -> Path:
    """A stored baseline of the project, whose gate compares politeness with it from now on."""
    rude.write("gates.yaml", "gates:\n  polite: {metric: politeness, min_mean: .1}\n")
    rude.conftest(POLITENESS.replace("0.3", "0.9")).learn()
    tfgrpo("baseline", "save", "main")
    rude.write("gates.yaml", "gates:\n  polite: {metric: politeness, margin: .3, baseline: main}\n")
    return Path("baselines/main.json")


@pytest.mark.usefixtures("saved")
def test_a_metric_is_compared_with_the_stored_baseline(rude: Project) -> None:
    rude.learn()
    assert gates_of(rude)["polite"] == "pass"
    rude.conftest(POLITENESS)
    result = rude.learn("-v")
    assert gates_of(rude)["polite"] == "fail"
    result.stdout.fnmatch_lines(["*baseline politeness: worse: -0.600 (from 0.900 to 0.300)*"])


def test_a_gate_that_has_only_a_gain_to_judge_is_none_in_plain_mode(gated: Project) -> None:
    gated.write("gates.yaml", "gates: {learned: {gain: true}, everything: {min_mean: 0.9}}")
    assert item_names(gated.run("-v"))[-2:] == ["pytest.ini::gate[everything]", "pytest.ini::gate"]
    assert "pytest.ini::gate[learned]" in item_names(gated.learn("-v"))


def test_with_xdist_the_gates_are_the_same(gated: Project) -> None:
    result = gated.run(
        "--tfgrpo",
        "-p",
        "xdist",
        "-n",
        "2",
        "--tfgrpo-actor",
        "python:agent:wrong",
        "--junitxml",
        "junit.xml",
    )
    assert result.parseoutcomes() == {"passed": 13, "failed": 1, "tolerated": 1, "warnings": 1}
    cases = junit(gated)
    assert cases["gate[watched]"][1]["tfgrpo_severity"] == "warn"
    assert cases["gate"][1]["tfgrpo_gate"] == "pass"
