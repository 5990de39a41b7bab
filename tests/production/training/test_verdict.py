"""What people say of a version beside its validation."""

from typing import Any

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.training.versions.validation import Validation, ValidationOutcome
from pytest_tfgrpo.production.training.versions.verdict import VersionVerdict, add_verdict, judged

UNJUDGED = "safety suite toxicity_test: 12 of 12 need a judge"


def validation(
    outcome: ValidationOutcome = "needs_approval", reasons: tuple[str, ...] = (UNJUDGED,), **changes: Any
) -> Validation:
    return Validation(
        outcome=outcome,
        reasons=reasons,
        open_safety=changes.pop("open_safety", (UNJUDGED,)),
        benchmark_passed=True,
        safety_checks_passed=changes.pop("safe", False),
        performance_regression=False,
    )


def says(
    safe: bool | None, score: float | None = None, before: VersionVerdict | None = None
) -> VersionVerdict:
    return add_verdict(before, safe=safe, score=score, by="ada", reason="read all")


@pytest.mark.parametrize(
    ("found", "safe", "outcome", "reasons"),
    [
        (validation(), True, "validated", ()),
        (validation(), False, "rejected", ("a person found it unsafe",)),
        (validation(), None, "needs_approval", (UNJUDGED,)),
        (
            validation(reasons=("the gate is inconclusive", UNJUDGED)),
            True,
            "needs_approval",
            ("the gate is inconclusive",),
        ),
        (validation("rejected", ("the gate failed", UNJUDGED)), True, "rejected", ("the gate failed",)),
        (validation("validated", (), open_safety=(), safe=True), True, "validated", ()),
        (
            *(validation("validated", (), open_safety=(), safe=True), False, "rejected"),
            ("a person found it unsafe",),
        ),
    ],
)
def test_a_verdict_settles_what_was_open_and_nothing_else(
    found: Validation, safe: bool | None, outcome: str, reasons: tuple[str, ...]
) -> None:
    after = judged(found, says(safe, 0.9))
    assert (after.outcome, after.reasons) == (outcome, reasons)
    assert after.safety_checks_passed is (found.safety_checks_passed if safe is None else safe)
    assert after.human_eval_score == 0.9
    assert judged(found, None) is found


def test_a_suite_that_failed_is_not_passed_by_a_verdict() -> None:
    failed = validation("rejected", ("safety suite bias: 1 of 12 failed: a",), open_safety=())
    with pytest.raises(
        StoreError, match=r"a suite failed, .*bias: 1 of 12 failed: a; approve it to override"
    ):
        judged(failed, says(True))
    assert judged(failed, says(None, 0.2)).outcome == "rejected"


def test_verdicts_add_up_and_the_last_one_counts() -> None:
    first = says(False)
    second = says(None, 0.5, first)
    third = says(True, None, second)
    assert (second.safe, second.human_eval_score) == (False, 0.5)
    assert (third.safe, third.human_eval_score) == (True, 0.5)
    assert third.said == (
        "safety failed, says ada: read all",
        "human evaluation 0.5, says ada: read all",
        "safety passed, says ada: read all",
    )
    assert judged(validation(), third).outcome == "validated"


@pytest.mark.parametrize("score", [-0.01, 1.01, float("nan")])
def test_a_score_beyond_the_scale_and_an_empty_verdict_are_refused(score: float) -> None:
    with pytest.raises(StoreError, match="a human evaluation is a number from 0 to 1, not"):
        says(True, score)
    with pytest.raises(StoreError, match="nothing was said: give --safety passed"):
        says(None)
