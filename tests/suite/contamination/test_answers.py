"""Answers as they are looked for: how long, in which words, and which names are none."""

from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_frame, make_group, make_rollout, make_scenario

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.suite.contamination.answers import AnswerIndex, spellings, tool_names


def index(*answers: str, tools: tuple[str, ...] = (), own: tuple[str, ...] | None = None) -> AnswerIndex:
    def of(scenario: Scenario) -> list[str]:
        return [answers[int(scenario.id[1:])]]

    return AnswerIndex([make_scenario(f"s{n}", tools=own) for n in range(len(answers))], of, tools)


@pytest.mark.parametrize(("answer", "found"), [("abc", None), ("abcd", "s0"), ("ab-d", "s0"), ("+-*/", "s0")])
def test_an_answer_has_four_characters(answer: str, found: str | None) -> None:
    assert index(answer).find(f"it is {answer}, yes") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it is 1234", "s0"),
        ("it is 0.1234", None),
        ("it is 1234.5", None),
        ("it is 1,1234", None),
        ("it is 1234, then", "s0"),
        ("it is x1234", None),
        ("it is 12345", None),
        ("it is 1234.", "s0"),
    ],
)
def test_a_number_is_found_whole(text: str, found: str | None) -> None:
    assert index("1234").find(text) == found


def test_words_apart_are_found_without_their_punctuation_and_one_word_only_as_it_stands() -> None:
    assert spellings("Blue, Green!") == ("blue, green!", "blue green")
    assert spellings("Blue") == ("blue",)
    assert spellings("1-2") == ("1-2",)
    assert index("blue green").find("say blue-green now") == "s0"
    assert index("green").find("call blue_green now") is None
    assert index("green").find("call blue-green now") == "s0"


def test_names_of_tools_are_no_answers_and_the_first_scenario_is_named() -> None:
    assert index("count_words", tools=("count_words",)).find("use count_words") is None
    assert index("count_words", own=("count_words",)).find("use count_words") is None
    assert index("count_words").find("use count_words") == "s0"
    assert index("alpha", "beta", "alpha").find("beta and alpha") == "s0"
    assert [one.scenario.id for one in index("alpha", "beta").matches("beta, alpha")] == ["s0", "s1"]


def test_a_tool_counts_that_was_called_in_two_scenarios_of_the_runs_own() -> None:
    def called(scenario: str, *names: str, mode: Any = "train") -> Group:
        rollout = make_rollout(
            0, scenario_id=scenario, frames=(*map(make_frame, names), make_frame("m", kind="model"))
        )
        return replace(make_group([1.0], rollouts=(rollout,)), scenario_id=scenario, mode=mode)

    groups = [called("a", "search", "once"), called("a", "once"), called("b", "search")]
    assert tool_names(groups) == {"search"}
    assert tool_names([*groups[:2], called("b", "search", mode="evidence")]) == set()
    assert tool_names([called("a"), called("b")]) == set()
