"""Which log-probabilities can serve as the old ones of a policy ratio, and how they travel."""

from __future__ import annotations

import json

import pytest

from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.sampled import LogProbKind, Sampled, why_no_ratio
from pytest_tfgrpo.core.wire import from_wire, to_wire


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
