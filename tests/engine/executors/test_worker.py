"""The worker side, without a process: it answers with what can travel, and raises nothing."""

import asyncio
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.executors import asked

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError, AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.engine.executors.worker import (
    AgentTurn,
    WorkerAgent,
    WorkerReply,
    WorkerSetup,
    pickled,
)
from pytest_tfgrpo.sandbox.workspace import Workspace

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def setup_of(agent: str) -> WorkerSetup:
    settings: dict[str, object] = {"sandbox": "none"}
    spec = f"python:support.worker_agents:{agent}"
    return WorkerSetup(agent=partial(open_actor, spec, settings=settings), root=ROOT / "tests")


def turn(prompt: str, folder: Path, **changes: Any) -> AgentTurn:
    return AgentTurn(id="a", call=asked(prompt, folder), **changes)


def answer(agent: str, *turns: AgentTurn) -> list[WorkerReply]:
    async def main() -> list[WorkerReply]:
        worker = WorkerAgent(setup_of(agent))
        replies = [await worker.answer(one) for one in turns]
        for one in turns:
            await worker.end(one.id)
        await worker.aclose()
        return replies

    return asyncio.run(main())


def test_what_travels_is_the_same_at_the_other_end(tmp_path: Path) -> None:
    sent = turn("?", tmp_path)
    sent.call.workspace.make()
    (sent.call.workspace.path / "a").touch()
    got = pickle.loads(pickle.dumps(sent))
    assert replace(got, call=sent.call) == sent
    assert got.call.prompt == sent.call.prompt
    assert isinstance(got.call.workspace, Workspace)
    assert (got.call.workspace.path / "a").exists()
    sent_setup = setup_of("half")
    setup = pickle.loads(pickle.dumps(sent_setup))
    assert (setup.root, setup.search) == (sent_setup.root, sent_setup.search)
    assert setup.agent(root=setup.root).name == WorkerAgent(sent_setup)._actor.name


def test_a_conversation_goes_on_and_another_attempt_starts_anew(tmp_path: Path) -> None:
    turns = [turn("?", tmp_path, message="one"), turn("?", tmp_path, message="two")]
    other = replace(turns[0], id="b")
    replies = answer("in_pieces", *turns, other)
    assert [r.trajectory and r.trajectory.answer for r in replies] == ["1: one", "2: two", "1: one"]


def test_an_agent_that_cannot_be_opened_says_why() -> None:
    with pytest.raises(ActorError, match="has no 'nobody'"):
        WorkerAgent(setup_of("nobody"))


def test_a_fault_of_an_own_class_travels_as_ours(tmp_path: Path) -> None:
    (reply,) = answer("faulty", turn("refused", tmp_path))
    assert type(reply.fault) is ProviderError
    assert (str(reply.fault), reply.fault.code) == ("no", "rejected")


def test_an_answer_that_cannot_travel_is_the_failure_of_its_agent(tmp_path: Path) -> None:
    sent = turn("?", tmp_path)
    strange: Any = {"lock": lambda: None}
    for trajectory, code in (
        (Trajectory(answer="3", extra=strange), "garbage"),
        (Trajectory(answer="x" * 100_000_000), "oversize"),
    ):
        got = pickle.loads(pickled(WorkerReply(trajectory=trajectory), sent))
        assert isinstance(got.fault, AgentFailure)
        assert got.fault.code == code


def test_spans_of_an_agent_are_children_of_its_rollout(tmp_path: Path) -> None:
    context = f"00-{TRACE}-{SPAN}-01"
    one, talk, none = answer(
        "tells_its_trace",
        turn("?", tmp_path, traceparent=context),
        turn("?", tmp_path, traceparent=context, message="?"),
        turn("?", tmp_path),
    )
    found = [reply.trajectory and reply.trajectory.answer for reply in (one, talk, none)]
    assert found == [f"{TRACE} {SPAN}"] * 2 + [f"{0:032x} {0:016x}"]
