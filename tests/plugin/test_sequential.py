"""A sequential gate as pytest shows it: skipped items, one line, and a verdict that stands."""

import pytest
from support.frozen import Frozen
from support.plugin.sequential import FORGETFUL, save
from support.project import Project
from support.tools import tfgrpo


@pytest.fixture
def saved(frozen: Frozen) -> Project:
    """A project of 60 eval scenarios whose baseline is right everywhere, and whose agent now is not."""
    return frozen(save)


def test_in_plain_mode_what_is_settled_is_skipped_and_what_has_a_minimum_is_run(saved: Project) -> None:
    result = saved.run("-rs", "-v")
    asked = set(saved.calls)
    assert {"kept-eval0", "kept-eval1"} <= asked
    assert len(asked) < 50
    outcomes = result.parseoutcomes()
    assert outcomes["skipped"] == 60 - len(asked)
    assert outcomes["failed"] == 2 + 1
    assert outcomes["below"] == len(asked) - 2
    result.stdout.fnmatch_lines(["pytest.ini::gate FAILED*", "SKIPPED * gate already decided"])
    said = " ".join(" ".join(result.outlines).split())
    assert f"sequential gate {60 - len(asked)} rollouts saved: gate already decided, " in said
    assert f"means and gain are over the {len(asked)} that were" in said


def test_a_run_that_was_settled_cannot_be_saved_as_a_baseline(saved: Project) -> None:
    saved.run()
    assert "as its gate was decided" in tfgrpo("baseline", "save", "other", code=1)


def test_with_test_functions_a_sweep_runs_whole_and_says_why(saved: Project) -> None:
    saved.write(
        "test_marked.py",
        """
import pytest

@pytest.mark.tfgrpo(prompt="How many words has this letter, a b c?", domain="text", split="eval")
def test_words(rollout):
    assert rollout.answer == "3"
""",
    )
    result = saved.run()
    assert len(set(saved.calls)) == 61
    said = " ".join(" ".join(result.outlines).split())
    assert "sequential gate 0 rollouts saved: test functions score it, in their own order" in said


def test_off_by_default_nothing_is_skipped_or_said(saved: Project) -> None:
    result = saved.run("--tfgrpo-gate-sequential", "false")
    assert len(set(saved.calls)) == 60
    assert "sequential" not in "\n".join(line for line in result.outlines if "gate  " in line)


def test_forty_scenarios_save_nothing_and_the_line_says_so(project: Project) -> None:
    project.scenarios(train=0, sweep=40)
    assert project.run("--tfgrpo-out", "out").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    result = project.ini(actor="python:agent:right", baseline="main", gate_sequential="true", out="out").run()
    assert result.ret == 0
    assert project.report()["sequential"]["rollouts_saved"] == 0
    result.stdout.fnmatch_lines(["sequential gate  0 rollouts saved: nothing was decided before the end"])


def test_a_minimum_alone_is_settled_too(project: Project) -> None:
    project.scenarios(train=0, sweep=60).agent(FORGETFUL)
    project.ini(actor="python:agent2:solve", gate_min_mean=0.5, gate_sequential="true", concurrency=2)
    result = project.run()
    assert result.parseoutcomes()["skipped"] > 20
    assert "over the first" in " ".join(" ".join(result.outlines).split())
