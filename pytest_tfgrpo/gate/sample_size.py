"""How many scenarios and rollouts would decide an inconclusive comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.metrics.comparison import Comparison, Tally
from pytest_tfgrpo.numerics.planning import settling, settling_n, spread


def settling_advice(
    comparison: Comparison,
    before: Mapping[str, Tally],
    after: Mapping[str, Tally],
    margin: float,
    *,
    errors_as_zero: bool = False,
    level: float = 0.95,
) -> tuple[str, dict[str, Json]]:
    """Return advice in words, and its figures.

    `settled_by` counts scenarios, `settled_families` families, where some share one. `settled_options` lists
    [scenarios, rollouts of each], `settled_rollouts` is the number of rollouts that would be enough on these
    scenarios, null if there is none. `spread` has the variances between scenarios and within them, null when
    each scenario has one rollout. `level` is that of the two-sided interval which decides.
    """
    count = settling_n(comparison.difference, margin, level=level)
    found: dict[str, Json] = {"settled_by": count}
    if count is None:
        return "no number of scenarios would be enough", found
    if shared(comparison) and not comparison.difference.just_these:
        found["settled_families"] = families_for(count, comparison)
    rows = [(before[id_], after[id_]) for id_ in comparison.ids]
    if errors_as_zero:
        rows = [(_with_errors(old), _with_errors(new)) for old, new in rows]
    own = [(old, new) for old, new in rows if not (old.shared and new.shared)]
    parts = spread(comparison.difference, own, alike=len(rows) - len(own))
    if parts is None or parts.within <= 0:
        return f"about {counted(count, comparison)} would be enough", found
    rollouts = max(round(sum(old.n + new.n for old, new in rows) / (2 * len(rows))), 1)
    options, same = settling(comparison.difference, parts, rollouts, margin, level=level)
    found |= {
        "settled_options": [[count, rollouts], *(list(option) for option in options[1:])],
        "settled_rollouts": same,
        "spread": {"between": parts.between, "within": parts.within},
    }
    ways = [
        f"{counted(count, comparison)} x {plural(rollouts, 'rollout')}",
        *(f"{counted(scenarios, comparison, '')} x {each}" for scenarios, each in options[1:]),
        *([f"{plural(same, 'rollout')} of each of these {len(rows)}"] if same else []),
    ]
    alone = "" if same else "; more rollouts alone would not"
    return f"about {' or '.join(ways)} would be enough{alone}", found


def shared(comparison: Comparison) -> bool:
    """Return whether some scenarios share a family, so that these are what a comparison counts."""
    return len(set(comparison.families_K)) < len(comparison.ids)


def families_for(scenarios: int, comparison: Comparison) -> int:
    """Return how many families hold so many scenarios, if they are as large as those of a comparison."""
    return math.ceil(scenarios * len(set(comparison.families_K)) / len(comparison.ids))


def counted(scenarios: int, comparison: Comparison, what: str = " eval scenarios") -> str:
    """Return a number of scenarios in words, with their families where some share one."""
    text = f"{scenarios}{what}"
    if comparison.difference.just_these:
        families = len(set(comparison.families_K))
        return f"{text} of {'this family' if families == 1 else f'these {families} families'}"
    return f"{text} in {families_for(scenarios, comparison)} families" if shared(comparison) else text


def _with_errors(tally: Tally) -> Tally:
    return replace(tally, n=tally.n + tally.errors, errors=0)
