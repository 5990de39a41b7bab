"""Which log-probabilities can serve as the old ones of a policy ratio, and how they travel."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.sampled import (
    MOST,
    LogProbKind,
    Sampled,
    checked,
    is_plain,
    reported,
    temperature_of,
    why_no_ratio,
)
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire


@pytest.mark.parametrize(
    ("kind", "temperature", "reason"),
    [
        ("processed", 0.7, ""),
        ("processed", 1.0, ""),
        ("processed", None, ""),
        ("processed", 0.0, "greedy"),
        ("raw", 1.0, ""),
        ("raw", 0.7, "raw_at_temperature"),
        ("raw", None, "raw_at_temperature"),
        ("raw", 0.0, "greedy"),
        ("unknown", 1.0, ""),
        ("unknown", 0.7, "unknown_at_temperature"),
        ("unknown", None, "unknown_at_temperature"),
    ],
)
def test_a_ratio_needs_the_probability_with_which_a_token_was_drawn(
    kind: LogProbKind, temperature: float | None, reason: str
) -> None:
    sampled = Sampled(kind=kind, temperature=temperature, logprobs=(-0.5, 0.0))
    assert why_no_ratio(sampled) == reason


def test_without_log_probabilities_there_is_no_ratio() -> None:
    assert why_no_ratio(None) == "missing_logprobs"
    assert why_no_ratio(Sampled(kind="processed")) == "missing_logprobs"
    assert why_no_ratio(Sampled(kind="raw", temperature=0.7, reason="short")) == "short"


def test_a_frame_keeps_every_digit_and_old_frames_have_none() -> None:
    sampled = Sampled(kind="raw", logprobs=(-0.1234567890123456789, -1e-300), token_ids=(0, 151643))
    frame = Frame(kind="model", name="m", sampled=sampled)
    assert from_wire(Frame, json.loads(json.dumps(to_wire(frame)))) == frame
    old = to_wire(Frame(kind="model", name="m"))
    assert "sampled" not in old
    assert from_wire(Frame, old).sampled is None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Sampled(kind="raw"), True),
        (Sampled(kind="raw", temperature=1, logprobs=(-0.5, 0), token_ids=(1,)), True),
        (Sampled(kind="raw", logprobs=(np.float64(-0.5),)), False),
        (Sampled(kind="raw", logprobs=[-0.5]), False),  # type: ignore[arg-type]
        (Sampled(kind="raw", temperature="1"), False),  # type: ignore[arg-type]
        (Sampled(kind="raw", reason=None), False),  # type: ignore[arg-type]
        ({"kind": "raw"}, False),
        (None, False),
    ],
)
def test_what_an_agent_hands_over_is_of_plain_types_or_is_not_taken(value: object, plain: bool) -> None:
    assert is_plain(value) is plain


@pytest.mark.parametrize("values", [[np.float64(-0.5), np.int64(0)], (np.float64(-0.5), np.int64(0))])
def test_numbers_of_numpy_become_plain_ones(values: Any) -> None:
    found = checked("raw", 1.0, values, None, 2)
    assert found == Sampled(kind="raw", temperature=1.0, logprobs=(-0.5, 0.0))
    assert is_plain(found)


@pytest.mark.parametrize(
    ("value", "found"),
    [(0, 0.0), (MOST, MOST), (MOST + 1, None), (-0.1, None), (True, None), ("1", None), (np.float32(1), 1.0)],
)
def test_a_temperature_is_a_number_from_0_on(value: object, found: float | None) -> None:
    assert temperature_of(value) == found


@pytest.mark.parametrize(
    ("logprobs", "kept", "reason"),
    [
        ([-9998.9, -0.5], (-9998.9, -0.5), ""),
        ([-9999.0, -0.5], None, "placeholder"),
        ([0.001, -0.5], (0.0, -0.5), ""),
        ([0.0011, -0.5], None, "positive"),
    ],
)
def test_a_value_that_stands_for_none_is_none_and_one_rounded_up_is_0(
    logprobs: list[float], kept: tuple[float, ...] | None, reason: str
) -> None:
    found = checked("raw", 1.0, logprobs, None, 2)
    assert (found.logprobs, found.reason) == (kept, reason)


def test_tokens_that_were_taken_out_say_so() -> None:
    assert why_no_ratio(checked("raw", 1.0, [-0.5], [7], 1).without_tokens()) == "redacted"


@pytest.mark.parametrize(
    ("logprobs", "ids", "count", "reason"),
    [
        (None, None, None, "missing_logprobs"),
        ([], None, None, "missing_logprobs"),
        ([], None, 0, ""),
        ([], None, 1, "short"),
        ([-0.5], None, 2, "short"),
        ([-0.5, -0.5], None, 1, "long"),
        ([-0.5], [7], 1, ""),
        ([-0.5], [0], None, ""),
        ([-0.5], [-1], 1, "token_ids"),
        ([-0.5], [7, 8], 1, "token_ids"),
        ([-0.5], [7.0], 1, "token_ids"),
        ([-0.5], "7", 1, "token_ids"),
        ("x", None, 1, "malformed"),
        ([True], None, 1, "malformed"),
        ([-0.5, None], None, 2, "not_finite"),
        ([float("-inf")], None, 1, "not_finite"),
        ([-(10**400)], None, 1, "not_finite"),
    ],
)
def test_lists_that_cannot_be_relied_on_are_none_with_the_reason(
    logprobs: Any, ids: Any, count: int | None, reason: str
) -> None:
    found = checked("raw", 1.0, logprobs, ids, count)
    assert found.reason == reason
    assert (found.logprobs is None) is bool(reason)
    assert (found.token_ids is None) is (bool(reason) or ids is None)


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ({"kind": "raw", "logprobs": [-0.5]}, "raw", ""),
        ({"kind": "other", "logprobs": [-0.5]}, "unknown", ""),
        ({"kind": ["raw"], "logprobs": [-0.5]}, "unknown", ""),
        ({"kind": "raw", "reason": "not_sent"}, "raw", "not_sent"),
        ({"kind": "raw", "reason": "x" * 41}, "raw", "missing_logprobs"),
        ({"kind": "raw", "reason": "Not sent"}, "raw", "missing_logprobs"),
        ({"kind": "raw", "reason": "not_sent", "logprobs": [-0.5]}, "raw", ""),
        ("raw", "unknown", "malformed"),
        (Sampled(kind="processed", logprobs=(-0.5,), temperature=0.7), "processed", ""),
    ],
)
def test_what_an_agent_reports_of_its_tokens_is_read_as_far_as_it_goes(
    value: object, kind: str, reason: str
) -> None:
    found = reported(value, 1)
    assert (found.kind, found.reason) == (kind, reason)
