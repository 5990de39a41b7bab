"""The task of a trajectory, and what is equal for two wordings of it."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.view.wording import prompt_of, wording_of

FIRST = {"observation": {"type": "user_message", "content": "May I get a refund?"}}
LATER = {"observation": {"type": "user_message", "content": "Thanks"}}


@pytest.mark.parametrize(
    ("context", "turns", "prompt"),
    [
        ({"instructions": "Refund it"}, [FIRST], "Refund it"),
        (
            {"instructions": " \n"},
            [{"observation": {"type": "tool_result"}}, {}, FIRST, LATER],
            "May I get a refund?",
        ),
        ({"instructions": None}, [{"observation": {"type": "user_message", "content": " "}}, LATER], ""),
        ({}, [{"observation": {"type": "user_message", "content": 7}}, LATER], ""),
        ({}, [], ""),
    ],
)
def test_the_task_is_what_was_recorded_of_it_else_the_first_message_of_the_user(
    context: dict[str, Json], turns: list[Json], prompt: str
) -> None:
    assert prompt_of({"task_context": context, "turns": turns}) == prompt


def test_case_blanks_forms_of_characters_and_values_taken_out_make_no_other_wording() -> None:
    said = "Send ﬁve copies to [redacted:email:0a1b2c]"
    same = [" send  FIVE\ncopies to [redacted:email:ffffff] ", "Send five copies to [redacted:email:000000]"]
    assert {wording_of(one) for one in same} == {wording_of(said)}
    others = [
        "Send four copies to [redacted:email:0a1b2c]",
        "Send five copies to [redacted:phone:0a1b2c]",
        "",
    ]
    assert wording_of(said) not in map(wording_of, others)
    assert len(wording_of(said)) == 32
