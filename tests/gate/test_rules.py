"""Parts of the gate's rules that say how much of a suite is enough, and what a baseline still holds."""

from dataclasses import replace
from typing import Any

import pytest
from support.sweeps import swept

from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.result import MIN_SHARE, RuleResult
from pytest_tfgrpo.gate.rules import held_to, of_enough, settle

PASS = RuleResult(name="minimum", outcome="pass", message="fine", advice="", figures={"minimum": 0.5})


@pytest.mark.parametrize(
    ("scenarios", "rollouts", "outcome", "said"),
    [
        ((10, 10), (50, 50), "pass", "fine"),
        ((8, 10), (50, 50), "pass", "fine; 8 of 10 scenarios have a score"),
        ((7, 10), (50, 50), "inconclusive", "fine; 7 of 10 scenarios have a score"),
        ((10, 10), (39, 50), "inconclusive", "fine; 39 of 50 rollouts have a score"),
        ((9, 10), (39, 50), "inconclusive", "fine; 9 of 10 scenarios have a score"),
    ],
)
def test_a_metric_of_too_few_scenarios_or_of_too_few_rollouts_is_no_pass(
    scenarios: tuple[int, int], rollouts: tuple[int, int], outcome: str, said: str
) -> None:
    assert MIN_SHARE == 0.8
    counts = ((*scenarios, "scenario"), (*rollouts, "rollout"))
    found = of_enough(PASS, "tone", counts)
    assert (found.outcome, found.message) == (outcome, said)
    assert found.figures == {"minimum": 0.5, "metric": "tone", "n": scenarios[0]}
    assert bool(found.advice) is (outcome == "inconclusive")
    assert of_enough(replace(PASS, outcome="fail"), "tone", counts).outcome == "fail"


def baseline(unsigned: bool | None = None) -> Baseline:
    return replace(from_run(swept({name: [1.0, 0.0] for name in "abc"}), "main"), unsigned=unsigned)


@pytest.mark.parametrize(
    ("gone", "new", "strict", "unsigned", "outcome", "said", "figures"),
    [
        ("", "", True, None, "pass", "fine", {}),
        (
            "a",
            "",
            False,
            None,
            "fail",
            "scenario a of the baseline is no longer in the eval split; fine",
            {"lost": ["a"]},
        ),
        (
            "ab",
            "c",
            False,
            None,
            "fail",
            "2 scenarios (a, b) of the baseline are no longer",
            {"lost": ["a", "b"]},
        ),
        ("", "b", False, None, "inconclusive", "fine; scenario b not compared", {"changed": ["b"]}),
        ("", "", False, True, "pass", "fine", {}),
        ("", "", True, True, "inconclusive", "fine", {}),
        ("", "", True, False, "pass", "fine", {}),
    ],
)
def test_a_comparison_holds_as_far_as_its_baseline_does(
    gone: str, new: str, strict: bool, unsigned: bool | None, outcome: str, said: str, figures: dict[str, Any]
) -> None:
    stored = baseline(unsigned)
    present = {
        id_: "another" if id_ in new else row.stamp
        for id_, row in stored.scenarios.items()
        if id_ not in gone
    }
    found = held_to(PASS, stored, {**present, "added": "x"}, strict=strict)
    assert found.outcome == outcome
    assert found.message.startswith(said)
    assert found.figures == {**PASS.figures, **figures}
    assert ("tfgrpo baseline save main" in (found.advice or "")) is (outcome != "pass")
    failed = held_to(replace(PASS, outcome="fail"), stored, present, strict=strict)
    assert failed.outcome == "fail"


@pytest.mark.parametrize(
    ("outcomes", "strict", "settled"),
    [
        (["pass", "skipped"], True, "pass"),
        (["pass", "inconclusive"], False, "inconclusive"),
        (["pass", "not_judged"], False, "inconclusive"),
        (["pass", "not_judged"], True, "fail"),
        (["inconclusive", "fail"], False, "fail"),
    ],
)
def test_one_failure_fails_and_an_open_question_stays_open_unless_strict(
    outcomes: list[Any], strict: bool, settled: str
) -> None:
    assert settle([replace(PASS, outcome=outcome) for outcome in outcomes], strict=strict) == settled
