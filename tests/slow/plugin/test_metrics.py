"""Metrics of additional rewarders from a conftest.py to every file, and what bad ones get."""

import pytest
from support.frozen import Frozen
from support.plugin.metrics import learn, per_epoch, write_mannered
from support.project import Project


@pytest.fixture
def mannered(project: Project) -> Project:
    """A project with a rewarder that names two scores, and an agent that learns."""
    return write_mannered(project)


def test_with_xdist_the_metrics_are_the_same(frozen: Frozen) -> None:
    mannered = frozen(learn)
    alone = per_epoch(mannered)
    mannered.plugins("xdist").learn("-n1")
    assert [row["metrics"] for row in per_epoch(mannered)["epochs"]] == [
        row["metrics"] for row in alone["epochs"]
    ]


def test_what_an_agent_reports_is_a_metric(project: Project) -> None:
    project.write(
        "reporting.py",
        "def agent(context):\n    return {'answer': '3', 'sure': 0.75, 'extra': {'steps': 5}}\n",
    )
    project.scenarios(train=0, sweep=2).ini(actor="python:reporting:agent", group_size=2).learn()
    metrics = per_epoch(project)["epochs"][-1]["metrics"]
    assert metrics["extra.sure"]["mean"] == 0.75
    assert "extra.steps" not in metrics
