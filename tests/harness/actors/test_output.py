"""What agents send back, as hostile input."""

import json
import math
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Frame, Trajectory, Usage
from pytest_tfgrpo.core.wire import from_wire, to_wire
from pytest_tfgrpo.harness.actors.output import read_output, read_trajectory

TOOL_FRAME = {"kind": "tool", "name": "count", "input": {"text": "a b"}, "output": "2", "tokens": 3}


def read(value: Any, limit: int = 1000) -> Trajectory:
    return read_trajectory(value, answer_max_bytes=limit, elapsed_ms=12.5, model="m")


def refusal(value: Any, limit: int = 1000) -> tuple[str, str]:
    with pytest.raises(AgentFailure) as caught:
        read(value, limit)
    return caught.value.code, str(caught.value)


def lines(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def test_a_string_is_the_answer_of_one_model_call() -> None:
    assert read("42") == Trajectory(
        answer="42", frames=(Frame(kind="model", name="m", output="42", latency_ms=12.5),)
    )


def test_a_mapping_may_carry_frames_and_then_gets_no_frame_added() -> None:
    trajectory = read({"answer": "2", "frames": [TOOL_FRAME]})
    assert trajectory.frames == (
        Frame(kind="tool", name="count", input={"text": "a b"}, output="2", tokens=3),
    )
    assert trajectory.tokens == 3


def test_usage_beside_the_answer_becomes_a_last_model_frame() -> None:
    trajectory = read({"answer": "2", "frames": [TOOL_FRAME], "tokens": 40, "cost_usd": 0.25, "model": "big"})
    assert trajectory.frames[-1] == Frame(kind="model", name="big", output="2", tokens=40, cost_usd=0.25)
    assert trajectory.tokens == 43


def test_a_trajectory_passes_through() -> None:
    asked = Frame(kind="model", name="m", usage=Usage(prompt=5, completion=2), finish="stop")
    trajectory = Trajectory(answer="2", frames=(Frame(kind="tool", name="count", cost_usd=0.5), asked))
    assert read(trajectory) == trajectory


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the agent returned None"),
        (42, "the agent returned 42"),
        (["42"], "a value of type list"),
        ({"answer": 42}, "the answer must be a string, not 42"),
        ({}, "the answer must be a string, not None"),
        ({"answer": "2", "score": 1}, "unknown key 'score'"),
        ({"answer": "2", 7: 1}, "unknown key '7'"),
        ({"answer": "2", "frames": "many"}, "frames must be a list, not 'many'"),
        (
            {"answer": "2", "frames": [{**TOOL_FRAME, "kind": "magic"}]},
            "frame 1: Frame/kind: expected one of",
        ),
        ({"answer": "2", "frames": [TOOL_FRAME, {"kind": "tool"}]}, "frame 2: Frame: missing key 'name'"),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "tokens": -1}]}, "frame 1: tokens must be between 0"),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "tokens": True}]}, "frame 1: Frame/tokens: expected int"),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "cost_usd": math.nan}]}, "what JSON cannot hold"),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "input": {1, 2}}]}, "a value of type set is not JSON"),
        ({"answer": "2", "cost_usd": -0.1}, "the answer's usage: cost_usd must be between 0"),
        ({"answer": "2", "tokens": 10**5000}, "what JSON cannot hold"),
        (Trajectory(answer="2", frames=(Frame(kind="tool", name=3),)), "frame 1: Frame/name: expected str"),  # type: ignore[arg-type]
    ],
)
def test_garbage_is_named(value: Any, reason: str) -> None:
    code, message = refusal(value)
    assert code == "garbage"
    assert reason in message


def test_bottomless_nesting_is_garbage() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert refusal({"answer": "2", "frames": [{**TOOL_FRAME, "input": deep}]})[0] == "garbage"
    while deep:  # taken apart by hand, as the interpreter would recurse
        deep = deep.pop()


def test_the_limit_counts_utf8_bytes() -> None:
    assert read("é" * 5, limit=10).answer == "é" * 5
    assert refusal("é" * 6, limit=10) == ("oversize", "the answer has 12 bytes, more than 10")
    assert refusal({"answer": "x" * 11}, limit=10)[0] == "oversize"


def test_frames_count_towards_a_larger_limit() -> None:
    code, message = refusal({"answer": "2", "frames": [{**TOOL_FRAME, "output": "x" * 8000}]})
    assert code == "oversize"
    assert "more than 8000" in message


def test_a_subclass_of_str_becomes_a_plain_string() -> None:
    class Colour(StrEnum):
        RED = "red"

    assert type(read({"answer": Colour.RED}).answer) is str


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_is_an_answer_that_the_wire_and_utf8_can_hold(text: str) -> None:
    trajectory = read(text)
    assert trajectory.answer.encode() == text.encode("utf-8", "replace")
    assert from_wire(Trajectory, json.loads(json.dumps(to_wire(trajectory)))) == trajectory


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
near_misses = st.fixed_dictionaries(
    {},
    optional={
        "answer": st.text(max_size=5) | json_values,
        "frames": st.lists(
            st.fixed_dictionaries(
                {"kind": st.sampled_from(["tool", "model", "x"]), "name": st.text(max_size=3)},
                optional={"tokens": st.integers() | json_values, "output": st.text(), "input": json_values},
            ),
            max_size=3,
        )
        | json_values,
        "tokens": st.integers(),
        "cost_usd": st.floats() | st.none(),
    },
)


@given(near_misses | json_values)
def test_whatever_comes_is_a_trajectory_or_the_agents_failure(value: Any) -> None:
    try:
        trajectory = read(value)
    except AgentFailure:
        return
    assert trajectory.tokens >= 0
    assert from_wire(Trajectory, json.loads(json.dumps(to_wire(trajectory), allow_nan=False))) == trajectory


def test_a_program_prints_frames_and_then_its_answer() -> None:
    value = read_output(lines({"frame": TOOL_FRAME}, {"answer": "2", "tokens": 7}))
    assert value == {"answer": "2", "tokens": 7, "frames": [TOOL_FRAME]}


def test_plain_text_as_a_whole_is_the_answer() -> None:
    assert read_output(b"\nthe answer\nis 42\n\n") == "the answer\nis 42"
    assert read_output(b'{\n  "pretty": 1\n}\n') == '{\n  "pretty": 1\n}'
    assert read_output(b"\xff42") == "\ufffd42"


def test_a_line_separator_inside_a_json_string_does_not_end_the_line() -> None:
    assert read_output('{"answer": "a\u2028b"}\r\n'.encode()) == {"answer": "a\u2028b", "frames": []}


@pytest.mark.parametrize(
    ("stdout", "code", "reason"),
    [
        (b"", "no_answer", "printed no answer"),
        (b" \n\n", "no_answer", "printed no answer"),
        (lines({"frame": TOOL_FRAME}), "no_answer", "frames but no answer"),
        (b'thinking...\n{"answer": "2"}\n', "garbage", "line 1 is not"),
        (b'{"answer": "2"}\n\ndone\n', "garbage", "line 3 follows the answer: 'done'"),
        (lines({"answer": "2"}, {"answer": "3"}), "garbage", "line 2 follows the answer"),
        (lines({"frame": TOOL_FRAME, "answer": "2"}), "garbage", "line 1 is not"),
        (lines({"a": 1}), "garbage", "line 1 is not"),
        (lines({"frame": 3}, {"answer": "2"}), "garbage", "line 1 is not"),
        (b'{"answer": "2"\n{"frame": {}}\n', "garbage", "line 1 is not"),
    ],
)
def test_output_that_is_no_answer_names_the_line(stdout: bytes, code: str, reason: str) -> None:
    with pytest.raises(AgentFailure) as caught:
        read_output(stdout)
    assert caught.value.code == code
    assert reason in str(caught.value)


def test_an_error_line_is_the_providers_fault() -> None:
    with pytest.raises(ProviderError, match="reported: rate limited"):
        read_output(lines({"frame": TOOL_FRAME}, {"error": "rate limited"}))


@given(st.binary(max_size=300) | st.lists(near_misses | json_values, max_size=3).map(lambda vs: lines(*vs)))
def test_whatever_is_printed_is_read_or_refused(stdout: bytes) -> None:
    try:
        read(read_output(stdout))
    except (AgentFailure, ProviderError):
        return
