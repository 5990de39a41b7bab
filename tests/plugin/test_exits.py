"""Agents that end the process they share with pytest: it never looks like a success."""

import os

import pytest
from support.plugin.exits import AGENT
from support.project import Project


@pytest.fixture
def project(project: Project) -> Project:
    return project.agent(AGENT).scenarios(train=2, sweep=3)


def test_after_the_run_the_process_ends_as_it_likes(project: Project) -> None:
    before = os._exit, os.execv, os.execve
    project.scenarios(train=1, sweep=1).ini(actor="python:agent2:exits_its_thread", group_size=2).learn()
    assert (os._exit, os.execv, os.execve) == before
    assert project.manifest()["status"] == "complete"
