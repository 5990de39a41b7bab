"""Rules checked for each domain separately, so that a good domain cannot hide a bad one.

Many domains, many chances to look worse by accident: the gate's level is shared among all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.gate import GATE_MARGIN, GATE_MIN_MEAN
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.gate import rules
from pytest_tfgrpo.gate.baseline import Baseline
from pytest_tfgrpo.gate.result import MIN_SCENARIOS, MIN_SHARE, RuleResult
from pytest_tfgrpo.gate.rules import GateInput
from pytest_tfgrpo.gate.sample_size import counted
from pytest_tfgrpo.metrics.comparison import (
    Tally,
    compare,
    in_domain,
)
from pytest_tfgrpo.numerics.planning import settling_n
from pytest_tfgrpo.suite.families import sweeps_of

Sides: TypeAlias = tuple[Mapping[str, Tally], Mapping[str, Tally]]
"""Tallies before and after."""


def judge(of: GateInput, *, gain: bool) -> Iterator[RuleResult]:
    """Yield what the rules about means find in each domain of the run."""
    parts = {
        domain: replace(of, run=part, sweeps=sweeps_of(part, of.metric)) for domain, part in by_domain(of.run)
    }
    if GATE_MIN_MEAN.of(of.settings) is not None:
        for domain, part in parts.items():
            yield _named(rules.judge_minimum(part), domain)
    if of.baseline is not None:
        yield from _against(of, parts, of.baseline)
    elif of.run.reference is not None:
        yield from _in_each(of, parts, rules.judge_regression)
    if gain:
        yield from _in_each(of, parts, rules.judge_gain)


def _in_each(
    of: GateInput, parts: Mapping[str, GateInput], rule: Callable[[GateInput], RuleResult]
) -> list[RuleResult]:
    """Return what a rule about the run's own sweeps finds in each domain."""
    found = {domain: rule(part) for domain, part in parts.items()}
    sides = {d: _sides_in((of.sweeps.rows_before, of.sweeps.rows_after), d) for d in found}
    return named(found, sides, GATE_MARGIN.of(of.settings))


def restricted(run: Run, keep: Callable[[Scenario], bool]) -> Run:
    """Return `run` with those of its eval scenarios alone that are to be kept."""
    scenarios = tuple(s for s in run.scenarios if s.split != "eval" or keep(s))
    ids = {s.id for s in scenarios}
    return replace(run, scenarios=scenarios, phases=tuple(_part(result, ids) for result in run.phases))


def by_domain(run: Run) -> Iterator[tuple[str, Run]]:
    """Yield each domain of the eval scenarios, and what `run` is in it."""
    for domain in sorted({s.domain for s in run.scenarios if s.split == "eval"}):
        yield domain, restricted(run, lambda scenario, domain=domain: scenario.domain == domain)  # type: ignore[misc]


def named(found: Mapping[str, RuleResult], sides: Mapping[str, Sides], margin: float) -> list[RuleResult]:
    """Return the findings by domain, named by it; `sides` are the tallies that each finding compares."""
    return [_named(_with_n(result, sides[domain], margin), domain) for domain, result in found.items()]


def _against(of: GateInput, parts: Mapping[str, GateInput], baseline: Baseline) -> list[RuleResult]:
    """Compare each domain with the baseline, also one that the suite has lost."""
    tallies, margin = of.sweeps.rows_after, GATE_MARGIN.of(of.settings)
    known = {id_: row.domain for id_, row in tallies.items()}
    rows = {id_: replace(row, domain=known.get(id_, row.domain)) for id_, row in baseline.scenarios.items()}
    lost = {row.domain for row in rows.values()} - parts.keys() - {""}
    found, sides = {}, {}
    for domain in sorted(parts.keys() | lost):
        sides[domain] = _sides_in((rows, tallies), domain)
        own = replace(baseline, scenarios=sides[domain][0])
        found[domain] = rules.judge_regression(replace(parts.get(domain, of), baseline=own))
    return named(found, sides, margin)


def _part(result: PhaseResult, ids: set[str]) -> PhaseResult:
    if not result.phase.sweeps:
        return result
    planned = tuple(id_ for id_ in result.phase.scenarios if id_ in ids)
    return replace(
        result,
        phase=replace(result.phase, scenarios=planned),
        groups=tuple(group for group in result.groups if group.scenario_id in ids),
        shared=tuple(group for group in result.shared if group.scenario_id in ids),
        excluded=tuple(id_ for id_ in result.excluded if id_ in ids),
        settled=tuple(id_ for id_ in result.settled if id_ in ids),
    )


def _sides_in(sides: Sides, domain: str) -> Sides:
    return in_domain(sides[0], domain), in_domain(sides[1], domain)


def _with_n(result: RuleResult, sides: Sides, margin: float) -> RuleResult:
    """Return a finding on too few scenarios with the number that would be enough."""
    n, share = result.figures.get("n", MIN_SCENARIOS), result.figures.get("share", 0.0)
    open_ones = ("open", "unseen")
    if result.figures.get("answer") not in open_ones or n >= MIN_SCENARIOS or share < MIN_SHARE:
        return result
    compared = compare(*sides)
    needed = max(settling_n(compared.difference, margin) or 0, MIN_SCENARIOS)
    few = plural(n, "scenario", "is", "are")
    advice = f"{few} too few: about {counted(needed, compared)} of the domain would be enough in 4 of 5 runs"
    return replace(result, advice=advice, figures={**result.figures, "settled_by": needed})


def _named(result: RuleResult, domain: str) -> RuleResult:
    return replace(result, name=f"{result.name} ({domain})", figures={**result.figures, "domain": domain})
