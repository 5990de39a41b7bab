"""Coding agents through the command actor: how they are told their task, and how they end."""

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError

Agent = Callable[..., str]

ECHO = """
    import json, sys
    told = json.dumps([sys.argv[1:], sys.stdin.read()])
    print(json.dumps({"type": "result", "subtype": "success", "result": told}))
"""
CLAUDE = {"command_output": "claude"}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Write a program into the root folder; return the spec that runs it with some arguments."""

    def write(body: str, arguments: str = "") -> str:
        (tmp_path / "agent.py").write_text(textwrap.dedent(body))
        return f"command:'{sys.executable}' agent.py {arguments}"

    return write


def test_a_placeholder_spelt_wrong_is_refused_before_anything_is_paid(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(ActorError, match=r"unknown placeholder \{promt\}.*did you mean 'prompt'"):
        open_actor(agent(ECHO, "{promt}"), root=tmp_path, settings=CLAUDE)


def test_an_agent_is_paid_and_known_by_its_events(agent: Agent, tmp_path: Path) -> None:
    ours, theirs = (
        open_actor(agent(ECHO), root=tmp_path, settings={"command_output": name})
        for name in ("frames", "codex")
    )
    assert (ours.paid, theirs.paid) == (False, True)
    assert theirs.identity == {**ours.identity, "events": "codex"}
