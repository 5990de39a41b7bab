"""What a program of the command actor is given: its arguments, and its standard input."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.actors.command.command_input import check_placeholders, fill, stdin_of, task_line
from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.wire.wire import to_wire


def call(system: str = "Be brief.", user: str = "How many?") -> Any:
    return SimpleNamespace(
        task=make_scenario("a"),
        prompt=Prompt(system=system, user=user),
        seed=0,
        temperature=0.0,
        timeout_s=2.5,
    )


@pytest.mark.parametrize(
    ("argv", "system", "user", "text"),
    [
        ([], "Be brief.", "How many?", "Be brief.\n\nHow many?"),
        ([], "", "How many?", "How many?"),
        ([], "Be brief.", "", "Be brief."),
        ([], "", "", ""),
        (["{seed}"], "Be brief.", "How many?", "Be brief.\n\nHow many?"),
        (["{prompt}"], "Be brief.", "How many?", ""),
        (["{prompt}", "{system}"], "Be brief.", "How many?", ""),
        (["-p", "x{system}y"], "Be brief.", "How many?", "How many?"),
        (["{user}"], "Be brief.", "How many?", "Be brief."),
        (["{user}", "{system}"], "Be brief.", "How many?", ""),
    ],
)
def test_a_program_reads_what_its_command_line_does_not_carry(
    argv: list[str], system: str, user: str, text: str
) -> None:
    with stdin_of(argv, call(system, user), Path("/work"), as_text=True) as file:
        assert file.read().decode() == text


@pytest.mark.parametrize("conversation", [False, True])
def test_a_task_is_a_line_with_all_that_an_agent_may_know(conversation: bool) -> None:
    asked = call()
    line = task_line(asked, Path("/work"), conversation=conversation)
    assert line.endswith(b"}\n")
    expected = {
        "schema": "tfgrpo.task/1",
        "scenario": to_wire(asked.task),
        "prompt": {"system": "Be brief.", "user": "How many?"},
        "temperature": 0.0,
        "seed": 0,
        "workspace": "/work",
        "timeout_s": 2.5,
    }
    assert json.loads(line) == expected | ({"conversation": True} if conversation else {})
    with stdin_of(["{prompt}"], asked, Path("/work"), as_text=False) as file:
        assert json.loads(file.read()) == expected


@pytest.mark.parametrize(
    ("word", "user", "filled"),
    [
        ("plain", "x", "plain"),
        ("{user}", "x", "x"),
        ("{user}", "-x", " -x"),
        ("-{user}", "-x", "--x"),
        ("--p={user}", "-x", "--p=-x"),
        ("{user}{seed}", "{seed}", "{seed}0"),
        ("{other}", "x", "{other}"),
        ("{workspace}", "x", "/work"),
        ("{temperature}", "x", "0.0"),
        ("{user}", "", ""),
        ("{user}", "\ud800", "?"),
    ],
)
def test_placeholders_are_filled_once_and_never_make_an_option(word: str, user: str, filled: str) -> None:
    assert fill([word], call(user=user), Path("/work")) == [filled]


def test_a_null_character_cannot_be_an_argument() -> None:
    assert fill(["a", "{seed}"], call(user="\0"), Path("/work")) == ["a", "0"]
    with pytest.raises(ProviderError, match="a null character cannot be an argument; put it on stdin"):
        fill(["{user}"], call(user="\0"), Path("/work"))


@pytest.mark.parametrize("word", ["{promt}", "{sytem}", "{task}"])
def test_a_word_that_is_nearly_a_placeholder_is_refused(word: str) -> None:
    with pytest.raises(
        ActorError, match=r"unknown placeholder \{\w+\} in the command line; known: \{prompt\}"
    ):
        check_placeholders(["agent", word])


@pytest.mark.parametrize("word", ["{prompt}", "{seed}", "{zzz}", "{PROMT}", "x{promt}", "{promt", "{}"])
def test_other_words_in_braces_are_those_of_the_program(word: str) -> None:
    check_placeholders(["agent", word])
