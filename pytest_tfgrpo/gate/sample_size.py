"""How many scenarios and rollouts decide a comparison, and how often a gate is red though nothing changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pytest_tfgrpo.core.settings.gate import (
    GATE_ALARM,
    GATE_EXTEND,
    GATE_MARGIN,
    GATE_SEQUENTIAL,
    GATE_STRICT,
)
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.gate.looks import ALPHA, SHARES, TIMES
from pytest_tfgrpo.metrics.comparison import Comparison, Tally
from pytest_tfgrpo.numerics.planning import settling, settling_n, spread
from pytest_tfgrpo.numerics.unchanged import Limits, LookPlan, StoredSweep, red_share

MOST_RED = 0.04
"""Of unchanged builds; *worse* alone may be wrong in 2.5 % of them."""
_MORE_SWEEPS = (1, 2, 4, 9)
_MORE_SCENARIOS = (2, 3, 4, 6)
DRAWS = 500
"""Simulated builds by which a baseline is judged."""
FEWER_DRAWS = 200
"""Those by which a remedy is."""


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
        return f"about {counted(count, comparison)} would be enough in 4 of 5 runs", found
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
    return f"about {' or '.join(ways)} would be enough in 4 of 5 runs{alone}", found


def red_builds(
    rows: Mapping[str, Tally], settings: Mapping[str, object], *, sweeps: int = 1, drift: float | None = None
) -> str:
    """Return in how many of 100 unchanged builds a gate with this baseline is red, and what to do.

    `rows` pool so many `sweeps`; `drift` is that between sweeps, where it is known. Empty where nothing has a
    score.
    """
    scored = {id_: row for id_, row in rows.items() if row.n}
    if not scored:
        return ""
    first = EVAL_ROLLOUTS.of(settings) or GATE_EXTEND.of(settings) or 1
    several = GATE_EXTEND.of(settings) and not GATE_SEQUENTIAL.of(settings)
    planned = zip(TIMES, SHARES, strict=True) if several else ((1, 1.0),)
    looks = [LookPlan(first * times, ALPHA * share) for times, share in planned]
    limits = Limits(
        GATE_MARGIN.of(settings), GATE_ALARM.of(settings), drift or 0.0, strict=GATE_STRICT.of(settings)
    )
    families = [row.family or f"scenario {id_}" for id_, row in scored.items()]
    stored = StoredSweep(list(scored.values()), families)
    share = red_share(stored, looks, limits, draws=DRAWS)
    said = f"without a change the gate will be red in {_of_100(share)} of 100 builds"
    if share <= MOST_RED:
        return said
    return f"{said}; {_remedy(stored, looks, limits, sweeps)}"


def _of_100(share: float) -> str:
    return f"about {100 * share:.0f}" if share >= 0.015 else "at most 1"


def _remedy(stored: StoredSweep, looks: list[LookPlan], limits: Limits, sweeps: int) -> str:
    """Return the cheapest of more sweeps and more scenarios after which few unchanged builds are red."""
    larger = f"set gate_alarm to a larger drop than {limits.alarm:g}"
    if limits.strict:
        return f"add eval scenarios, {larger}, or unset gate_strict"
    for more in _MORE_SWEEPS:
        share = red_share(stored._replace(more=more / sweeps), looks, limits, draws=FEWER_DRAWS)
        if share <= MOST_RED:
            runs = "one more run" if more == 1 else f"{more} more runs"
            seed = "another seed" if more == 1 else "other seeds"
            return f"after {runs} like this with {seed} save it again: then in {_of_100(share)}"
    for times in _MORE_SCENARIOS:
        share = red_share(stored._replace(times=times), looks, limits, draws=FEWER_DRAWS)
        if share <= MOST_RED:
            wanted = times * len(stored.rows)
            return f"with about {wanted} eval scenarios in {_of_100(share)}"
    return f"add eval scenarios, or {larger}"


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
