"""Lists of agents in the setting `actor`."""

import pytest

from pytest_tfgrpo.core.keys.agent_list import ListedAgent, listed_agents
from pytest_tfgrpo.core.keys.setting_parsers import parse_actor


@pytest.mark.parametrize(
    "spec",
    [
        None,
        "offline",
        "openai:gpt-x",
        "command:./agent --tags a,b --x=1",
        "command:FAST=1 ./agent",
        "python:agent:solve",
        "replay:recordings/main.json",
    ],
)
def test_a_single_spec_is_no_list(spec: str | None) -> None:
    assert listed_agents(spec) == ()


@pytest.mark.parametrize(
    ("text", "names", "specs"),
    [
        ("openai:gpt-x, openai:gpt-y", ["gpt-x", "gpt-y"], ["openai:gpt-x", "openai:gpt-y"]),
        ("openai:org/big:free,offline", ["org-big.free", "offline"], ["openai:org/big:free", "offline"]),
        (
            "\ncommand:./agent.py --tags a,b\nfast = command:./agent.py --tags a, c\n",
            ["agent.py-tags-a-b", "fast"],
            ["command:./agent.py --tags a,b", "command:./agent.py --tags a, c"],
        ),
        ("old=replay:a/x.json,new = replay:b/x.json", ["old", "new"], ["replay:a/x.json", "replay:b/x.json"]),
        ("replay:rec/gpt-x.json, replay:rec/gpt-y.json", ["gpt-x", "gpt-y"], None),
        ("python:my.agents:solve, python:my.agents:guess", ["my.agents.solve", "my.agents.guess"], None),
        ("house:1\nhouse:2", ["1", "2"], ["house:1", "house:2"]),  # an actor of a hook
        ("one = offline", ["one"], ["offline"]),
    ],
)
def test_agents_are_listed_by_lines_or_by_commas(
    text: str, names: list[str], specs: list[str] | None
) -> None:
    found = listed_agents(text)
    assert [agent.name for agent in found] == names
    assert specs is None or [agent.spec for agent in found] == specs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("offline, offline", r"list each agent once \('offline' is there twice\)"),
        ("a = offline, b = offline", "once"),
        (
            "openai:a/x, openai:a-x",
            r"name each agent differently .*'openai:a/x' and 'openai:a-x' are both 'a-x'; write NAME =",
        ),
        ("X = openai:a, x = openai:b", "name each agent differently"),
        ("x = openai:a, X = openai:b", "name each agent differently"),
        ("openai:模型, offline", "'' does not; write NAME = openai:模型"),
        ("../up = openai:a, offline", r"'\.\./up' does not"),
        (f"{'x' * 41} = openai:a, offline", "does not"),
        ("a =\nb = offline", "'a' has no spec"),
        (", ".join(f"openai:m{n}" for n in range(6)), "at most 5"),
        ("\n", "empty"),
        ("python:a:b,", "agent such as .* after the comma that follows 'python:a:b' .nothing does"),
        ("a = python:a:b, c = ", "after the comma that follows 'python:a:b' .'c =' is none"),
        ("offline, python:a:b, pyton:a:c", "'pyton:a:c' is none"),
    ],
)
def test_a_bad_list_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^must .*{message}|must not be {message}"):
        listed_agents(text)


def test_names_are_those_of_the_list() -> None:
    assert listed_agents("a-1 = offline, b.2 = nothing") == (
        ListedAgent("a-1", "offline"),
        ListedAgent("b.2", "nothing"),
    )


def test_a_list_of_an_ini_file_in_toml_is_a_list_of_agents() -> None:
    assert parse_actor(["offline", "low = nothing"]) == "offline\nlow = nothing"
