"""What a watch makes of the results of the rules, by hand-made findings."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.gate.early_stop import SCOPE, _rejudged
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.sequential import MIN_PLANNED, WatchedBar

DROP, MEAN = WatchedBar(at=0.05, difference=True), WatchedBar(at=0.5, difference=False)
CHECKED = "checked during the sweep: the whole sweep -0.200 to +0.300"
SOME = "the first 5 of 10 scenarios in random order"
WIDER = "checking during the sweep widens the interval"


def reading(finding: str = "pass", *, scored: int = 4, **changes: Any) -> Any:
    mean = SimpleNamespace(scored=scored, fed=5, mean=0.125, low=-0.75, high=0.5)
    known = {"low": -0.2, "high": 0.3, "before": 0.5, "after": 0.625, "effective": MIN_PLANNED, "size": 10}
    return SimpleNamespace(**known | {"finding": finding, "mean": mean} | changes)


def watched(finding: str, *readings: Any, bar: WatchedBar = DROP) -> Any:
    return SimpleNamespace(name="gain", bar=bar, finding=finding, readings=readings or (reading(finding),))


def found(outcome: Any = "pass", advice: str = "", **figures: Any) -> RuleResult:
    return RuleResult(name="gain", outcome=outcome, message="said", advice=advice, figures=figures)


@pytest.mark.parametrize(
    ("result", "rule", "outcome", "advice"),
    [
        (found("pass"), watched("pass"), "pass", ""),
        (found("fail", "look"), watched("fail"), "fail", "look"),
        (found("fail", "look"), watched("pass"), "pass", ""),
        (found("pass"), watched("fail"), "fail", WIDER),
        (found("pass"), watched("open"), "inconclusive", WIDER),
        (found("fail", "look"), watched("open"), "inconclusive", "look"),
        (found("skipped", "look"), watched("fail"), "skipped", "look"),
        (found("not_judged"), watched("open"), "not_judged", ""),
        (found("pass", alarm=0.2), watched("open"), "fail", WIDER),
        (found("pass", alarm=0.21), watched("open"), "inconclusive", WIDER),
        (found("pass", alarm=1.0), watched("open", reading("open", low=-1.0)), "inconclusive", WIDER),
        (found("pass", alarm=0.9), watched("open", reading("open", low=-1.0)), "fail", WIDER),
        (
            found("pass", alarm=0.5),
            watched("open", reading(low=-0.1), reading("open", low=-0.6)),
            "fail",
            WIDER,
        ),
        (found("pass", alarm=0.1), watched("pass"), "pass", ""),
    ],
)
def test_of_a_sweep_that_was_watched_to_its_end_the_watch_decides(
    result: RuleResult, rule: Any, outcome: str, advice: str
) -> None:
    made = _rejudged(result, rule, stopped=False)
    assert (made.outcome, made.advice) == (outcome, advice)
    changed = outcome != result.outcome
    assert made.message.startswith("said; checked during the sweep: the whole sweep ") is changed
    assert (made.message == "said") is not changed
    if changed and len(rule.readings) == 1 and rule.readings[0].low == -0.2:
        assert made.message == f"said; {CHECKED}"
    assert [one["n"] for one in made.figures["sequential"]] == [4] * len(rule.readings)
    assert made.figures.get("alarm") == result.figures.get("alarm")


def test_a_mean_and_a_comparison_of_too_few_families_stay_unless_the_sweep_was_ended() -> None:
    few, enough = reading("fail", effective=MIN_PLANNED - 0.5), reading("fail")
    for rule in (watched("fail", bar=MEAN), watched("fail", few), watched("fail", few, enough)):
        result = found()
        assert _rejudged(result, rule, stopped=False) is result
        assert _rejudged(result, rule, stopped=True).outcome == "fail"
    assert _rejudged(found(), watched("fail", enough, few), stopped=False).outcome == "fail"


@pytest.mark.parametrize(
    ("rule", "outcome", "message", "advice"),
    [
        (
            watched("pass"),
            "pass",
            f"+0.125 over {SOME}; the whole sweep -0.200 to +0.300; margin 0.05",
            "",
        ),
        (
            watched("fail", reading("open"), reading("fail", low=-0.5, high=-0.1, scored=0)),
            "fail",
            "nothing is known about 10 scenarios; the whole sweep -0.200 to +0.300; with errors as 0: the "
            "whole sweep -0.500 to -0.100; margin 0.05",
            "look at the largest regressions in the report",
        ),
        (
            watched("open", reading("open"), reading("pass", scored=0), bar=MEAN),
            "inconclusive",
            f"eval mean 0.125 over {SOME}; the whole sweep -0.200 to +0.300; "
            "with errors as 0: the whole sweep -0.200 to +0.300; at least 0.5 required",
            "another rule decided the gate; run without gate_sequential to know",
        ),
    ],
)
def test_of_a_sweep_that_was_ended_the_reading_that_decides_is_told(
    rule: Any, outcome: str, message: str, advice: str
) -> None:
    made = _rejudged(found("pass", "look", alarm=0.1, p=0.5), rule, stopped=True)
    assert (made.name, made.outcome, made.message, made.advice) == ("gain", outcome, message, advice)
    assert not {"alarm", "p"} & made.figures.keys()


def test_the_figures_of_an_ended_sweep_are_those_of_the_reading_that_decides() -> None:
    every = {"n": 4, "of": 10, "after": 0.625, "ci95": None, "method": "sequential"}
    assert _rejudged(found(), watched("pass"), stopped=True).figures["sequential"] == [
        {
            **{"n": 4, "looked_at": 5, "of": 10, "finding": "pass", "set": [-0.75, 0.5]},
            **{"interval": [-0.2, 0.3], "scope": SCOPE},
        }
    ]
    for bar, scored, more in (
        (DROP, 4, {"before": 0.5, "difference": 0.125, "margin": 0.05}),
        (DROP, 0, {"before": 0.5, "difference": None, "margin": 0.05, "n": 0}),
        (MEAN, 4, {"before": None, "difference": None, "minimum": 0.5}),
    ):
        made = dict(
            _rejudged(found(), watched("pass", reading(scored=scored), bar=bar), stopped=True).figures
        )
        del made["sequential"]
        assert made == every | more
    for changes in ({"low": -math.inf}, {"high": math.inf}):
        made = dict(_rejudged(found(), watched("open", reading("open", **changes)), stopped=False).figures)
        assert made["sequential"][0]["interval"] is None
