"""What an agent may say in a conversation, all turns together."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import AgentFailure, BudgetError, ProviderError, RecordingError
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.engine.conversations.conversation import ScriptedUser, converse, repeat, user_frame
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
        if message == "crash":
            raise ZeroDivisionError("by zero")
        if message == "spend":
            raise BudgetError("budget_usd is used up")
        if message == "impersonate":
            return Trajectory(answer="", frames=(user_frame("script", "me", None),))
        if message == "nothing":
            return None  # type: ignore[return-value]
        if message == "tell":
            return Trajectory(answer=message, extra={"told": 1, "last": message})
        return Trajectory(answer=message, extra={"last": message} if message == "more" else {})

    async def aclose(self) -> None:
        pass


def call_of(answer_max_bytes: int = 100, *, part: bool = False, first: str = "?") -> ActorCall:
    return ActorCall(
        task=make_scenario().task(),
        prompt=Prompt(system="", user=first),
        temperature=0.0,
        seed=1,
        workspace=Workspace(Path("w")),
        timeout_s=1.0,
        answer_max_bytes=answer_max_bytes,
        part_thoughts=part,
    )


def talk(turns: list[str], answer_max_bytes: int, *, part: bool = False) -> Trajectory:
    call = call_of(answer_max_bytes, part=part, first=turns[0])
    return asyncio.run(converse(Parrot(), call, ScriptedUser(turns[0], turns)))


def test_what_a_pack_puts_in_front_of_the_first_message_is_not_said_by_the_user() -> None:
    call = call_of(first="Lessons.\n\nHello")
    made = asyncio.run(converse(Parrot(), call, ScriptedUser("Hello", ["Hello", "Bye"])))
    assert [(frame.output, frame.input) for frame in made.frames] == [
        ("Hello", None), ("Bye", "Lessons.\n\nHello")
    ]  # fmt: skip
    assert made.answer == "Bye"


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
    with pytest.raises(AgentFailure, match=r"^turn 2: no more$"):
        talk(["one", "fail"], 100)
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


@pytest.mark.parametrize(
    ("message", "code", "said"),
    [
        ("nothing", "garbage", "turn 2: the actor returned NoneType, not a trajectory with a text as answer"),
        ("impersonate", "garbage", "turn 2: the actor returned a frame of its user"),
        ("crash", "crash", "turn 2: ZeroDivisionError: by zero"),
        ("spend", "budget", "budget_usd is used up"),
    ],
)
def test_whose_fault_a_turn_is_and_what_was_said_before_it(message: str, code: str, said: str) -> None:
    with pytest.raises(ProviderError if code == "budget" else AgentFailure) as error:
        talk(["one", message], 100)
    assert (error.value.code, str(error.value)) == (code, said)
    assert [frame.output for frame in error.value.frames] == ["one", message]


class Fickle:
    """A user that says one message, and then does something else."""

    def __init__(self, then: BaseException | None = None) -> None:
        self._then = then

    async def reply(self, answer: str | None) -> Frame | None:
        if answer is not None and self._then is not None:
            raise self._then
        return user_frame("script", "one", answer) if answer is None else None


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (BudgetError("budget_usd is used up"), "budget", "budget_usd is used up"),
        (asyncio.CancelledError(), "timeout", "the user did not reply to the answer of turn 1 in time"),
        (ProviderError("away", "server"), "server", "away"),
    ],
)
def test_what_keeps_the_user_from_a_reply_is_no_fault_of_the_agent(
    fault: BaseException, code: str, said: str
) -> None:
    with pytest.raises(ProviderError) as error:
        asyncio.run(converse(Parrot(), call_of(), Fickle(fault)))
    assert (error.value.code, str(error.value)) == (code, said)
    assert [frame.output for frame in error.value.frames] == ["one"]


@pytest.mark.parametrize(
    ("heard", "fault", "said"),
    [
        ("two", None, "the recording has another user; record this run again"),
        ("one", RecordingError("not recorded"), "not recorded"),
    ],
)
def test_a_recording_that_its_user_does_not_fit_is_missed(
    heard: str, fault: BaseException | None, said: str
) -> None:
    async def actor(call: ActorCall) -> Any:
        return Trajectory(answer="3", frames=(user_frame("script", heard, None),))

    with pytest.raises(ProviderError) as error:
        asyncio.run(repeat(actor, call_of(), Fickle(fault)))
    assert (error.value.code, str(error.value)) == ("replay_miss", said)


@pytest.mark.parametrize(
    ("turns", "extra"),
    [
        (["one"], {}),
        (["tell", "one"], {"told": 1, "last": "tell"}),
        (["tell", "more"], {"told": 1, "last": "more"}),
    ],
)
def test_what_an_agent_reports_besides_is_that_of_all_turns_the_latest_of_a_name(
    turns: list[str], extra: dict[str, object]
) -> None:
    assert talk(turns, 100).extra == extra


def test_a_user_who_says_nothing_has_no_answer() -> None:
    class Silent:
        async def reply(self, answer: str | None) -> None:
            assert answer is None

    call = ActorCall(
        task=make_scenario().task(), prompt=Prompt(system="", user=""), temperature=0.0, seed=1,
        workspace=Workspace(Path("w")), timeout_s=1.0, answer_max_bytes=9,
    )  # fmt: skip
    assert asyncio.run(converse(Parrot(), call, Silent())) == Trajectory(answer="")  # type: ignore[arg-type]
