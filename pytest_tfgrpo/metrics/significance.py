"""The claims of a report about the gain: by domain after Holm's correction, and what the plan can detect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.core.report_blocks import DomainRow, GainClaim, PlannedSweep
from pytest_tfgrpo.metrics.comparison import Comparison, Tally, compare, figures
from pytest_tfgrpo.numerics.planning import minimum_detectable_effect, planned_effect
from pytest_tfgrpo.numerics.stats import holm, paired_interval, two_sided_p

ALPHA = 0.05
Claim: TypeAlias = Literal["better", "worse"]


def domains(
    run: Run,
    before: Mapping[str, Tally],
    after: Mapping[str, Tally],
    looks: int = 1,
    placebo: Mapping[str, Tally] | None = None,
) -> list[DomainRow]:
    """Return means and paired gain of the final sweep by domain.

    `p` is the two-sided sign-flip p of the domain's gain, `p_adjusted` corrects it for the number of domains
    (Holm). A domain is claimed to be better or worse only where that is below 0.05 / `looks` and the interval
    of its gain lies on that side of 0 at that level, with errors left out and with errors as 0; it is better
    only where the same holds over the tallies of a placebo, if one ran.
    """
    domain_of = {s.id: s.domain for s in run.scenarios}
    names = sorted({domain_of[id_] for id_ in after})
    own = {name: {id_: row for id_, row in after.items() if domain_of[id_] == name} for name in names}
    if not before:
        return [_row(name, own[name]) for name in names]
    known, as_zero = _readings(before, own, names)
    sides = _sides(known, as_zero, looks)
    if placebo is not None:
        over = _sides(*_readings(placebo, own, names), looks)
        sides = [held(side, than_placebo) for side, than_placebo in zip(sides, over, strict=True)]
    p = [_nan_p(compared) for compared in known]
    adjusted = holm(p).tolist()
    return [
        _row(name, own[name])
        | {
            "gain": figures(known[i]),
            "p": None if math.isnan(p[i]) else p[i],
            "p_adjusted": None if math.isnan(adjusted[i]) else adjusted[i],
            "claim": sides[i],
        }
        for i, name in enumerate(names)
    ]


def held(side: Claim | None, than_placebo: Claim | None) -> Claim | None:
    """Return what may be claimed where a placebo ran: better, only if it is better than that too."""
    return None if side == "better" and than_placebo != "better" else side


def _readings(
    before: Mapping[str, Tally], own: Mapping[str, Mapping[str, Tally]], names: Sequence[str]
) -> tuple[list[Comparison], list[Comparison]]:
    """Return the comparison of each domain with errors left out, and with errors as 0."""
    return (
        [compare(before, own[name]) for name in names],
        [compare(before, own[name], errors_as_zero=True) for name in names],
    )


def _sides(known: Sequence[Comparison], as_zero: Sequence[Comparison], looks: int) -> list[Claim | None]:
    """Return what may be claimed of each domain, after Holm's correction for their number."""
    adjusted, adjusted_zero = (
        holm([_nan_p(one) for one in reading]).tolist() for reading in (known, as_zero)
    )
    pairs = zip(zip(known, adjusted, strict=True), zip(as_zero, adjusted_zero, strict=True), strict=True)
    return [claim(*readings, looks=looks) for readings in pairs]


def p_of(compared: Comparison) -> float | None:
    """Return the two-sided sign-flip p of a difference; None without any scenario."""
    return two_sided_p(compared.differences_K, compared.families_K) if compared.ids else None


def gain_claim(known: Comparison, as_zero: Comparison, looks: int, margin: float) -> GainClaim:
    """Return what may be claimed of a gain after so many `looks` at its eval split, each at 0.05 / `looks`.

    Of k variants that gain nothing, the best then passes for better in at most 5 % (Bonferroni).
    """
    p = p_of(known)
    side = claim((known, p), (as_zero, p_of(as_zero)), looks=looks)
    equal = None if side else equal_within(margin, known, as_zero, looks=looks)
    return {"looks": looks, "level": ALPHA / looks, "p": p, "side": side, "equal_within": equal}


def equal_within(margin: float, *readings: Comparison, looks: int = 1) -> float | None:
    """Return `margin` where the interval of each reading lies inside it on both sides of 0; else None.

    Each bound is then at 0.025 / `looks`: two one-sided tests (Schuirmann 1987).
    """
    for compared in readings:
        low, high = _bounds(compared, ALPHA / looks)
        if low is None or high is None or low < -margin or high > margin:
            return None
    return margin


def claim(*readings: tuple[Comparison, float | None], looks: int = 1) -> Claim | None:
    """Return what all `readings`, with the p of each, allow to be claimed: better, worse, or nothing.

    The sign-flip test and the interval may disagree where few scenarios differ: a claim needs both. After
    several `looks` both are at 0.05 / `looks`.
    """
    level = ALPHA / looks
    found = {_side(compared, level) if p is not None and p < level else None for compared, p in readings}
    return found.pop() if len(found) == 1 else None


def _side(compared: Comparison, level: float) -> Claim | None:
    """Return on which side of 0 the interval lies; None where it holds 0, and without one."""
    low, high = _bounds(compared, level)
    if low is None or high is None:
        return None
    return "better" if low > 0 else "worse" if high < 0 else None


def _bounds(compared: Comparison, level: float) -> tuple[float | None, float | None]:
    """Return the interval of a difference at 1 - `level`; None, None where there is none."""
    difference = compared.difference
    if level < ALPHA:
        before_K, after_K, families_K = compared.before_K, compared.after_K, compared.families_K
        difference = paired_interval(before_K, after_K, families_K, level=1.0 - level)
    return difference.low, difference.high


def _nan_p(compared: Comparison) -> float:
    p = p_of(compared)
    return math.nan if p is None else p


def _row(name: str, rows: Mapping[str, Tally]) -> DomainRow:
    """Return the row of a domain that is compared with nothing."""
    means = [mean for row in rows.values() if (mean := row.mean()) is not None]
    return {
        "domain": name,
        "scenarios": len(rows),
        "mean": fsum(means) / len(means) if means else None,
        "gain": None,
        "p": None,
        "p_adjusted": None,
        "claim": None,
    }


def planned(compared: Comparison, last: PhaseResult) -> PlannedSweep:
    """Return the size of the final sweep as planned, and the effect that it shows with 80 % power.

    Judged by the spread of the differences where there is one, else by the widest that scores can have.
    """
    scenarios, rollouts = len(last.phase.scenarios), last.phase.rollouts
    measured = compared.difference.low is not None and compared.difference.std > 0
    return {
        "scenarios": scenarios,
        "rollouts": rollouts,
        "spread": "measured" if measured else "widest",
        "detectable": minimum_detectable_effect(compared.difference.std, scenarios)
        if measured
        else planned_effect(scenarios, rollouts),
    }
