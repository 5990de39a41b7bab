"""The rules of a named gate about a metric: a minimum, and comparisons with other sweeps.

They judge shares of the best, so that more is better whatever the unit of the metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_tfgrpo.core.named_scores import SHARE
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.gate import by_domain, rules
from pytest_tfgrpo.gate.baseline import Baseline, of_metric
from pytest_tfgrpo.gate.config import NamedGate
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.rules import GateInput
from pytest_tfgrpo.metrics.values import GT, scale_of
from pytest_tfgrpo.suite.families import sweeps_of


def judge(of: GateInput, gate: NamedGate, *, live: bool) -> Iterator[RuleResult]:
    """Yield what the rules about means find of a metric.

    A minimum is over all scenarios, a comparison over those that have the metric on one side at least.
    `live`: the run runs the version that the gate compares with.
    """
    without = replace(of, baseline=None, run=replace(of.run, reference=None))
    if gate.min_mean is not None and gate.per_domain:
        yield from by_domain.judge(without, gain=False)
    elif gate.min_mean is not None:
        yield rules.judge_minimum(without)
    known, refusal = _baseline_of(of)
    if refusal is not None:
        yield refusal
    live = live and gate.compares
    compared = _measured(of if live else replace(of, run=without.run), known, both=gate.gain or live)
    results: list[RuleResult] = []
    if gate.per_domain:
        results += by_domain.judge(compared, gain=gate.gain)
    else:
        results += [rules.judge_regression(compared)] if known is not None or live else []
        results += [rules.judge_gain(compared)] if gate.gain else []
    rescaled = _rescaled(of, per_domain=gate.per_domain) if gate.gain or live else {}
    for result in results:
        what, _, domain = result.name.partition(" ")
        refusal = rescaled.get(domain) if what == "gain" or live else None
        yield _named(result if refusal is None else replace(refusal, name=result.name), compared)


def _baseline_of(of: GateInput) -> tuple[Baseline | None, RuleResult | None]:
    """Return the baseline of the metric; in its place why it cannot be compared with, where there is one."""
    baseline, name, metric = of.baseline, f"baseline {of.metric}", line(of.metric, 80)
    if baseline is None:
        return None, None
    advice = rules.save_again(baseline)
    known = of_metric(baseline, of.metric)
    if known is None:
        message = f"the baseline {line(baseline.name, 60)} has no metric {metric}"
        return None, RuleResult(name=name, outcome="skipped", message=message, advice=advice)
    now, then = of.sweeps.scale_of(of.metric), baseline.metrics[of.metric]
    if now != then and any(row.n for row in of.sweeps.rows_after.values()):
        message = f"{metric} is now {line(now.words, 80)}, in the baseline {line(then.words, 80)}"
        return None, RuleResult(name=name, outcome="inconclusive", message=message, advice=advice)
    return known, None


def _rescaled(of: GateInput, *, per_domain: bool) -> dict[str, RuleResult]:
    """Return what is found where both sweeps of the run have the metric, on two scales.

    By domain, as rules are named, or under an empty name for the whole.
    """
    runs = {f"({domain})": run for domain, run in by_domain.by_domain(of.run)} if per_domain else {"": of.run}
    found = {}
    for place, run in runs.items():
        sweeps = sweeps_of(run, of.metric)
        both = [any(row.n for row in rows.values()) for rows in (sweeps.rows_before, sweeps.rows_after)]
        if sweeps.before is None or not all(both):
            continue
        now, then = sweeps.scale_of(of.metric), scale_of(sweeps.before.counted, of.metric)
        if now != then:
            told = f"{line(of.metric, 80)} is now {line(now.words, 80)}, in the sweep before "
            message, advice = told + line(then.words, 80), "use one scale for the metric"
            found[place] = RuleResult(name="", outcome="inconclusive", message=message, advice=advice)
    return found


def _measured(of: GateInput, known: Baseline | None, *, both: bool) -> GateInput:
    """Return the input of comparisons; `both` says that the run's own control is one side of them."""
    scored = {id_ for id_, row in of.sweeps.rows_after.items() if row.n}
    if both:
        scored |= {id_ for id_, row in of.sweeps.rows_before.items() if row.n}
    if known is not None:
        scored |= known.scenarios.keys()
    part = by_domain.restricted(of.run, lambda scenario: scenario.id in scored)
    settings: Mapping[str, object] = {**of.settings, "gate_min_mean": None}
    return replace(of, run=part, sweeps=sweeps_of(part, of.metric), baseline=known, settings=settings)


def _named(found: RuleResult, of: GateInput) -> RuleResult:
    """Return the result of a comparison, named by its metric; of too few scored rollouts it is no pass."""
    first, *rest = found.name.split(" ", 1)
    result = replace(found, name=" ".join([first, of.metric, *rest]))
    if "difference" not in found.figures:
        return result
    scale, n = of.sweeps.scale_of(of.metric), found.figures["n"]
    figures = {**found.figures, "unit": scale.unit, "better": scale.better, "most": scale.most}
    told = "" if scale == SHARE else f"; figures are {line(scale.words, 80)}"
    result = replace(result, message=f"{found.message}{told}", figures=figures)
    rows, answers = of.sweeps.rows_of(of.metric), of.sweeps.rows_of(GT)
    answered = sum(max(row.n, answers[id_].n) for id_, row in rows.items())
    scored = sum(row.n for row in rows.values())
    return rules.of_enough(result, of.metric, ((n, n, "scenario"), (scored, answered, "rollout")))
