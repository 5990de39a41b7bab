"""The gate: is the final sweep of a run good enough, with statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from pytest_tfgrpo.core.records import Json, Run
from pytest_tfgrpo.harness.baseline import Baseline
from pytest_tfgrpo.harness.gate_rules import BUILT_IN, Outcome, RuleResult, judge_contamination
from pytest_tfgrpo.harness.screen import Contamination

__all__ = ["GateRule", "RuleResult", "Verdict", "judge"]

_OPEN = ("inconclusive", "not_judged")


class GateRule(Protocol):
    """One rule of the gate; pure."""

    name: str

    def judge(self, run: Run, baseline: Baseline | None, settings: Mapping[str, Json]) -> RuleResult:
        """Return what the rule found; an exception fails the gate."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the gate found."""

    outcome: Literal["pass", "fail", "inconclusive"]
    results: tuple[RuleResult, ...]
    strict: bool
    """True when an inconclusive rule fails the gate."""

    @property
    def failed(self) -> bool:
        """True when the gate's item must fail."""
        return self.outcome == "fail"

    @property
    def decisive(self) -> tuple[RuleResult, ...]:
        """The rules that decided: those that failed, else those that leave the question open."""
        failed = tuple(r for r in self.results if r.outcome == "fail")
        if failed or self.outcome == "pass":
            return failed
        return tuple(r for r in self.results if r.outcome in _OPEN)


def judge(
    run: Run,
    *,
    baseline: Baseline | None,
    settings: Mapping[str, Json],
    rules: Sequence[GateRule] = (),
    contamination: Sequence[Contamination] = (),
) -> Verdict:
    """Return the verdict on `run` by the built-in rules, none of which can be removed, and `rules`.

    `contamination` names the lessons that hold an eval answer. One failed rule fails the gate; an
    inconclusive or unjudged one makes it inconclusive, which fails under ``gate_strict`` (decision 21a).
    """
    results = [
        *(rule(run, baseline, settings) for rule in BUILT_IN),
        judge_contamination(contamination),
        *(_guarded(rule, run, baseline, settings) for rule in rules),
    ]
    outcomes = {result.outcome for result in results}
    strict = bool(settings["gate_strict"])
    open_question = not outcomes.isdisjoint(_OPEN)
    failed = "fail" in outcomes or (strict and open_question)
    return Verdict(
        outcome="fail" if failed else "inconclusive" if open_question else "pass",
        results=tuple(results),
        strict=strict,
    )


def _guarded(rule: GateRule, run: Run, baseline: Baseline | None, settings: Mapping[str, Json]) -> RuleResult:
    try:
        result = rule.judge(run, baseline, settings)
        if not isinstance(result, RuleResult):
            raise TypeError(f"it returned {result!r} instead of a RuleResult")
        if result.outcome not in get_args(Outcome):
            raise ValueError(f"its outcome is {result.outcome!r}; use one of {', '.join(get_args(Outcome))}")
    except Exception as error:  # noqa: BLE001 - a broken rule must not open the gate
        message = f"the rule broke: {type(error).__name__}: {error}"
        advice = "mend the plugin that supplies it"
        return RuleResult(
            name=str(getattr(rule, "name", type(rule).__name__)),
            outcome="fail",
            message=message,
            advice=advice,
        )
    return result
