"""A gate that looks again: more rollouts where it cannot see, in a run, in a resumed one, and on file."""

import re

import pytest
from support.frozen import Frozen
from support.plugin.gate_looks import (
    MORE,
    learn,
    look_again,
    made,
    rule,
    save_learner,
    save_noisy,
    sizes,
)
from support.project import Project

from pytest_tfgrpo.runs.journal.journal_contents import load_run


@pytest.fixture
def noisy(frozen: Frozen) -> Project:
    """A project whose agent solves 8 of 10 rollouts, as it did when the baseline was saved."""
    return frozen(save_noisy)


@pytest.fixture
def learner(frozen: Frozen) -> Project:
    """A project that learns, with a baseline, whose domain ``other`` has nothing to learn from."""
    return frozen(save_learner)


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
    assert "because 2 rollouts of each did not decide the gate and it needed 4: budget_usd of 0.09" in told
    assert re.search(r"is incomplete, \d of 12 groups are complete", told), told
    assert rule(learner)["message"] == "the final sweep did not end"
    assert learner.report()["noise"]["rollouts"] == 2
    learner.learn(*MORE, "--tfgrpo-resume", "--tfgrpo-budget-usd=1")
    assert (rule(learner), learner.report()["gain"]) == whole


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
