"""A gate that looks again: more rollouts where it cannot see, in a run, in a resumed one, and on file."""

import json
import re
from typing import Any

import pytest
from support.frozen import Frozen
from support.project import Project

from pytest_tfgrpo.harness.run.journal_contents import load_run

NOISY = """
def solve(context):
    return "3" if context.seed % 10 < {of_ten} else "4"
"""


def save_noisy(project: Project) -> None:
    project.scenarios(train=0, sweep=12).agent(NOISY.format(of_ten=8))
    project.ini(actor="python:agent2:solve", min_score=0)
    assert project.run("--tfgrpo-out=out", "--tfgrpo-eval-rollouts=15").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent2:solve", min_score=0, baseline="main", seed=7)


def look_again(project: Project) -> pytest.RunResult:
    save_noisy(project)
    return project.run(*MORE)


@pytest.fixture
def noisy(frozen: Frozen) -> Project:
    """A project whose agent solves 8 of 10 rollouts, as it did when the baseline was saved."""
    return frozen(save_noisy)


def rule(project: Project) -> dict[str, Any]:
    (found,) = [r for r in project.report()["gate"]["results"] if r["name"] == "baseline"]
    return found  # type: ignore[no-any-return]


def made(project: Project) -> int:
    (row,) = project.report()["epochs"]
    return row["rollouts"]  # type: ignore[no-any-return]


MORE = ("--tfgrpo-out=out", "--tfgrpo-gate-alarm=0.0001", "--tfgrpo-gate-margin=0")
LEARNER = """
from pathlib import Path


def solve(context):
    '''Solve 8 of 10 rollouts, and 2 of 3 with a lesson.'''
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")
    taught = "<experiences" in context.prompt.system
    right = context.seed % 3 if taught else context.seed % 10 < 8
    tool = {"kind": "tool", "name": "count_words" if right else "guess", "output": "3", "tokens": 2}
    return {"answer": "3" if right else "4", "frames": [tool | {"cost_usd": 0.001}]}


solve.paid = True
"""


def save_learner(project: Project) -> None:
    project.scenarios(train=6, sweep=8).scenarios("more", train=0, sweep=4, domain="other").agent(LEARNER)
    own = {"actor": "python:agent2:solve", "min_score": 0, "allow_paid": "true", "group_size": 4, "epochs": 2}
    project.ini(**own)
    assert project.run("--tfgrpo-out=out", "--tfgrpo-eval-rollouts=8").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    (project.root / "calls.log").unlink()
    project.ini(**own, eval_rollouts=2, baseline="main", seed=7, acceptance="off")


def learn(project: Project) -> None:
    save_learner(project)
    project.learn(*MORE)


@pytest.fixture
def learner(frozen: Frozen) -> Project:
    """A project that learns, with a baseline, whose domain ``other`` has nothing to learn from."""
    return frozen(save_learner)


def sizes(project: Project) -> dict[str, set[int]]:
    """Return how many rollouts the groups of each sweep of the latest run have."""
    phases = load_run(project.runs()[-1]).phases
    return {
        result.phase.mode: {len(group.rollouts) for group in result.counted}
        for result in phases
        if result.phase.mode != "train"
    }


def test_a_learning_run_takes_more_rollouts_of_both_sides_and_replays_so(learner: Project) -> None:
    assert learner.learn(*MORE, "--tfgrpo-record=recording.jsonl").ret == 1
    report, rows = learner.report(), {row["mode"]: row for row in learner.report()["epochs"]}
    assert rule(learner)["figures"]["looks"] == [2, 4, 8]
    assert sizes(learner) == {"baseline": {8}, "eval": {8}}
    assert (rows["eval"]["rollouts"], rows["baseline"]["rollouts"]) == (12 * 8, 8 * 8)
    assert report["gain"]["control"]["shared"] == 4
    assert len(learner.calls) == 6 * 4 + 20 * 8
    plan = learner.learn(*MORE, "--tfgrpo-dry-run").outlines
    at_most = next(line.split() for line in plan if line.startswith("at most") and "rollouts" not in line)
    assert int(at_most[-1]) == 6 * 4 + 20 * 8
    replayed = learner.learn(*MORE, "--tfgrpo-actor=replay:recording.jsonl")
    assert replayed.ret == 1
    again = learner.report()
    assert again["gain"] == report["gain"]
    assert [row["gt_score"] for row in again["epochs"]] == [row["gt_score"] for row in report["epochs"]]
    assert not [text for text in again["warnings"] if "lacks" in text]


def test_a_budget_that_ends_an_extension_is_told_by_the_gate_and_can_be_raised(frozen: Frozen) -> None:
    learner = frozen(learn)
    whole = rule(learner), learner.report()["gain"]
    ended = learner.learn(*MORE, "--tfgrpo-concurrency=1", "--tfgrpo-budget-usd=0.09")
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    (told,) = [r["message"] for r in learner.report()["gate"]["results"] if r["name"] == "complete"]
    assert "as 2 rollouts of each did not decide the gate, and it asked for 4: budget_usd of 0.09" in told
    assert re.search(r"is incomplete, \d of 12 groups are complete", told), told
    assert rule(learner)["message"] == "the final sweep did not end"
    assert learner.report()["noise"]["rollouts"] == 2
    learner.learn(*MORE, "--tfgrpo-resume", "--tfgrpo-budget-usd=1")
    assert (rule(learner), learner.report()["gain"]) == whole


@pytest.mark.parametrize("kept", [0.45, 0.8])
def test_a_learning_run_killed_between_looks_ends_as_if_it_had_not_been(frozen: Frozen, kept: float) -> None:
    learner = frozen(learn)
    whole, folder = (rule(learner), learner.report()["gain"]), learner.runs()[-1]
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(lines[: int(kept * len(lines))]))
    (folder / "manifest.json").unlink()
    learner.learn(*MORE, "--tfgrpo-resume")
    assert (rule(learner), learner.report()["gain"]) == whole
    assert sizes(learner) == {"baseline": {8}, "eval": {8}}


def test_a_gate_that_cannot_see_the_alarm_takes_twice_and_four_times_the_rollouts(
    project: Project, frozen: Frozen
) -> None:
    assert frozen.run(look_again).ret == pytest.ExitCode.TESTS_FAILED
    assert (made(project), rule(project)["figures"]["looks"]) == (12 * 12, [3, 6, 12])
    assert rule(project)["message"].startswith("cannot see a drop of 0.0001: ")
    assert "look 3 of 3, with 12 rollouts of each" in rule(project)["message"]


def test_a_gate_that_sees_the_alarm_at_once_takes_no_more(noisy: Project) -> None:
    assert noisy.run("--tfgrpo-out=out", "--tfgrpo-gate-alarm=0.6").ret == 0
    assert (made(noisy), rule(noisy)["figures"]["answer"]) == (36, "open")


@pytest.mark.parametrize("flag", ["--tfgrpo-gate-extend=0", "--tfgrpo-gate-sequential=true"])
def test_more_rollouts_are_taken_only_where_they_may_be(noisy: Project, flag: str) -> None:
    result = noisy.run(*MORE, flag)
    assert (result.ret, made(noisy)) == (1, 12)


def test_more_rollouts_of_an_agent_that_always_answers_alike_are_not_taken(project: Project) -> None:
    project.scenarios(train=0, sweep=12).ini(actor="python:agent:right")
    assert project.run("--tfgrpo-out=out", "--tfgrpo-eval-rollouts=3").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    project.ini(actor="python:agent:right", baseline="main")
    result = project.run("--tfgrpo-out=out")
    assert (result.ret, made(project), rule(project)["figures"]["answer"]) == (1, 36, "unseen")
    assert "eval scenarios would be enough" in rule(project)["advice"]


def test_the_journal_has_the_sweep_as_it_was_in_the_end(frozen: Frozen) -> None:
    noisy = frozen(look_again)
    (sweep,) = load_run(noisy.runs()[-1]).phases
    assert sweep.phase.rollouts == 12
    assert {len(group.rollouts) for group in sweep.groups} == {12}
    lines = [json.loads(line) for line in (noisy.runs()[-1] / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["tool"] is None for line in lines) == len({line["rollout_id"] for line in lines}) == 144


@pytest.mark.parametrize("kept", [40, 60, 100, 130])
def test_a_run_killed_between_looks_ends_as_if_it_had_not_been(frozen: Frozen, kept: int) -> None:
    noisy = frozen(look_again)
    before = rule(noisy)
    folder = noisy.runs()[-1]
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(lines[:kept]))
    (folder / "manifest.json").unlink()
    noisy.run(*MORE, "--tfgrpo-resume=latest")
    assert (rule(noisy), made(noisy)) == (before, 144)
    assert len(load_run(folder).phases[0].groups[0].rollouts) == 12
