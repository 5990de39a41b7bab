"""A campaign of tricks on the gate: an agent got worse, and the project tries to stay green."""

from __future__ import annotations

from support.plugin.gate_tricks import CHECKER
from support.project import Project


def test_one_skipped_bad_answer_is_named_and_keeps_a_strict_gate_from_passing(project: Project) -> None:
    project.checker(CHECKER.replace("n > 13 and BAD", "n == 3").format(instead="pytest.skip('bad answer')"))
    result = project.run("--tfgrpo-gate-min-mean=1", "-v")
    said = " ".join(" ".join(result.outlines).split())
    assert result.ret == 0
    assert "eval mean 1.000, at least 1 required; without 1 skipped scenario" in said
    assert (
        "1 of 20 scenarios of epoch1-eval was skipped by their test function (test_agent.test_agent-3" in said
    )
    assert project.run("--tfgrpo-gate-min-mean=1", "--tfgrpo-gate-strict=true").ret == 1
