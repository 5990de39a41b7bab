"""The sides of an arena compared, each with each: one JSON value; terminal text and page are made from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any

from pytest_tfgrpo.arena.result import ArenaResult, Side
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.gate.result import MIN_SCENARIOS, MIN_SHARE
from pytest_tfgrpo.gate.sample_size import settling_advice
from pytest_tfgrpo.metrics import significance
from pytest_tfgrpo.metrics.comparison import Comparison, Tally, compare, figures
from pytest_tfgrpo.numerics.planning import minimum_detectable_effect
from pytest_tfgrpo.numerics.stats import holm

SCHEMA = "tfgrpo.arena-comparison/1"
NONE = "none"
"""The side that learns nothing: gains are over it where it takes part, else over the first side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _SidePair:
    """Two sides over the scenarios that both scored."""

    before: Side
    after: Side
    rows: tuple[Mapping[str, Tally], Mapping[str, Tally]]
    known: Comparison
    """Errors left out."""
    p: float | None
    """Of its difference, not yet corrected; None where there is nothing to test."""
    as_zero: Comparison
    """Errors as failures."""
    p_as_zero: float | None

    @property
    def errors(self) -> bool:
        return any(row.errors for rows in self.rows for row in rows.values())

    @property
    def tested(self) -> bool:
        return self.p is not None

    @property
    def alike(self) -> bool:
        """Whether the prompts of both are equal, so that they share their answers."""
        return _alike(self.before, self.after)


def compare_sides(result: ArenaResult) -> dict[str, Any]:
    """Return how the sides of an arena compare; each p is corrected for the number of pairs (Holm).

    `gain` is over the side that `over` names. A pair's `claim` is better or worse only if its p is below 0.05
    and its interval lies on one side of 0, both with errors left out and with errors as 0, and nothing of
    `obstacles` stands against it; `equal_within` is the margin that its interval lies inside of instead.
    """
    rows = {side.name: _tallies(side, result.families) for side in result.sides}
    scored = [side for side in result.sides if side.scores]
    over = next((side.name for side in scored if side.name == NONE), scored[0].name if scored else None)
    ordered = sorted(scored, key=lambda side: side.name != over)  # the rest in the order of the command
    pairs = [_paired(one, other, rows) for one, other in combinations(ordered, 2)]
    compared = _values(pairs, result.margin)
    gains = {pair["after"]: pair for pair in compared if pair["before"] == over}
    scenarios = set().union(*(side.scores for side in scored))
    return {
        "schema": SCHEMA,
        "arena_id": result.arena_id,
        "task_id": result.task_id,
        "actor": result.actor,
        "teacher": result.teacher,
        "started_at": result.started_at,
        "seed": result.seed,
        "suite_hash": result.suite_hash,
        "budget_rollouts": result.budget_rollouts,
        "budget_teacher_calls": result.budget_teacher_calls,
        "sweep_rollouts": result.sweep_rollouts,
        "usd": result.usd,
        "earlier": result.earlier,
        "over": over,
        "scenarios": len(scenarios),
        "families": len({result.families.get(id_, f"scenario {id_}") for id_ in scenarios}),
        "comparisons": sum(pair.tested for pair in pairs),
        "sides": [_side(side, rows[side.name], gains.get(side.name)) for side in result.sides],
        "pairs": compared,
    }


def _tallies(side: Side, families: Mapping[str, str]) -> dict[str, Tally]:
    return {id_: _tally(scores, families.get(id_)) for id_, scores in side.scores.items()}


def _tally(scores: Sequence[float | None], family: str | None) -> Tally:
    known = [score for score in scores if score is not None]
    return Tally(
        stamp="",
        n=len(known),
        sum=fsum(known),
        sum_sq=fsum(score * score for score in known),
        errors=len(scores) - len(known),
        family=family,
    )


def _alike(before: Side, after: Side) -> bool:
    return (before.same_as or before.name) == (after.same_as or after.name)


def _paired(before: Side, after: Side, rows: Mapping[str, Mapping[str, Tally]]) -> _SidePair:
    old, new = rows[before.name], rows[after.name]
    known = as_zero = compare(old, new)
    p = p_as_zero = None if _alike(before, after) else significance.p_of(known)
    if any(row.errors for row in (*old.values(), *new.values())):
        as_zero = compare(old, new, errors_as_zero=True)
        p_as_zero = None if _alike(before, after) else significance.p_of(as_zero)
    return _SidePair(
        before=before,
        after=after,
        rows=(old, new),
        known=known,
        p=p,
        as_zero=as_zero,
        p_as_zero=p_as_zero,
    )


def _values(pairs: Sequence[_SidePair], margin: float) -> list[dict[str, Any]]:
    """Return the value of each pair, corrected for the number of those that are tested."""
    known, as_zero = (
        holm([math.nan if p is None else p for p in found]).tolist()
        for found in ([pair.p for pair in pairs], [pair.p_as_zero for pair in pairs])
    )
    tests = sum(pair.tested for pair in pairs)
    return [
        _value(pair, (_known(p), _known(p_zero)), tests, margin)
        for pair, p, p_zero in zip(pairs, known, as_zero, strict=True)
    ]


def _value(
    pair: _SidePair, p_adjusted: tuple[float | None, float | None], tests: int, margin: float
) -> dict[str, Any]:
    known, as_zero, (p, p_zero) = pair.known, pair.as_zero, p_adjusted
    obstacles = list(_obstacles(pair))
    claim = equal = None
    if not obstacles:
        claim = significance.claim((known, p), (as_zero, p_zero))
        equal = None if claim else significance.equal_within(margin, known, as_zero, looks=tests)
    return {
        "before": pair.before.name,
        "after": pair.after.name,
        "difference": _difference(known, pair.p, p, tests),
        "errors_as_zero": _difference(as_zero, pair.p_as_zero, p_zero, tests) if pair.errors else None,
        "claim": claim,
        "equal_within": equal,
        "alike": pair.alike,
        "obstacles": obstacles,
        "settling": None if obstacles or claim or equal is not None else _settling(pair, tests, margin),
    }


def _difference(
    compared: Comparison, p: float | None, p_adjusted: float | None, tests: int
) -> dict[str, Any]:
    """Return the figures of a difference; `detectable` is what one of so many `tests` finds in 4 of 5 arenas.

    Without a p there is nothing to find: it has neither.
    """
    found: dict[str, Any] = {**figures(compared), "p": p, "p_adjusted": p_adjusted}
    if p is None:
        return found | {"ci95": None, "method": "none", "detectable": None}
    if found["detectable"] is not None:
        level, made = 1.0 - significance.ALPHA / tests, compared.difference
        found["detectable"] = minimum_detectable_effect(made.std, made.n, level=level)
    return found


def _obstacles(pair: _SidePair) -> Iterable[str]:
    """Yield why nothing can be claimed of a pair, whatever its difference."""
    n, larger = len(pair.known.ids), max(map(len, pair.rows))
    if pair.alike:
        yield "their prompts are equal"
    elif n < MIN_SHARE * larger:
        yield f"only {n} of {plural(larger, 'scenario', 'is', 'are')} scored for both"
    elif n < MIN_SCENARIOS:
        yield f"only {plural(n, 'eval scenario')}; a claim needs {MIN_SCENARIOS} or more"


def _settling(pair: _SidePair, tests: int, margin: float) -> str:
    """Return what would settle which of two is better, or that they are equal within `margin`."""
    (old, new), compared = pair.rows, pair.known
    if compared.difference.mean > 0:  # `settling_advice` is about a drop
        old, new = new, old
        compared = compare(old, new)
    return settling_advice(compared, old, new, margin, level=1.0 - significance.ALPHA / tests)[0]


def _side(side: Side, rows: Mapping[str, Tally], gain: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts of a side; `gain` is its pair with the side that gains are over."""
    means = [mean for row in rows.values() if (mean := row.mean()) is not None]
    return {
        "name": side.name,
        "note": side.note,
        "same_as": side.same_as,
        "mean": fsum(means) / len(means) if means else None,
        "errors": sum(row.errors for row in rows.values()),
        "gain": gain and {**gain["difference"], "claim": gain["claim"], "equal_within": gain["equal_within"]},
        "rollouts": side.rollouts,
        "teacher_calls": side.teacher_calls,
        "teacher_limited": side.teacher_limited,
        "usd": side.usd,
        "tokens_added": side.tokens_added,
        "wall_s": side.wall_s,
        "files": list(side.files),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
