"""Agents that look for the answers: nothing leads there from a workspace, and who gives a decoy is named."""

from __future__ import annotations

from pathlib import Path

from support.project import Project


def test_an_honest_agent_is_not_named(project: Project) -> None:
    project.scenarios(train=1, sweep=1).ini(actor="python:agent:half").learn()
    assert project.report()["reach"] == {"why": "it runs inside pytest", "decoys": []}
    assert not any("decoy" in text for text in project.report()["warnings"])
    assert all("decoy" not in rollout for rollout in project.events("rollout"))


def test_a_plain_run_without_an_output_folder_writes_no_decoy(project: Project) -> None:
    project.scenarios(train=0, sweep=1).run().assert_outcomes(passed=1)
    assert not list(Path(project.root).rglob("answers.json"))
