"""Values in the streams of coding agents, which may be anything."""

from typing import Any

import pytest

from pytest_tfgrpo.actors.events import stream
from pytest_tfgrpo.actors.output import TOKENS_MAX
from pytest_tfgrpo.core.errors import AgentFailure
from pytest_tfgrpo.core.records import Usage


@pytest.mark.parametrize(
    ("value", "text", "count", "amount"),
    [
        ("", "", None, None),
        ("x", "x", None, None),
        (None, "", None, None),
        (True, "", None, None),
        (0, "", 0, 0.0),
        (0.5, "", None, 0.5),
        (-1, "", None, None),
        (TOKENS_MAX, "", TOKENS_MAX, float(TOKENS_MAX)),
        (TOKENS_MAX + 1, "", None, None),
        (float("nan"), "", None, None),
    ],
)
def test_only_believable_values_count(value: Any, text: str, count: int | None, amount: float | None) -> None:
    assert (stream.text(value), stream.count(value), stream.amount(value)) == (text, count, amount)


@pytest.mark.parametrize(
    ("prompt", "completion", "more", "total"),
    [
        (0, 0, {}, 0),
        (2, 3, {}, 5),
        (2, 3, {"reasoning": 1, "cached": 1}, 5),
        (TOKENS_MAX, 0, {}, TOKENS_MAX),
        (TOKENS_MAX, 1, {}, None),
        (None, 3, {}, None),
        (2, None, {}, None),
        (2, 3, {"reasoning": None}, None),
        (2, 3, {"cached": None}, None),
    ],
)
def test_tokens_are_told_whole_or_not_at_all(
    prompt: int | None, completion: int | None, more: Any, total: int | None
) -> None:
    found = stream.usage(prompt, completion, **more)
    if total is None:
        assert found is None
    else:
        fields: Any = {"prompt": prompt, "completion": completion, "reasoning": 0, "cached": 0} | more
        assert found == Usage(**fields)
        assert found.total == total


def nested(depth: int, inner: Any, *, in_dicts: bool = False) -> Any:
    for _ in range(depth):
        inner = {"a": inner} if in_dicts else [inner]
    return inner


@pytest.mark.parametrize("in_dicts", [False, True])
def test_input_nested_too_deeply_is_kept_as_text(in_dicts: bool) -> None:
    flat, deep = (nested(depth, "é", in_dicts=in_dicts) for depth in (stream.DEPTH_MAX, stream.DEPTH_MAX + 1))
    assert stream.data(flat) is flat
    found = stream.data(deep)
    assert isinstance(found, str)
    assert found.count("{" if in_dicts else "[") == stream.DEPTH_MAX + 1
    assert "é" in found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, ""),
        ([], ""),
        ({"é": 1}, '{"é": 1}'),
        (0, "0"),
        (
            [{"type": "text", "text": "a"}, {"type": "text", "text": 1}, {"type": "image"}, {}, "b", 3],
            "a\n\n[image]\n[block]\nb\n[block]",
        ),
    ],
)
def test_a_result_is_the_text_of_its_blocks(value: Any, text: str) -> None:
    assert stream.content(value) == text


@pytest.mark.parametrize(
    ("message", "code", "too_long"),
    [
        ("", "provider", False),
        ("HTTP 429", "rate_limit", False),
        ("HTTP 529", "rate_limit", False),
        ("HTTP 1429", "provider", False),
        ("Overloaded, api key fine", "rate_limit", False),
        ("your usage limit", "rate_limit", False),
        ("HTTP 403", "auth", False),
        ("Unauthorised", "auth", False),
        ("please log in", "auth", False),
        ("login2", "provider", False),
        ("Prompt is too long", "provider", True),
        ("the context window", "provider", True),
    ],
)
def test_a_fault_is_told_from_its_message(message: str, code: str, too_long: bool) -> None:
    assert (stream.fault_code(message), stream.is_too_long(message)) == (code, too_long)


def test_lines_that_do_not_begin_like_an_object_are_passed_over() -> None:
    assert [*stream.events_of(b'warning\n\n  {"a": "\\ud800"} \n[1]\n{"b": 2}')] == [{"a": "?"}, {"b": 2}]
    with pytest.raises(AgentFailure, match=r"line 2 of the stream is broken: '\{\"a\": NaN\}'"):
        [*stream.events_of(b'x\n{"a": NaN}')]
