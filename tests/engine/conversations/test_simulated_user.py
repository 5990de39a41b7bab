"""A user that a model plays: how much it says."""

import asyncio
import json

import pytest
from support.builders import make_scenario
from support.completers import ScriptedCompleter, make_calls

from pytest_tfgrpo.core.conversations import SAID_MAX
from pytest_tfgrpo.core.records import ModelCall
from pytest_tfgrpo.core.scenarios import SimulatedUser
from pytest_tfgrpo.engine.conversations import simulated_user
from pytest_tfgrpo.engine.conversations.simulated_user import PlayedUser, _read


@pytest.mark.parametrize(
    "name", ["SYSTEM", "PERSONA", "GOAL", "KNOWS", "OVER", "STOP", "WAITS", "SCHEMA", "TEMPERATURE", "TRIES"]
)
def test_all_that_the_model_is_told_is_in_its_identity(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = simulated_user.UserModel(completer=ScriptedCompleter(str))
    before = model.identity
    monkeypatch.setattr(simulated_user, name, "other")
    assert model.identity["template"] != before["template"]


async def said(user: PlayedUser) -> list[str]:
    """Return all that `user` says to an agent that answers without end."""
    messages: list[str] = []
    answer = None
    while len(messages) < 20 and (frame := await user.reply(answer)) is not None:
        messages.append(str(frame.output))
        answer = "Anything else?"
    return messages


@pytest.mark.parametrize("max_turns", [1, 2, 5])
def test_a_played_user_says_as_many_messages_as_it_may_and_its_model_is_asked_no_more(max_turns: int) -> None:
    model = ScriptedCompleter(lambda request: json.dumps({"over": False, "message": "More."}))
    user = PlayedUser(
        model,
        make_scenario(user=SimulatedUser(goal="A table.", max_turns=max_turns)),
        "Hello.",
        key="run1.e1.talk.r0",
        epoch=1,
        seed=1,
        calls=make_calls(),
        stop=pytest.fail,
    )
    assert asyncio.run(said(user)) == ["Hello."] + ["More."] * (max_turns - 1)
    assert len(model.requests) == max_turns - 1


def test_a_reply_asked_for_again_is_a_call_of_its_own_in_the_journal() -> None:
    replies = iter(["nothing usable", json.dumps({"over": False, "message": "More."})] * 2)
    written: list[ModelCall] = []
    user = PlayedUser(
        ScriptedCompleter(lambda request: next(replies)),
        make_scenario(user=SimulatedUser(goal="A table.", max_turns=3)),
        "Hello.",
        key="run1.e1.talk.r0",
        epoch=1,
        seed=1,
        calls=make_calls(written),
        stop=pytest.fail,
    )
    assert asyncio.run(said(user)) == ["Hello.", "More.", "More."]
    assert len({call.key for call in written}) == len(written) == 4


SAYS = '{"over": false, "message": " Two, please. "}'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SAYS, "Two, please."),
        (f"\ufeff\n {SAYS}\n", "Two, please."),
        (f'First:\n```json\n{{"over": true}}\n```\nno:\n```json\n{SAYS}\n```\n', "Two, please."),
        (f"<think>hm</think>\n{SAYS}", "Two, please."),
        ('{"over": true, "message": ""}', None),
        ('{"over": true, "message": "Bye."}', None),
        ('{"over": 1, "message": "Two."}', "Two."),
        ('{"message": "' + "x" * SAID_MAX + '"}', "x" * SAID_MAX),
    ],
)
def test_what_a_user_says_is_read_from_its_reply(text: str, found: str | None) -> None:
    assert _read(text) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Two, please.", "Expecting value"),
        ("[1]", "no object with over and message"),
        ('"a message"', "no object with over and message"),
        ('{"over": false}', "no object with over and message"),
        ('{"over": true, "message": 2}', "no object with over and message"),
        ('{"over": false, "message": "  "}', "its message has 0 characters"),
        ('{"message": "' + "x" * (SAID_MAX + 1) + '"}', f"its message has {SAID_MAX + 1} characters"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_reply_that_says_nothing_usable_is_asked_for_again(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        _read(text)


def test_the_model_that_plays_a_user_is_told_who_it_is_or_what_stands_for_it() -> None:
    own = SimulatedUser(
        goal="a table", persona="a clown", knows="the menu", stop="no table is left", max_turns=4
    )
    bare = SimulatedUser(goal="a table", max_turns=4)
    for user, words in (
        (own, ("a table", "a clown", "the menu", "no table is left")),
        (bare, ("a table", "an ordinary customer", "nothing beyond this", simulated_user.STOP)),
    ):
        text = simulated_user.told(user)
        assert [word for word in words if word not in text] == []
    assert simulated_user.STOP not in simulated_user.told(own)


def test_a_played_user_is_the_model_with_its_identity() -> None:
    completer = ScriptedCompleter(str, name="openai:guest")
    completer.identity = {"max_tokens": 7}
    model = simulated_user.UserModel(completer=completer)
    assert (model.name, model.identity["model"]) == ("openai:guest", "openai:guest")
    assert model.identity["model_identity"] == {"max_tokens": 7}
    assert [*model.identity] == ["model", "model_identity", "template"]
