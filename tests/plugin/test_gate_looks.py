"""A gate that looks again: more rollouts where it cannot see, in a run, in a resumed one, and on file."""

import json

import pytest
from support.frozen import Frozen
from support.plugin.gate_looks import (
    MORE,
    look_again,
    made,
    rule,
    save_noisy,
)
from support.project import Project

from pytest_tfgrpo.runs.journal.journal_contents import load_run


@pytest.fixture
def noisy(frozen: Frozen) -> Project:
    """A project whose agent solves 8 of 10 rollouts, as it did when the baseline was saved."""
    return frozen(save_noisy)


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
