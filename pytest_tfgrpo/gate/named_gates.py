"""Named gates: the rules of the gate over a selection of the final sweep, each with its own severity.

The default gate, which always exists, checks whether a run is complete and its lessons are clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.settings.gate import BASELINE, GATE_MARGIN, GATE_STRICT
from pytest_tfgrpo.gate import by_domain, metric_rules, rules
from pytest_tfgrpo.gate.baseline import Baseline
from pytest_tfgrpo.gate.config import NamedGate
from pytest_tfgrpo.gate.difference import share_level
from pytest_tfgrpo.gate.result import RuleResult, Settled
from pytest_tfgrpo.gate.rules import GateInput
from pytest_tfgrpo.metrics.values import GT
from pytest_tfgrpo.suite.families import sweeps_of


@dataclass(frozen=True, slots=True)
class OpenGate:
    """A named gate with the baseline that it compares with."""

    gate: NamedGate
    baseline: Baseline | None = None
    live: bool = False
    """Whether it compares with the reference that the run runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedVerdict:
    """What a named gate found."""

    name: str
    severity: Literal["fail", "warn"]
    outcome: Settled
    results: tuple[RuleResult, ...]
    strict: bool
    """True when an inconclusive rule fails the gate."""
    scenarios: int
    """Eval scenarios that it is about."""
    baseline: str
    """Name of the stored baseline; empty without one."""
    margin: float

    @property
    def failed(self) -> bool:
        """True when the gate's item must fail: it failed, and is no mere warning."""
        return self.outcome == "fail" and self.severity == "fail"


def judge_named(run: Run, opened: OpenGate, settings: Mapping[str, object]) -> NamedVerdict:
    """Return the result of one named gate for `run`; an exception fails the gate."""
    gate, own = opened.gate, own_settings(opened.gate, settings)
    try:
        results = tuple(share_level(_results(run, opened, own)))
    except Exception as error:  # noqa: BLE001 - a broken gate must not be an open one
        results = (rules.broken("gate", error, "please report it as a bug of pytest-tfgrpo"),)
    return NamedVerdict(
        name=gate.name,
        severity=gate.severity,
        outcome=rules.settle(results, strict=GATE_STRICT.of(own)),
        results=results,
        strict=GATE_STRICT.of(own),
        scenarios=sum(map(gate.selects, run.scenarios)),
        baseline=opened.baseline.name if opened.baseline is not None else "",
        margin=GATE_MARGIN.of(own),
    )


def own_settings(gate: NamedGate, settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings as the gate's rules see them: those about drops fall back, limits do not."""
    drops = {"gate_margin": gate.margin, "gate_alarm": gate.alarm, "gate_strict": gate.strict}
    return {
        **settings,
        **{name: value for name, value in drops.items() if value is not None},
        "gate_min_mean": gate.min_mean,
        "gate_max_errors": gate.max_errors,
        "gate_max_cost_per_success_usd": gate.max_cost_per_success_usd,
    }


def baseline_name(gate: NamedGate, settings: Mapping[str, object]) -> str | None:
    """Return what names the gate's baseline: its own, else that of the setting; None for none.

    A gate of a metric has one only where it says what to compare.
    """
    if not gate.compares:
        return None
    name = BASELINE.of(settings) if gate.baseline is None else gate.baseline
    return None if name == "none" and gate.baseline is not None else name


def has_rules(gate: NamedGate, settings: Mapping[str, object], *, learning: bool) -> bool:
    """Return whether there is anything for the gate to judge; the run's own gain exists in learning alone."""
    limits = (gate.min_mean, gate.max_errors, gate.max_cost_per_success_usd)
    compares = baseline_name(gate, settings) is not None or (gate.gain and learning)
    return compares or any(limit is not None for limit in limits)


def _results(run: Run, opened: OpenGate, settings: Mapping[str, object]) -> Iterator[RuleResult]:
    gate, part = opened.gate, by_domain.restricted(run, opened.gate.selects)
    part = part if opened.live else replace(part, reference=None)
    metric = GT if gate.metric is None else gate.metric
    selected = GateInput(part, sweeps_of(part, metric), _part_of(opened, run), settings, metric)
    yield rules.judge_complete(selected)
    if metric != GT:
        yield from metric_rules.judge(selected, gate, live=opened.live)
    elif gate.per_domain:
        yield from by_domain.judge(selected, gain=gate.gain)
    else:
        if gate.min_mean is not None:
            yield rules.judge_minimum(selected)
        if selected.baseline is not None or opened.live:
            yield rules.judge_regression(selected)
        if gate.gain:
            yield rules.judge_gain(selected)
            yield from filter(None, [rules.judge_placebo(selected)])
    if gate.max_errors is not None:
        yield rules.judge_errors(selected)
    if gate.max_cost_per_success_usd is not None:
        yield rules.judge_cost(selected)


def _part_of(opened: OpenGate, run: Run) -> Baseline | None:
    """Return the baseline over the gate's selection; what the suite lost belongs to it by its domain."""
    gate, baseline = opened.gate, opened.baseline
    if baseline is None:
        return None
    judged = {s.id: gate.selects(s) for s in run.scenarios if s.split == "eval"}
    rows = {
        id_: row
        for id_, row in baseline.scenarios.items()
        if judged.get(id_, not gate.tags and (not gate.domains or row.domain in gate.domains))
    }
    return replace(baseline, scenarios=rows)
