"""What the report claims of the gain: by domain after Holm's correction, and what the plan can show."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

import numpy as np

from pytest_tfgrpo.core.records import PhaseResult, Run
from pytest_tfgrpo.harness.comparison import Comparison, Tally, compare, figures
from pytest_tfgrpo.numerics.planning import minimum_detectable_effect, planned_effect
from pytest_tfgrpo.numerics.stats import holm, two_sided_p

ALPHA = 0.05


def domains(run: Run, before: Mapping[str, Tally], after: Mapping[str, Tally]) -> list[dict[str, Any]]:
    """Return means and paired gain of the final sweep by domain.

    `p` is the two-sided sign-flip p of the domain's gain, `p_adjusted` corrects it for the number of domains
    (Holm), and only where that is below 0.05 a domain is claimed to be better or worse.
    """
    domain_of = {s.id: s.domain for s in run.scenarios}
    names = sorted({domain_of[id] for id in after})
    own = {name: {id: row for id, row in after.items() if domain_of[id] == name} for name in names}
    compared = {name: compare(before, own[name]) for name in names} if before else {}
    p = [_p(compared[name]) for name in compared]
    adjusted = dict(zip(compared, holm(p).tolist(), strict=True))
    return [
        _row(name, own[name], compared.get(name), p[i] if compared else np.nan, adjusted.get(name, np.nan))
        for i, name in enumerate(names)
    ]


def _p(compared: Comparison) -> float:
    pairs = zip(compared.before_K, compared.after_K, strict=True)
    return two_sided_p([new - old for old, new in pairs]) if compared.ids else float("nan")


def _row(
    name: str, rows: Mapping[str, Tally], compared: Comparison | None, p: float, adjusted: float
) -> dict[str, Any]:
    means = [mean for row in rows.values() if (mean := row.mean()) is not None]
    claimed = compared is not None and adjusted < ALPHA
    return {
        "domain": name,
        "scenarios": len(rows),
        "mean": fsum(means) / len(means) if means else None,
        "gain": figures(compared) if compared is not None else None,
        "p": None if np.isnan(p) else p,
        "p_adjusted": None if np.isnan(adjusted) else adjusted,
        "claim": None
        if compared is None or not claimed
        else ("better" if compared.difference.mean > 0 else "worse"),
    }


def planned(compared: Comparison, last: PhaseResult) -> dict[str, Any]:
    """Return the size of the final sweep as planned, and the effect that it shows with 80 % power.

    Judged by the spread of the differences where there is one, else by the widest that scores can have.
    """
    scenarios, rollouts = len(last.phase.scenarios), last.phase.rollouts
    measured = compared.difference.low is not None and compared.difference.std > 0 and scenarios > 0
    return {
        "scenarios": scenarios,
        "rollouts": rollouts,
        "spread": "measured" if measured else "widest",
        "detectable": minimum_detectable_effect(compared.difference.std, scenarios)
        if measured
        else planned_effect(scenarios, rollouts),
    }
