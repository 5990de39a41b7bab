"""Whether texts were recorded, as the recordings of frameworks have it."""

import pytest
from support.traces.framework_truth import FrameworkCase, framework_cases
from support.traces.recorded_spans import runs_of

from pytest_tfgrpo.production.assembly.trajectories import trajectory_of
from pytest_tfgrpo.production.view.recorded_texts import has_texts

KEPT = FrameworkCase("google-adk-openinference", "no-content")
"""Where the switch hides nothing."""
CASES = [one for one in framework_cases() if one.case in ("no-content", "one-tool") and one != KEPT]


@pytest.mark.parametrize("one", CASES, ids="-".join)
def test_a_run_has_texts_unless_the_framework_recorded_none(one: FrameworkCase) -> None:
    runs, _ = runs_of(*one.lines)
    assert {has_texts(trajectory_of(run)) for run in runs} == {one.truth["content"]}


def test_an_error_is_no_text() -> None:
    runs, _ = runs_of(*FrameworkCase("openai-agents-openinference", "dead").lines)
    (payload,) = map(trajectory_of, runs)
    assert payload["turns"][0]["result"]["error"]
    assert not has_texts(payload)


@pytest.mark.parametrize("odd", [None, 3, [], {"action": 3}, {"observation": "x", "result": []}])
def test_what_others_publish_as_a_turn_may_be_anything(odd: object) -> None:
    assert not has_texts({"task_context": {}, "turns": [odd]})


@pytest.mark.parametrize(
    ("turn", "texts"),
    [
        ({"thought_process": ["hm"]}, True),
        ({"action": {"raw_response": "17"}}, True),
        ({"action": {"tool_args": {"late": True}}}, True),
        ({"action": {"tool_args": {}}}, False),
        ({"result": {"output": "17"}}, True),
        ({"observation": {"type": "user_message", "content": "Which?"}}, True),
        ({"observation": {"type": "tool_result", "content": "17"}}, False),
    ],
)
def test_each_text_of_a_turn_is_one(turn: dict[str, object], texts: bool) -> None:
    assert has_texts({"task_context": {}, "turns": [{}, turn]}) is texts
