"""Transcripts: what an attempt did, in a bounded number of characters."""

from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_frame, make_rollout, make_scenario

from pytest_tfgrpo.core.records import CheckResult, Failure, JudgeResult
from pytest_tfgrpo.core.voices import legible
from pytest_tfgrpo.learning.optimizer.llm.transcript import CHECKS, READ, transcript
from pytest_tfgrpo.privacy.redact import redact

SCENARIO = make_scenario()


def test_a_transcript_has_steps_answer_and_what_checks_found() -> None:
    frames = (
        make_frame("gpt", kind="model", input={"messages": ["long"]}, output="I shall count."),
        make_frame("count_words", input={"text": "a b c"}, output="3"),
        make_frame("send", error="no such tool", output=""),
    )
    checks = (CheckResult(kind="exact", weight=1.0, credit=0.0, reason="expected '3', got 'three'"),)
    rollout = make_rollout(frames=frames, checks=checks, answer="three\n")
    assert transcript(rollout, SCENARIO).splitlines() == [
        "1. model gpt -> I shall count.",
        '2. tool count_words {"text": "a b c"} -> 3',
        '3. tool send failed with "no such tool"',
        "answer: three",
        "  ",
        "check exact: failed, expected '3', got 'three'",
    ]


def test_an_attempt_without_answer_says_why() -> None:
    failure = Failure(code="timeout", message="120 s are over")
    rollout = make_rollout(frames=(), checks=(), answer=" ", status="failed", failure=failure)
    assert transcript(rollout, SCENARIO) == "no answer\nfailed: timeout: 120 s are over"


@pytest.mark.parametrize("steps", [1, 99, 100, 101, 5_000])
def test_the_first_and_last_steps_of_a_long_attempt_share_the_room(steps: int) -> None:
    frames = tuple(
        make_frame(f"tool{n}", input="in " * 4_000, output="out " * 4_000) for n in range(1, steps + 1)
    )
    text = transcript(make_rollout(frames=frames, answer="the end " * 9_000), SCENARIO)
    assert len(text) < 2 * READ
    assert text.startswith("1. tool tool1 ")
    assert f"\n{steps}. tool tool{steps} " in f"\n{text}"
    assert ("steps left out" in text) is (steps > 100)
    assert text.count(". tool tool") == min(steps, 100)


def test_every_place_of_a_secret_is_clean() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    for place in range(0, 400, 3):
        shown = legible("x " * place + secret + " y" * (400 - place), 300, redact)
        assert not any(secret[n : n + 8] in shown for n in range(0, len(secret) - 8))


@pytest.mark.parametrize(
    ("truth", "opinion", "said"),
    [
        ("checks", None, ["answer: 3", "check exact: passed"]),
        ("judge", None, ["answer: 3"]),
        ("judge", JudgeResult(score=0.5), ["answer: 3"]),
        ("judge", JudgeResult(score=None, reason="no vote"), ["answer: 3", "judge: no vote"]),
        ("checks", JudgeResult(score=1.0, reason="ok"), ["answer: 3", "check exact: passed", "judge: ok"]),
    ],
)
def test_what_checks_and_judge_say_is_told_where_they_say_something(
    truth: Any, opinion: JudgeResult | None, said: list[str]
) -> None:
    rollout = make_rollout(frames=(), opinion=opinion)
    assert transcript(rollout, make_scenario(truth=truth)).splitlines() == said


@pytest.mark.parametrize(("n", "shown"), [(CHECKS, CHECKS), (CHECKS + 1, CHECKS)])
def test_of_many_checks_the_first_are_shown(n: int, shown: int) -> None:
    checks = tuple(CheckResult(kind=f"k{i}", weight=1.0, credit=1.0) for i in range(n))
    text = transcript(make_rollout(frames=(), checks=checks), SCENARIO)
    assert text.count("\ncheck k") == shown


def test_an_error_does_not_name_the_run_nor_a_check_break_its_line() -> None:
    rollout = make_rollout(answer="3")
    frame = make_frame("send", error=f"no such file {rollout.run_id}", output="")
    checks = (CheckResult(kind="a\nb", weight=1.0, credit=1.0),)
    text = transcript(replace(rollout, frames=(frame,), checks=checks), SCENARIO)
    assert "no such file (run)" in text
    assert rollout.run_id not in text
    assert "check a\nb" not in text
