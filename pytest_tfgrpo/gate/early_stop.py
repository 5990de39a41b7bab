"""The results of the rules on a watched final sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.settings.gate import GATE_SEQUENTIAL
from pytest_tfgrpo.core.texts.text import interval
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.sequential import MIN_PLANNED, WatchedReading, WatchedRule, watched

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.rules import GateInput

SCOPE = "these scenarios with these seeds; the interval is of scenarios like these"


def rejudged(results: Sequence[RuleResult], of: GateInput, *, foreign_rules: bool) -> list[RuleResult]:
    """Return the findings on a run with those of its watch in place of those on a sample of fixed size.

    Of a sweep that could end at any time, an interval made for one look would be wrong too often. Where the
    watch settles nothing the rule is open; where it could not have ended the sweep, findings stay what they
    are. A comparison of fewer scenarios than a watch needs is never ended, and stays too.
    """
    if not GATE_SEQUENTIAL.of(of.run.settings):
        return list(results)
    watch, sweep = watched(of.run, of.sweeps, of.baseline, foreign_rules=foreign_rules), of.sweeps.after
    if isinstance(watch, str) or sweep is None:
        return list(results)
    rules = {rule.name: rule for rule in watch.rules}
    stopped = bool(sweep.settled)
    return [
        _rejudged(result, rules[result.name], stopped=stopped) if result.name in rules else result
        for result in results
    ]


def _rejudged(result: RuleResult, rule: WatchedRule, *, stopped: bool) -> RuleResult:
    if not stopped and (not rule.bar.difference or rule.readings[0].effective < MIN_PLANNED):
        return result
    found = {"pass": "pass", "fail": "fail", "open": "inconclusive"}[rule.finding]
    alarm = result.figures.get("alarm", 1.0)
    if found == "inconclusive" and not stopped and any(r.low <= -alarm > -1 for r in rule.readings):
        found = "fail"
    figures = {"sequential": [_figures(reading) for reading in rule.readings]}
    if not stopped:
        kept = replace(result, figures={**result.figures, **figures})
        if result.outcome == found or result.outcome not in ("pass", "fail", "inconclusive"):
            return kept
        return replace(
            kept,
            outcome=found,  # type: ignore[arg-type]
            message=f"{result.message}; checked during the sweep: {_span(rule.readings)}",
            advice=""
            if found == "pass"
            else result.advice or "checking during the sweep widens the interval",
        )
    worst = _deciding(rule)
    bar = f"margin {rule.bar.at:g}" if rule.bar.difference else f"at least {rule.bar.at:g} required"
    advice = {"fail": "look at the largest regressions in the report", "pass": ""}.get(
        found, "another rule decided the gate; run without gate_sequential to know"
    )
    return RuleResult(
        name=rule.name,
        outcome=found,  # type: ignore[arg-type]
        message=f"{_said(worst, rule)}; {_span(rule.readings)}; {bar}",
        advice=advice,
        figures=_summary(worst, rule) | figures,
    )


def _deciding(rule: WatchedRule) -> WatchedReading:
    return min(rule.readings, key=lambda reading: ("fail", "open", "pass").index(reading.finding))


def _said(reading: WatchedReading, rule: WatchedRule) -> str:
    if not reading.mean.scored:
        return f"nothing is known about {reading.size} scenarios"
    what = f"{reading.mean.mean:+.3f}" if rule.bar.difference else f"eval mean {reading.mean.mean:.3f}"
    return f"{what} over the first {reading.mean.fed} of {reading.size} scenarios in random order"


def _span(readings: Sequence[WatchedReading]) -> str:
    """Return the bounds of the whole sweep in words, by each reading of errors."""
    found = [f"the whole sweep {interval([r.low, r.high], '+.3f')}" for r in readings]
    return "; with errors as 0: ".join(found)


def _summary(reading: WatchedReading, rule: WatchedRule) -> dict[str, Json]:
    return {
        "n": reading.mean.scored,
        "of": reading.size,
        "before": reading.before if rule.bar.difference else None,
        "after": reading.after,
        "difference": reading.mean.mean if rule.bar.difference and reading.mean.scored else None,
        "ci95": None,
        "method": "sequential",
        ("margin" if rule.bar.difference else "minimum"): rule.bar.at,
    }


def _figures(reading: WatchedReading) -> dict[str, Json]:
    """Return the state of one reading, where `set` bounds the mean of the scenarios and seeds there are."""
    finite = reading.low > float("-inf") and reading.high < float("inf")
    return {
        "n": reading.mean.scored,
        "looked_at": reading.mean.fed,
        "of": reading.size,
        "finding": reading.finding,
        "set": [reading.mean.low, reading.mean.high],
        "interval": [reading.low, reading.high] if finite else None,
        "scope": SCOPE,
    }
