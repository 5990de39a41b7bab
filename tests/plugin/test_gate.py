"""The gate as an item of pytest: what it compares with, what it says, and what turns a run red."""

from typing import Any

import pytest
from support.frozen import Frozen
from support.plugin.gate import said, save, save_imperfect
from support.project import Project


@pytest.fixture
def saved(frozen: Frozen) -> Project:
    """A project whose first run is the baseline ``main``."""
    return frozen(save)


def rule(project: Project, name: str) -> dict[str, Any]:
    (found,) = [r for r in project.report()["gate"]["results"] if r["name"] == name]
    return found  # type: ignore[no-any-return]


def test_the_same_agent_as_the_baseline_does_not_fail(saved: Project) -> None:
    assert saved.learn().ret == 0
    assert rule(saved, "baseline")["outcome"] in ("pass", "inconclusive")


def test_a_worse_agent_turns_the_run_red(saved: Project) -> None:
    result = saved.learn("--tfgrpo-actor", "python:agent:wrong")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED pytest.ini::gate*"])
    assert rule(saved, "baseline")["outcome"] == "fail"


def test_in_plain_mode_a_baseline_adds_the_gate(saved: Project) -> None:
    saved.run("--tfgrpo-actor", "python:agent:wrong", "-rf").stdout.fnmatch_lines(
        ["FAILED pytest.ini::gate*"]
    )
    saved.run().assert_outcomes(passed=26)


@pytest.fixture
def imperfect(frozen: Frozen) -> Project:
    """A project whose agent fails 2 of 60 scenarios, as it did when the baseline was saved."""
    return frozen(save_imperfect)


def test_a_scenario_with_its_own_min_score_fails_below_it_whatever_the_gate_says(imperfect: Project) -> None:
    imperfect.scenarios("own", train=0, sweep=1, min_score=0.5, checks=[{"kind": "exact", "value": "9"}])
    result = imperfect.run()
    assert result.parseoutcomes().items() >= {"passed": 59, "below": 2, "failed": 1}.items()
    result.stdout.fnmatch_lines(["*own-eval0: gt_score 0.000, at least 0.5 required", "gate  passed"])


@pytest.mark.parametrize(
    "args",
    [
        ["--tfgrpo-baseline=none", "--tfgrpo-gate-max-errors=0"],
        ["--tfgrpo-temperature-eval=0.4"],
        ["-k", "eval3 or eval7 or eval9"],
        ["--tfgrpo-baseline=none", "--tfgrpo-gates=gates.yaml"],
    ],
    ids=["no rule about means", "not comparable", "part of the suite", "only a warning"],
)
def test_where_no_gate_decides_about_means_a_low_score_fails_its_item(
    imperfect: Project, args: list[str]
) -> None:
    imperfect.write("gates.yaml", "gates:\n  hint: {severity: warn, min_mean: 0.5}\n")
    result = imperfect.run(*args)
    assert result.parseoutcomes()["failed"] == 2
    assert "below" not in result.parseoutcomes()


def test_a_named_gate_decides_about_its_own_scenarios_alone(imperfect: Project) -> None:
    imperfect.scenarios("dates", train=0, sweep=2, domain="dates", checks=[{"kind": "exact", "value": "9"}])
    imperfect.write("gates.yaml", "gates:\n  some: {domains: [text], min_mean: 0.5}\n")
    result = imperfect.run("--tfgrpo-baseline=none", "--tfgrpo-gates=gates.yaml")
    assert result.parseoutcomes().items() >= {"passed": 60, "below": 2, "failed": 2}.items()


def test_min_score_is_the_bar_of_scenarios_without_their_own(project: Project) -> None:
    half = [{"kind": "exact", "value": "3"}, {"kind": "exact", "value": "4"}]
    project.scenarios("a", train=0, sweep=1, checks=half)
    project.scenarios("b", train=0, sweep=1, checks=half, min_score=0.6)
    project.run("--tfgrpo-min-score=0.5").assert_outcomes(passed=1, failed=1)
    result = project.run("--tfgrpo-min-score=0.51")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["a-eval0: gt_score 0.500, at least 0.51 required"])


def test_where_a_gate_decides_a_test_function_reports_a_low_score_too(project: Project) -> None:
    project.checker(
        """
@pytest.mark.tfgrpo(split="eval", **MARK)
@pytest.mark.parametrize("n", range(4))
def test_agent(rollout, n):
    assert n != 1, "not this one"

@pytest.mark.tfgrpo(split="eval", min_score=0.5, **MARK)
def test_own(rollout):
    tfgrpo.score(0.4)
"""
    )
    result = project.run("--tfgrpo-gate-min-mean=0.4", "-rb")
    assert result.parseoutcomes() == {"passed": 4, "below": 1, "failed": 1}
    result.stdout.fnmatch_lines(["BELOW *score 0.000 is below min_score = 1; the gate decides"])
    project.run("--tfgrpo-min-score=0").assert_outcomes(passed=4, failed=1)


def test_another_actor_and_other_scenarios_are_compared_on_what_is_common_and_said(saved: Project) -> None:
    saved.scenarios("more", train=0, sweep=4)
    result = saved.learn("--tfgrpo-actor", "python:agent:paid")
    said = " ".join(" ".join(result.outlines).split())
    assert "the baseline was made with another actor (python:agent:right), " in said
    assert "made with other scenarios (25 in common)" in said
    assert rule(saved, "baseline")["figures"]["n"] == 25


def test_a_marked_test_function_that_was_not_asked_for_is_a_part_of_the_suite(project: Project) -> None:
    project.scenarios(train=0, sweep=12).checker(
        """
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_agent(rollout):
    pass
"""
    )
    assert project.run("--tfgrpo-out=out").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent:right", baseline="main", gate_margin=0.3)
    result = project.run("suite.scenario.json")
    assert "part of the suite was selected: test_agent.test_agent." in said(result)
    (project.root / "test_agent.py").unlink()
    result = project.run("suite.scenario.json")
    assert "baseline: scenario test_agent.test_agent." in said(result)


def test_too_small_an_intersection_never_passes_and_fails_when_strict(saved: Project) -> None:
    saved.scenarios("more", train=0, sweep=12)
    result = saved.learn()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["gate  inconclusive (passes with a warning)"])
    assert saved.learn("--tfgrpo-gate-strict", "true").ret == pytest.ExitCode.TESTS_FAILED


def test_an_open_comparison_prints_the_number_of_scenarios_that_would_settle_it(saved: Project) -> None:
    agent = "def solve(context):\n    return '4' if context.scenario.id.endswith('l7') else '3'\n"
    flags = ("--tfgrpo-actor", "python:agent2:solve")
    assert saved.agent(agent).learn(*flags).ret == pytest.ExitCode.TESTS_FAILED
    assert rule(saved, "baseline")["figures"]["answer"] == "unseen"
    result = saved.learn(*flags, "--tfgrpo-gate-alarm=0.3")
    assert result.ret == 0
    assert rule(saved, "baseline")["outcome"] == "inconclusive"
    settled = rule(saved, "baseline")["figures"]["settled_by"]
    assert settled > 25
    assert f"about {settled} eval scenarios would be enough in 4 of 5 runs" in " ".join(
        " ".join(result.outlines).split()
    )


def test_the_five_largest_regressions_are_named(saved: Project) -> None:
    agent = """
def solve(context):
    late = "<experiences" in context.prompt.system
    lost = context.scenario.id in [f"suite-eval{n}" for n in range(6)]
    right = not lost if late else lost or context.seed % 2
    frame = {"kind": "tool", "name": "count" if right else "guess"}
    return {"answer": "3" if right else "4", "frames": [frame]}
"""
    saved.agent(agent).scenarios(train=12, sweep=25).ini(actor="python:agent2:solve")
    result = saved.learn()
    found = saved.report()["regressions"]
    assert [row["difference"] for row in found] == [-1.0] * 5
    result.stdout.fnmatch_lines([f"{row['scenario']} *1.000  0.000  -1.000" for row in found])


@pytest.mark.parametrize(
    ("flag", "actor", "name"),
    [
        ("--tfgrpo-gate-max-errors=0", "python:agent:unsteady", "errors"),
        ("--tfgrpo-gate-min-mean=0.9", "python:agent:wrong", "minimum mean"),
        ("--tfgrpo-gate-max-cost-per-success-usd=0.5", "python:agent2:dear", "cost per success"),
    ],
)
def test_each_hard_rule_fails_the_gate(project: Project, flag: str, actor: str, name: str) -> None:
    frame = "{'kind': 'model', 'name': 'm', 'cost_usd': 0.6}"
    project.agent(f"def dear(context):\n    return {{'answer': '3', 'frames': [{frame}]}}\n")
    project.scenarios(train=0, sweep=8)
    result = project.learn(flag, "--tfgrpo-actor", actor)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert rule(project, name)["outcome"] == "fail"


def test_errors_are_told_apart_and_judged_both_ways(project: Project) -> None:
    project.scenarios(train=0, sweep=12).ini(actor="python:agent:unsteady", group_size=4, gate_min_mean=0.9)
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = rule(project, "minimum mean")["figures"]
    assert found["errors_excluded"] == 1.0
    assert found["errors_as_zero"] < 0.9
    result.stdout.fnmatch_lines(["* errors, not scored: provider *"])


def test_a_failed_gate_is_told_once(saved: Project) -> None:
    shown = said(saved.run("--tfgrpo-actor=python:agent:wrong"))
    assert shown.count("FAILED pytest.ini::gate") == 1
    assert shown.count("baseline: worse: -1.000") == 2
    assert "gate FAILED, as shown above" in shown
    hidden = said(saved.run("--tfgrpo-actor=python:agent:wrong", "--tb=no"))
    assert hidden.count("FAILED baseline: worse: -1.000") == 1
    assert "as shown above" not in hidden


def test_the_short_summary_says_which_rule_failed_first(saved: Project) -> None:
    saved.write("gates.yaml", "gates: {everything: {min_mean: 0.9}}\n")
    worse = saved.run("--tfgrpo-actor=python:agent:wrong", "--tfgrpo-gates=gates.yaml")
    lines = [text for text in worse.outlines if text.startswith("FAILED pytest.ini::gate")]
    reasons = ["minimum mean: eval mean ", "baseline: worse: -1.000 "]
    assert [text.partition(" - ")[2][:24] for text in lines] == reasons
    strict = saved.run(
        "--tfgrpo-gate-min-mean=1", "--tfgrpo-gate-strict=true", "--tfgrpo-temperature-eval=0.9"
    )
    strict.stdout.fnmatch_lines(["gate_strict: an inconclusive result fails: baseline: *"])
