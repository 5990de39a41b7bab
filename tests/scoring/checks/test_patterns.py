"""The regex check: found or not, and never for longer than its limit."""

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.scoring.checks import patterns


@pytest.mark.parametrize(
    ("pattern", "flags", "passed"),
    [
        (r"\d+ files", "", True), ("^found", "", False), ("^found", "i", True), ("^two", "", False),
        ("^two", "m", True), ("12.*two", "", False), ("12.*two", "s", True), ("1 2", "x", True),
        ("12", "imsx", True),
    ],
)  # fmt: skip
def test_a_pattern_is_searched_in_the_answer(judge, pattern, flags, passed):
    assert judge("regex", "Found 12 files\ntwo", pattern=pattern, flags=flags).passed is passed


def test_a_reason_shows_the_pattern_and_the_answer(judge):
    assert judge("regex", "abc", pattern="^b").reason == "expected a match of '^b', got 'abc'"


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("(.*)*x.*(.*)*y$", "a" * 5000 + "b"),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200),
        ("(x+x+)+y", "x" * 5000),
        (r"(?:a|a?)+(?:b|b?)+c$", "ab" * 5000),
    ],
)
def test_a_catastrophic_pattern_is_stopped_and_gives_no_credit(judge, monkeypatch, pattern, answer):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    result = judge("regex", answer, pattern=pattern)
    assert not result.passed
    assert result.reason.startswith((f"{pattern!r} took more than 0.05 s", "expected a match"))


def test_a_catastrophe_times_out(judge, monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    reason = judge("regex", "x" * 100_000, pattern="(x+x+)+y").reason
    assert reason.startswith("'(x+x+)+y' took more than 0.05 s on 'xxx")


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", "a{99999999999}", "\\", r"\p{Nope}", "(" * 900 + ")" * 900]
)
def test_an_invalid_pattern_is_an_error_when_loaded(load, pattern):
    with pytest.raises(ScenarioError, match=r"#/checks/0/pattern: .* is not a regular expression"):
        load("regex", pattern=pattern)
