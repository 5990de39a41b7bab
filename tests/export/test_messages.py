"""Attempts as messages of a conversation, and as pairs of a winner and a loser."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_frame, make_rollout, make_scenario

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.export.messages import completion_of, prompt_messages
from pytest_tfgrpo.export.rows import MAX_PAIRS, NO_ANSWER, preference_rows


def model(text: str) -> Frame:
    return make_frame("m", kind="model", output=text)


def tool(text: str = "3", **changes: Any) -> Frame:
    return make_frame("count", output=text, **changes)


def said(text: str) -> Frame:
    return make_frame("user", kind=USER, output=text)


def messages(*frames: Frame, answer: str) -> list[tuple[str, str]]:
    found = completion_of(make_rollout(frames=frames, answer=answer)).messages
    return [(one["role"], one["content"]) for one in found]


@pytest.mark.parametrize(
    ("frames", "answer", "expected"),
    [
        ((), "4", [("assistant", "4")]),
        ((model("It is 4."),), "4", [("assistant", "It is 4.")]),
        ((model("It is 44."),), "4", [("assistant", "4")]),
        ((model("It is 4x4."),), "4.4", [("assistant", "4.4")]),
        ((model("It is (4+4)*2."),), "(4+4)*2", [("assistant", "It is (4+4)*2.")]),
        ((model("Hm."), model("It is 5.")), "4", [("assistant", "Hm."), ("assistant", "4")]),
        ((model(""), model("4")), "4", [("assistant", "4")]),
        ((model("Hm."), tool()), "4", [("assistant", "Hm."), ("tool", "3"), ("assistant", "4")]),
        ((tool(), model("4")), "4", [("assistant", ""), ("tool", "3"), ("assistant", "4")]),
        ((tool(error="no"),), "", [("assistant", ""), ("tool", "error: no")]),
        (
            (said("A table."), model("When?"), said("At 8."), model("Done.")),
            "Done.",
            [("assistant", "When?"), ("user", "At 8."), ("assistant", "Done.")],
        ),
    ],
    ids=[
        "answer",
        "says-it",
        "longer",
        "any-sign",
        "signs",
        "says-other",
        "silent",
        "tool",
        "tool-first",
        "failed",
        "talk",
    ],
)
def test_an_attempt_is_its_turns_and_at_last_its_answer(
    frames: Any, answer: str, expected: list[tuple[str, str]]
) -> None:
    assert messages(*frames, answer=answer) == expected


def test_calls_of_a_turn_have_ids_that_their_results_name() -> None:
    frames = (model("Hm."), tool(input={"a": 1}), tool(input="odd"), tool(input=None))
    asked, *told = completion_of(make_rollout(frames=frames, answer="")).messages
    assert [(one["id"], one["function"]["arguments"]) for one in asked["tool_calls"]][::2] == [
        ("call_1_1", '{"a": 1}'),
        ("call_1_3", "{}"),
    ]
    assert "odd" in asked["tool_calls"][1]["function"]["arguments"]
    assert [one["tool_call_id"] for one in told] == ["call_1_1", "call_1_2", "call_1_3"]
    assert {one["name"] for one in told} == {"count"}


def test_a_prompt_without_a_system_text_is_the_message_of_the_user_alone() -> None:
    prompt: Any = SimpleNamespace(system="", user="Count.")
    assert [(m["role"], m["content"]) for m in prompt_messages(prompt)] == [("user", "Count.")]
    prompt.system = "Be short."
    assert [m["role"] for m in prompt_messages(prompt)] == ["system", "user"]


def pairs(*rollouts: tuple[str, float]) -> tuple[list[tuple[float, float]], Counter[str]]:
    """Return the rewards of the pairs of a group, given by answers and rewards, and what is left out."""
    members = [
        SimpleNamespace(
            rollout=make_rollout(n, answer=answer),
            reward=reward,
            completion=completion_of(make_rollout(n, answer=answer, frames=())),
            prompt=SimpleNamespace(system="", user="Count."),
        )
        for n, (answer, reward) in enumerate(rollouts)
    ]
    mean = sum(reward for _, reward in rollouts) / len(rollouts)
    group: Any = SimpleNamespace(rollouts=members, mean=mean, scenario=make_scenario())
    index: Any = None
    left_out = Counter[str]()
    rows = [*preference_rows(index, group, False, left_out)]
    return [(row["chosen_reward"], row["rejected_reward"]) for row in rows], left_out


@pytest.mark.parametrize(
    ("rollouts", "expected"),
    [
        ([("a", 0.8), ("b", 1.0), ("c", 0.2), ("d", 0.0)], [(1.0, 0.0), (0.8, 0.2)]),
        ([("a", 1.0), ("b", 0.3), ("c", 0.0), ("d", 0.2)], [(1.0, 0.0), (1.0, 0.2), (1.0, 0.3)]),
        ([("a", 1.0), ("a", 1.0), ("b", 0.0)], [(1.0, 0.0)]),
        ([("a", 1.0), ("a", 0.0), ("b", 0.0)], []),
        ([("a", 1.0), ("b", 1.0), ("b", 0.0)], []),
        ([("a", 0.5), ("b", 0.5)], []),
    ],
    ids=["two-each", "one-winner", "equal-once", "won-and-lost", "lost-and-won", "level"],
)
def test_the_best_is_paired_with_the_worst(
    rollouts: list[tuple[str, float]], expected: list[tuple[float, float]]
) -> None:
    assert pairs(*rollouts) == (expected, Counter({NO_ANSWER: 0}))


def test_rollouts_without_an_answer_are_in_no_pair_and_there_are_so_many_pairs_at_most() -> None:
    found, left_out = pairs(("", 1.0), ("a", 1.0), *((f"b{n}", 0.0) for n in range(MAX_PAIRS + 1)))
    assert (len(found), left_out) == (MAX_PAIRS, Counter({NO_ANSWER: 1}))
