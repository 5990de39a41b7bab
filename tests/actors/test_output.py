"""What agents send back, as hostile input."""

import json
import math
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.actors import output
from pytest_tfgrpo.actors.output import limited, read_output, read_trajectory, without_thoughts
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Frame, Trajectory, Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire

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


def test_a_frame_says_inside_of_which_it_was_made_and_else_keeps_what_it_says() -> None:
    frames = [{**TOOL_FRAME, "inside": value} for value in (0, 1, -1, True, "x", 10**30)]
    found = read({"answer": "2", "frames": frames}).frames
    assert [frame.inside for frame in found] == [0, 1, 0, 0, 0, 0]
    assert [frame.extra.get("inside") for frame in found] == [None, None, -1, True, "x", 10**30]


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


HUGE = 10**400
"""An integer that no float can hold."""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the agent returned None"),
        (42, "the agent returned 42"),
        (["42"], "a value of type list"),
        ({"answer": 42}, "the answer must be a string, not 42"),
        ({}, "no key 'answer'; it has none"),
        ({"anwser": "2"}, "it has 'anwser'; unknown key 'anwser'; did you mean 'answer'?"),
        ({"answer": "2", "frames": "many"}, "frames must be a list, not 'many'"),
        (
            {"answer": "2", "frames": [{**TOOL_FRAME, "kind": "magic"}]},
            "frame 1: Frame/kind: expected one of",
        ),
        ({"answer": "2", "frames": [TOOL_FRAME, {"kind": "tool"}]}, "frame 2: Frame: missing key 'name'"),
        (
            {"answer": "2", "frames": [{"kind": "tool", "nmae": "count"}]},
            "missing key 'name'; unknown key 'nmae'; did you mean 'name'?",
        ),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "tokens": -1}]}, "frame 1: tokens must be between 0"),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "tokens": True}]}, "frame 1: Frame/tokens: expected int"),
        (
            {"answer": "2", "frames": [{**TOOL_FRAME, "cost_usd": math.nan}]},
            "a value that JSON cannot represent",
        ),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "input": {1, 2}}]}, "a value of type set is not JSON"),
        ({"answer": "2", "cost_usd": -0.1}, "the answer's usage: cost_usd must be between 0"),
        ({"answer": "2", "tokens": 10**5000}, "a value that JSON cannot represent"),
        ({"answer": "2", "cost_usd": HUGE}, "usage: Frame/cost_usd: a number of 401 digits is too large"),
        ({"answer": "2", "cost_usd": -HUGE}, "usage: Frame/cost_usd: a number of 401 digits is too large"),
        ({"answer": "2", "latency_ms": HUGE}, "usage: Frame/latency_ms: a number of 401 digits is too"),
        ({"answer": "2", "tokens": HUGE}, "tokens must be between 0 and 1000000000000, not 1000"),
        (
            {"answer": "2", "frames": [{**TOOL_FRAME, "usage": {"prompt": HUGE, "completion": 1}}]},
            "frame 1: the tokens of usage must be between 0 and",
        ),
        ({"answer": "2", "frames": [{**TOOL_FRAME, "cost_usd": HUGE}]}, "frame 1: Frame/cost_usd: a number"),
        (Trajectory(answer="2", frames=(Frame(kind="tool", name=3),)), "frame 1: Frame/name: expected str"),  # type: ignore[arg-type]
    ],
)
def test_garbage_is_named(value: Any, reason: str) -> None:
    code, message = refusal(value)
    assert code == "garbage"
    assert reason in message


def test_an_agent_may_report_log_probabilities_of_its_model_calls() -> None:
    said = {"logprobs": [-0.5, -1], "token_ids": [7, 8], "temperature": 0.7, "kind": "processed"}
    kept = Sampled(logprobs=(-0.5, -1.0), token_ids=(7, 8), temperature=0.7, kind="processed")
    trajectory = read({"answer": "2", "frames": [{"kind": "model", "name": "m", "sampled": said}]})
    assert trajectory.frames[0].sampled == kept
    assert read(trajectory) == trajectory
    assert read({"answer": "2", "sampled": said}).frames[-1].sampled == kept
    assert read(read_output(lines({"answer": "2", "sampled": said}))).frames[-1].sampled == kept
    exact = {"logprobs": np.array([-0.5, -1], np.float32), "token_ids": np.array([7, 8]), "temperature": 1}
    tokens = {name: list(value) if isinstance(value, np.ndarray) else value for name, value in exact.items()}
    numpy = read({"answer": "2", "sampled": tokens}).frames[-1].sampled
    assert numpy == replace(kept, kind="unknown", temperature=1.0)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"logprobs": [-0.5, math.nan], "kind": "raw"}, "not_finite"),
        ({"logprobs": [-0.5, None], "kind": "raw"}, "not_finite"),
        ({"logprobs": [-0.5, HUGE], "kind": "raw"}, "not_finite"),
        ({"logprobs": [-0.5, 0.5], "kind": "raw"}, "positive"),
        ({"logprobs": [-0.5], "kind": "raw"}, "short"),
        ({"logprobs": [-0.5] * 3, "kind": "raw"}, "long"),
        ({"logprobs": [-0.5, "x"], "kind": "raw"}, "malformed"),
        ({"logprobs": np.zeros(2), "kind": "raw"}, "malformed"),
        ({"logprobs": [-0.5, -0.5], "token_ids": [1], "kind": "raw"}, "token_ids"),
        ({"kind": "raw"}, "missing_logprobs"),
        ({"kind": "raw", "logprobs": None, "reason": "model_of_its_own"}, "model_of_its_own"),
        ({"kind": "raw", "logprobs": None, "reason": "\x1b[31m"}, "missing_logprobs"),
        ({"kind": ["raw"], "temperature": "warm"}, "missing_logprobs"),
        ([-0.5, -0.5], "malformed"),
        ("none", "malformed"),
    ],
)
def test_what_it_reports_and_cannot_be_costs_the_log_probabilities_alone(said: Any, reason: str) -> None:
    usage = {"prompt": 5, "completion": 2}
    frame = {"kind": "model", "name": "m", "usage": usage, "sampled": said}
    (found,) = read({"answer": "2", "frames": [frame]}).frames
    assert found.sampled is not None
    kind = "raw" if isinstance(said, dict) and said["kind"] == "raw" else "unknown"
    assert found.sampled == Sampled(kind=kind, reason=reason)  # type: ignore[arg-type]


def test_unknown_keys_are_kept_and_change_nothing_else() -> None:
    plain = read({"answer": "2", "frames": [TOOL_FRAME], "tokens": 4})
    more = {"score": 1, 7: [None], "extra": {"own": "x"}}
    told = read({"answer": "2", "frames": [{**TOOL_FRAME, "span": {"id": 3}}], "tokens": 4, **more})
    assert told.extra == {"score": 1, "7": [None], "own": "x"}
    assert told.frames[0] == replace(plain.frames[0], extra={"span": {"id": 3}})
    assert replace(told, extra={}, frames=plain.frames) == plain
    assert read(told) == told
    assert "extra" not in to_wire(plain)


@pytest.mark.parametrize(
    ("unknown", "kept"),
    [
        ({f"k{n}": n for n in range(30)}, {f"k{n}": n for n in range(20)} | {"dropped": 10}),
        ({"large": "x" * 10_000, "small": 1}, {"small": 1, "dropped": 1}),
        ({"a": "x" * 6000, "b": "x" * 6000}, {"a": "x" * 6000, "dropped": 1}),
        ({"a": "x" * 9991}, {"a": "x" * 9991}),
        ({"a": "x" * 9992}, {"dropped": 1}),
        ({"object": object(), "nan": math.nan, "huge": 10**5000}, {"dropped": 3}),
        ({"deep": json.loads("[" * 30 + "]" * 30), "flat": [[]]}, {"flat": [[]], "dropped": 1}),
        ({"extra": 3, "half": "\ud800"}, {"extra": 3, "half": "?"}),
    ],
)
def test_what_is_kept_of_unknown_keys_is_bounded(unknown: dict[str, Any], kept: dict[str, Any]) -> None:
    assert read({"answer": "2", **unknown}).extra == kept
    assert read({"answer": "2", "frames": [{**TOOL_FRAME, **unknown}]}).frames[0].extra == kept


def test_unknown_keys_of_many_frames_are_bounded_together() -> None:
    trajectory = read({"answer": "2", "frames": [{**TOOL_FRAME, "log": "x" * 9000}] * 12}, limit=200)
    assert [sorted(frame.extra) for frame in trajectory.frames] == [["log"]] * 11 + [["dropped"]]


@pytest.mark.parametrize(
    ("told", "started_at"),
    [
        ("2026-01-31T13:00:00.25+01:00", "2026-01-31T12:00:00.250Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        (None, None),
    ],
)
def test_a_frame_may_say_when_its_call_began(told: str | None, started_at: str | None) -> None:
    frame = read({"answer": "2", "frames": [{**TOOL_FRAME, "started_at": told}]}).frames[0]
    assert (frame.started_at, frame.extra) == (started_at, {})


@pytest.mark.parametrize("told", [1769860800.5, "2026-01-31T12:00:00", "noon", "0001-01-01T00:00:00+14:00"])
def test_a_time_of_another_form_is_kept_as_an_unknown_key(told: Any) -> None:
    frame = read({"answer": "2", "frames": [{**TOOL_FRAME, "started_at": told}]}).frames[0]
    assert (frame.started_at, frame.extra) == (None, {"started_at": told})


@given(texts=st.lists(st.text(max_size=200), max_size=3))
def test_an_actor_may_report_short_texts_as_they_are(texts: list[str]) -> None:
    said = Frame(kind="model", name="m", extra={f"key {n}": text for n, text in enumerate(texts)})
    (kept,) = limited(Trajectory(answer="2", frames=(said,))).frames
    assert kept.extra == {key: text.encode("utf-8", "replace").decode() for key, text in said.extra.items()}


def test_many_short_texts_are_bounded_together() -> None:
    said = Frame(kind="model", name="m", extra={"key": "x" * 100})
    frames = limited(Trajectory(answer="2", frames=(said,) * 2000)).frames
    assert frames[0].extra == said.extra
    assert frames[-1].extra == {"dropped": 1}


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


frames_of_a_call = st.fixed_dictionaries(
    {"kind": st.sampled_from(["tool", "model"]), "name": st.text("abc", min_size=1, max_size=3)},
    optional={"tokens": st.integers(0, 9), "output": st.text(max_size=5), "input": json_values},
)
right_ones = st.fixed_dictionaries(
    {"answer": st.text(max_size=5)}, optional={"frames": st.lists(frames_of_a_call, max_size=3)}
)
with_frames = st.fixed_dictionaries(
    {"answer": st.text(max_size=5), "frames": st.lists(frames_of_a_call, min_size=2, max_size=3)}
)


@reaches("a trajectory", "frames", "a failure")
@given(right_ones | with_frames | near_misses | json_values)
def test_whatever_comes_is_a_trajectory_or_the_agents_failure(value: Any) -> None:
    try:
        trajectory = read(value)
    except AgentFailure:
        reached("a failure")
        return
    reached("a trajectory")
    reached("frames", len(trajectory.frames) > 1)
    assert trajectory.tokens >= 0
    assert from_wire(Trajectory, json.loads(json.dumps(to_wire(trajectory), allow_nan=False))) == trajectory


def test_a_program_prints_frames_and_then_its_answer() -> None:
    value = read_output(lines({"frame": TOOL_FRAME}, {"answer": "2", "tokens": 7}))
    assert value == {"answer": "2", "tokens": 7, "frames": [TOOL_FRAME]}


def test_further_keys_beside_a_frame_or_an_answer_are_passed_on() -> None:
    value = read_output(
        lines({"frame": TOOL_FRAME, "ts": 1}, {"answer": "2", "error": None, "frames": [TOOL_FRAME]})
    )
    assert value == {
        "answer": "2",
        "error": None,
        "frames": [{**TOOL_FRAME, "extra": {"ts": 1}}, TOOL_FRAME],
    }
    with pytest.raises(ProviderError, match=r"reported: closed$"):
        read_output(lines({"error": "closed", "code": 3}))


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
        (lines({"anwser": "2"}), "garbage", "; unknown key 'anwser'; did you mean 'answer'?"),
        (lines({"answer": "2", "error": "no"}), "garbage", "line 1 is not"),
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


framed = st.lists(frames_of_a_call.map(lambda frame: {"frame": frame}), max_size=2)
printed = st.one_of(
    st.binary(max_size=300),
    st.lists(near_misses | json_values, max_size=3).map(lambda vs: lines(*vs)),
    st.tuples(framed, right_ones | near_misses).map(lambda vs: lines(*vs[0], vs[1])),
    st.tuples(framed, right_ones).map(lambda vs: lines(*vs[0], vs[1])),
)


@reaches("lines", "text", "refused")
@given(printed)
def test_whatever_is_printed_is_read_or_refused(stdout: bytes) -> None:
    try:
        value = read_output(stdout)
        read(value)
    except (AgentFailure, ProviderError):
        reached("refused")
        return
    reached("text" if isinstance(value, str) else "lines")


@pytest.mark.parametrize("answer", ["x" * 1001, 3, None])
def test_an_answer_that_cannot_be_used_keeps_the_calls_that_were_paid(answer: Any) -> None:
    with pytest.raises(AgentFailure) as failed:
        read({"answer": answer, "frames": [TOOL_FRAME], "model": "big", "cost_usd": 0.25})
    assert [(frame.name, frame.cost_usd) for frame in failed.value.frames] == [("count", None), ("big", 0.25)]
    with pytest.raises(AgentFailure) as failed:
        read(Trajectory(answer="x" * 1001, frames=(Frame(kind="model", name="m", cost_usd=0.5),)))
    assert [frame.cost_usd for frame in failed.value.frames] == [0.5]
    for nothing in ({"answer": answer}, {"answer": answer, "frames": [{"kind": "tool"}]}):
        with pytest.raises(AgentFailure) as failed:
            read(nothing)
        assert failed.value.frames == ()


def test_a_program_that_reports_an_error_keeps_the_calls_before_it() -> None:
    with pytest.raises(ProviderError) as failed:
        read_output(lines({"frame": TOOL_FRAME}, {"error": "busy"}))
    assert [frame.name for frame in failed.value.frames] == ["count"]


def spanned(value: Any, *spans: Frame) -> Trajectory:
    return read_trajectory(value, answer_max_bytes=1000, elapsed_ms=12.5, model="m", spans=lambda: spans)


SPANS = (
    Frame(kind="model", name="outer", tokens=9),
    Frame(kind="tool", name="search", inside=1),
    Frame(kind="model", name="inner", inside=2, tokens=9),
    Frame(kind="tool", name="fetch", inside=2),
    Frame(kind="tool", name="alone"),
)


def test_spans_take_the_place_of_frames_and_of_tools_alone_where_the_answer_says_what_the_model_took() -> (
    None
):
    for value in ("2", {"answer": "2"}):
        assert spanned(value, *SPANS).frames == SPANS
    for more in ({"tokens": 3}, {"model": "big"}):
        *tools, closing = spanned({"answer": "2", **more}, *SPANS).frames
        assert [(frame.name, frame.inside) for frame in tools] == [("search", 0), ("fetch", 1), ("alone", 0)]
        assert (closing.kind, closing.name) == ("model", more.get("model", "m"))
        assert closing.latency_ms == 0.0, "the tools took a part of the time"
    assert spanned({"answer": "2", "frames": [TOOL_FRAME]}, *SPANS).frames[0].name == "count"


def test_an_answer_without_any_call_took_the_whole_time() -> None:
    (closing,) = read({"answer": "2", "tokens": 3}).frames
    assert (closing.latency_ms, closing.tokens) == (12.5, 3)
    (closing,) = read({"answer": "2", "latency_ms": 4}).frames
    assert closing.latency_ms == 4.0


def test_a_frame_of_the_user_is_ours_alone_and_its_size_counts_with_the_answer() -> None:
    assert refusal({"answer": "2", "frames": [{"kind": "user", "name": "x"}]}) == (
        "garbage",
        "frame 1: the kind must be model or tool, not user",
    )
    value: dict[str, Any] = {"answer": "x", "frames": [{"kind": "tool", "name": "t", "output": ""}]}
    room = 8 * 50 - len(json.dumps(value)) - len(', "inside": 0')
    value["frames"][0]["output"] = "y" * room
    assert read(value, 50).answer == "x"
    value["frames"][0]["output"] = "y" * (room + 1)
    assert refusal(value, 50) == ("oversize", "answer and frames have 401 bytes, more than 400")


@pytest.mark.parametrize("inside", [10**12, 10**12 + 1])
def test_how_far_inside_a_frame_may_say_it_is(inside: int) -> None:
    (frame,) = read({"answer": "2", "frames": [{**TOOL_FRAME, "inside": inside}]}).frames
    assert (frame.inside == inside) is (inside <= 10**12)
    assert (frame.extra.get("inside") == inside) is (inside > 10**12)


@pytest.mark.parametrize("field", ["prompt", "completion", "reasoning", "cached"])
def test_every_count_of_usage_must_be_one(field: str) -> None:
    usage = {"prompt": 1, "completion": 1, "reasoning": 0, "cached": 0, field: 10**12 + 1}
    frame = {"kind": "model", "name": "m", "usage": usage}
    assert refusal({"answer": "2", "frames": [frame]}) == (
        "garbage",
        "frame 1: the tokens of usage must be between 0 and 1000000000000",
    )


@pytest.mark.parametrize(
    "line", [{"error": "no", "answer": "2"}, {"error": "no", "frame": {}}, {"frame": {}, "answer": "2"}]
)
def test_a_line_that_is_two_things_at_once_is_none(line: dict[str, Any]) -> None:
    with pytest.raises(AgentFailure, match="line 1 is not") as error:
        read_output(lines(line))
    assert error.value.code == "garbage"


def test_what_stands_beside_a_frame_is_kept_with_it_and_wins() -> None:
    found = read_output(
        lines({"frame": {**TOOL_FRAME, "note": "in", "own": 1}, "note": "out"}, {"answer": "2"})
    )
    assert isinstance(found, dict)
    (frame,) = read(found).frames
    assert frame.extra == {"note": "out", "own": 1}


@pytest.mark.parametrize(("length", "shown"), [(78, "x" * 78 + "'"), (79, "x" * 76 + "...")])
def test_a_value_is_shown_up_to_80_characters(length: int, shown: str) -> None:
    assert refusal({"answer": ["x"]})[1] == "the answer must be a string, not a value of type list"
    assert refusal({"frames": [], "x" * length: 1})[1].startswith(
        f"no key 'answer'; it has '{shown}, 'frames'"
    )


@pytest.mark.parametrize(("depth", "kept"), [(19, True), (20, False)])
def test_unknown_keys_are_kept_20_levels_deep(depth: int, kept: bool) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    extra = read({"answer": "2", "frames": [TOOL_FRAME], "own": value}).extra
    assert ("own" in extra) is kept
    assert extra.get("dropped") == (None if kept else 1)


def test_one_long_text_beside_a_frame_has_the_limits_of_any_other() -> None:
    long = Frame(kind="tool", name="t", extra={"note": "x" * 10_000})
    assert limited(Trajectory(answer="2", frames=(long,))).frames[0].extra == {"dropped": 1}
    small = Trajectory(answer="2", frames=(replace(long, extra={"note": "x" * 146}),))
    assert limited(small) is small


def test_thoughts_go_to_the_last_call_of_a_model_whose_own_text_stays() -> None:
    said = "<think>hm</think>\n4"
    first, last = Frame(kind="model", name="a", output="x"), Frame(kind="model", name="b", output=said)
    tool = Frame(kind="tool", name="t", output=said)
    found = without_thoughts(Trajectory(answer=said, frames=(first, last, tool)))
    assert found.answer.strip() == "4"
    assert [frame.thoughts for frame in found.frames] == [None, "hm", None] or (
        [bool(frame.thoughts) for frame in found.frames] == [False, True, False]
    )
    assert found.frames[1].output == found.answer
    assert found.frames[2] == tool
    other = without_thoughts(Trajectory(answer=said, frames=(replace(last, output="other"),)))
    assert other.frames[0].output == "other"
    assert without_thoughts(Trajectory(answer=said)).answer == found.answer
    plain = Trajectory(answer="4", frames=(first,))
    assert without_thoughts(plain) is plain


@pytest.mark.parametrize(
    ("answer", "why"),
    [("<think>hm</think>", ""), ("<think>hm", "; they begin with '?<think>'? and never end")],
)
def test_thoughts_alone_are_no_answer_and_their_call_is_kept(answer: str, why: str) -> None:
    frame = Frame(kind="model", name="a", output=answer)
    with pytest.raises(AgentFailure, match=f"returned thoughts and no answer{why}") as error:
        without_thoughts(Trajectory(answer=answer, frames=(frame,)))
    assert error.value.code == "no_answer"
    assert len(error.value.frames) == 1


@pytest.mark.parametrize(
    ("extra", "small"),
    [
        ({"a": "b"}, True),
        ({"a": "b", "c": "d"}, False),
        ({}, False),
        ({"a": "\xe4"}, False),
        ({"a": 1}, False),
    ],
)
def test_one_short_text_is_small(extra: object, small: bool) -> None:
    assert output._is_small(extra) is small
