"""The gate: is the final sweep of a run good enough, statistically?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, get_args

from pytest_tfgrpo.core.lessons import LeakedAnswer
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.settings.gate import GATE_SEQUENTIAL, GATE_STRICT
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS
from pytest_tfgrpo.gate.baseline import Baseline
from pytest_tfgrpo.gate.difference import can_be_seen, share_level
from pytest_tfgrpo.gate.early_stop import rejudged
from pytest_tfgrpo.gate.looks import planned_rollouts
from pytest_tfgrpo.gate.named_gates import NamedVerdict, OpenGate, judge_named
from pytest_tfgrpo.gate.result import OPEN, Outcome, RuleResult, Settled
from pytest_tfgrpo.gate.rules import (
    BUILT_IN,
    GateInput,
    broken,
    judge_contamination,
    settle,
)
from pytest_tfgrpo.gate.sequential import Planned, obstacle
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.suite.families import sweeps_of

__all__ = ["GateRule", "RuleResult", "Verdict", "judge"]


class GateRule(Protocol):
    """One rule of the gate; pure."""

    name: str

    def judge(self, run: Run, baseline: Baseline | None, settings: Mapping[str, object]) -> RuleResult:
        """Return what the rule found; an exception fails the gate."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the gate found."""

    outcome: Settled
    results: tuple[RuleResult, ...]
    strict: bool
    """True when an inconclusive rule fails the gate."""
    gates: tuple[NamedVerdict, ...] = ()
    """What the named gates found, in the order of their file; they count apart from this one."""
    obstacle: str = ""
    """Why it could not end a final sweep early, with ``gate_sequential``; reports carry it in a block."""

    @property
    def failed(self) -> bool:
        """True when the gate's item must fail."""
        return self.outcome == "fail"


def judge(
    run: Run,
    *,
    baseline: Baseline | None,
    settings: Mapping[str, object],
    rules: Sequence[GateRule] = (),
    contamination: Sequence[LeakedAnswer] = (),
    sweeps: Sweeps | None = None,
) -> Verdict:
    """Return the result for `run` of the built-in rules, none of which can be removed, and `rules`.

    `contamination` names the lessons that hold an eval answer, `sweeps` are those of the run, if they are
    counted already. One failed rule fails the gate; an inconclusive or unjudged one makes it inconclusive,
    which fails under ``gate_strict`` (decision 21a).
    """
    of = GateInput(run, sweeps or sweeps_of(run), baseline, settings)
    results = [
        *(result for rule in BUILT_IN if (result := _built_in(rule, of)) is not None),
        judge_contamination(contamination, settings),
        *(_guarded(rule, run, baseline, settings) for rule in rules),
    ]
    results = rejudged(share_level(results), of, foreign_rules=bool(rules))
    strict = GATE_STRICT.of(settings)
    why = ""
    if GATE_SEQUENTIAL.of(settings):
        why = obstacle(settings, run.scenarios, foreign_rules=bool(rules), partial=run.partial_selection)
    return Verdict(
        outcome=settle(results, strict=strict),
        results=tuple(results),
        strict=strict,
        obstacle=why,
    )


def planned_looks(run: Planned, baseline: Baseline | None, gates: Sequence[OpenGate]) -> tuple[int, ...]:
    """Return the rollouts of each scenario at the looks that gates may take at the final sweep of `run`."""
    stored = bool(baseline or run.reference) or any(one.baseline is not None for one in gates)
    return planned_rollouts(run, EVAL_ROLLOUTS.of(run.settings) or 1, stored=stored)


def more_rollouts(run: Run, baseline: Baseline | None, gates: Sequence[OpenGate]) -> int:
    """Return the rollouts of each scenario that the final sweep of `run` is to be extended to; 0 for none.

    It is extended while nothing but too little evidence keeps a gate from its answer (decision 21a).
    """
    sweep = Sweeps(run).after
    if sweep is None or sweep.status != "complete":
        return 0
    left = [n for n in planned_looks(run, baseline, gates) if n > sweep.phase.rollouts]
    if not left:
        return 0
    found = judge(run, baseline=baseline, settings=run.settings)
    failed: list[Verdict | NamedVerdict] = [found] if found.failed else []
    failed += [named for one in gates if (named := judge_named(run, one, run.settings)).failed]
    against = [
        result
        for one in failed
        for result in one.results
        if result.outcome == "fail" or (one.strict and result.outcome in OPEN)
    ]
    return left[0] if against and all(map(can_be_seen, against)) else 0


def _built_in(rule: Callable[[GateInput], RuleResult | None], of: GateInput) -> RuleResult | None:
    try:
        return rule(of)
    except Exception as error:  # noqa: BLE001 - a broken rule must not open the gate
        name = rule.__name__.removeprefix("judge_")
        return broken(name, error, "please report it as a bug of pytest-tfgrpo")


def _guarded(
    rule: GateRule, run: Run, baseline: Baseline | None, settings: Mapping[str, object]
) -> RuleResult:
    try:
        result = rule.judge(run, baseline, settings)
        if not isinstance(result, RuleResult):
            raise TypeError(f"it returned {result!r} instead of a RuleResult")
        if result.outcome not in get_args(Outcome):
            raise ValueError(f"its outcome is {result.outcome!r}; use one of {', '.join(get_args(Outcome))}")
    except Exception as error:  # noqa: BLE001 - a broken rule must not open the gate
        name = str(getattr(rule, "name", type(rule).__name__))
        return broken(name, error, "fix the plugin that supplies it")
    return result
