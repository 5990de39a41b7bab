"""What the tests of plugin/test_metrics.py share with the slow ones."""

import json
from typing import Any

import pytest

from support.project import Project

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
MANNERS = f"""
class Manners:
    name, weight = "manners", 0.5

    def __call__(self, batch):
        return [self.rate(rollout) for rollout in batch.rollouts]

    def rate(self, rollout):
        warm = 0.25 if rollout.answer == "3" else None
        return {{"warmth": (warm, "key {KEY} \\x1b[31m\\ud800<b>"), "wit": 0.75}}


def pytest_tfgrpo_rewarders(config):
    return [Manners()]
"""


def write_mannered(project: Project) -> Project:
    project.scenarios(train=3, sweep=2).conftest(MANNERS)
    return project.ini(actor="python:agent:learner", group_size=4)


def learn(project: Project) -> pytest.RunResult:
    return write_mannered(project.pages()).learn("-v")


def per_epoch(project: Project) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((project.runs()[-1] / "per-epoch.json").read_text())
    return value
