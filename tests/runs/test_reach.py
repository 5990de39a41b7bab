"""Why an agent could read the answers, by what it is and where it runs."""

from dataclasses import replace
from typing import Any

import pytest
from support.sweeps import make_run

from pytest_tfgrpo.runs.reach import why_in_reach

RUN = make_run({"a": [1]}, {"a": [1]})


@pytest.mark.parametrize(
    ("actor", "executor", "why"),
    [
        ("python:agent:solve", "local", "it runs inside pytest"),
        ("python:agent:solve", "process:2", "it runs in a worker process, which reads what pytest can"),
        ("python:agent:solve", "ray:10.0.0.1:6379", "it runs on a node, to which the scenario files travel"),
        ("supplied", "ray", "it runs on a node, to which the scenario files travel"),
        ("fixtures", "ray", "it runs inside pytest"),
        ("command:./agent", "ray", "it runs without a sandbox"),
        ("openai:small", "ray", ""),
        ("offline", "process", ""),
    ],
)
def test_an_agent_without_a_sandbox_reads_what_is_where_it_runs(actor: str, executor: str, why: str) -> None:
    run = replace(
        RUN,
        identities={"actor": {"name": actor, "identity": {}}},
        settings={**RUN.settings, "executor": executor},
    )
    assert why_in_reach(run) == why


def test_a_sandbox_keeps_answers_out_of_reach_on_a_cluster_too() -> None:
    identity = {"name": "command:./agent", "identity": {"sandbox": "bwrap"}}
    run = replace(RUN, identities={"actor": identity}, settings={**RUN.settings, "executor": "ray"})
    assert why_in_reach(run) == ""


@pytest.mark.parametrize(
    ("identities", "why"),
    [
        ({}, ""),
        ({"actor": None}, ""),
        ({"actor": {}}, ""),
        ({"actor": {"name": "command:./agent"}}, "it runs without a sandbox"),
        ({"actor": {"name": "command:./agent", "identity": None}}, "it runs without a sandbox"),
        (
            {"actor": {"name": "command:./agent", "identity": {"sandbox": "none"}}},
            "it runs without a sandbox",
        ),
        ({"actor": {"name": "python:agent:solve", "identity": None}}, "it runs inside pytest"),
    ],
)
def test_an_actor_of_which_little_is_on_file(identities: Any, why: str) -> None:
    assert why_in_reach(replace(RUN, identities=identities)) == why
