"""What an agent may say in a conversation, all turns together."""

import asyncio
from pathlib import Path

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import AgentFailure
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.engine.conversations.conversation import ScriptedUser, converse
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace


class Parrot:
    """An actor that says again what it is told, in sessions."""

    converses = True

    def open_session(self, call: ActorCall) -> "Parrot":
        return self

    async def answer(self, message: str) -> Trajectory:
        if message == "fail":
            raise AgentFailure("no more", frames=(Frame(kind="model", name="m", output="fail"),))
        if message == "pretend":
            said = Frame(kind=USER, name="script", output="what the user never said")
            raise AgentFailure("no more", frames=(Frame(kind="model", name="m"), said))
        return Trajectory(answer=message)

    async def aclose(self) -> None:
        pass


def talk(turns: list[str], answer_max_bytes: int, *, part: bool = False) -> Trajectory:
    call = ActorCall(
        task=make_scenario().task(),
        prompt=Prompt(system="", user=turns[0]),
        temperature=0.0,
        seed=1,
        workspace=Workspace(Path("w")),
        timeout_s=1.0,
        answer_max_bytes=answer_max_bytes,
        part_thoughts=part,
    )
    return asyncio.run(converse(Parrot(), call, ScriptedUser(turns[0], turns)))


def test_the_limit_of_an_answer_is_that_of_all_answers_of_a_conversation_together() -> None:
    turns = ["a" * 4, "é" * 2, "b" * 2]
    assert talk(turns, 10).answer == "bb"
    with pytest.raises(AgentFailure, match="10 bytes by turn 3, more than 9") as error:
        talk(turns, 9)
    assert error.value.code == "oversize"
    assert [frame.output for frame in error.value.frames] == turns


def test_a_conversation_that_fails_keeps_what_was_said_before() -> None:
    with pytest.raises(AgentFailure, match="turn 3: no more") as error:
        talk(["one", "two", "fail"], 100)
    assert [frame.output for frame in error.value.frames] == ["one", "two", "fail", "fail"]
    with pytest.raises(AgentFailure, match=r"^no more$"):
        talk(["fail"], 100)


def test_of_an_agent_that_speaks_for_its_user_no_frame_is_kept() -> None:
    with pytest.raises(AgentFailure) as error:
        talk(["one", "pretend"], 100)
    assert [frame.output for frame in error.value.frames] == ["one", "pretend"]


def test_thoughts_are_parted_from_each_answer_of_a_conversation() -> None:
    turns = ["<think>a</think>one", "<think>b</think>two"]
    found = talk(turns, 100, part=True)
    assert found.answer == "two"
    assert [frame.input for frame in found.frames if frame.kind == USER] == [None, "one"]
    with pytest.raises(AgentFailure, match="turn 2: the agent returned thoughts and no answer"):
        talk(["one", "<think>b"], 100, part=True)
