"""The three answers to a paired difference: not worse by more than the margin, worse, or open.

An open one passes with a warning only where a drop as large as ``gate_alarm`` is excluded (decision 21a).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import interval, plural
from pytest_tfgrpo.gate.looks import ALPHA, TIMES, Look
from pytest_tfgrpo.gate.result import MIN_SCENARIOS, MIN_SHARE, Outcome, RuleResult
from pytest_tfgrpo.gate.sample_size import settling_advice
from pytest_tfgrpo.metrics.comparison import Comparison, Tally, compare, figures, sentence
from pytest_tfgrpo.numerics.planning import normal_quantile
from pytest_tfgrpo.numerics.stats import holm, mean_interval, one_sided_p, rollouts_bounds

GateAnswer: TypeAlias = Literal["not worse", "worse", "open", "unseen"]
"""``unseen``: open, and a drop of ``gate_alarm`` is not excluded."""
OUTCOMES: Mapping[GateAnswer, Outcome] = {
    "worse": "fail",
    "unseen": "fail",
    "open": "inconclusive",
    "not worse": "pass",
}
"""From the worst answer to the best."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """What a paired difference is held to."""

    margin: float
    """Drop that is tolerated."""
    alarm: float = 1.0
    """Drop that must be excluded; 1: none need be."""
    drift: float = 0.0
    """Standard deviation of the difference of two sweeps of one build, beyond their rollouts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """One reading of errors: excluded, or as 0."""

    comparison: Comparison
    """Of the last look."""
    low: float
    high: float
    """Bounds that hold over all looks."""
    p_worse: float
    share: float

    @property
    def by_rollouts(self) -> bool:
        """Whether there are too few families to speak of other scenarios."""
        difference = self.comparison.difference
        return bool(self.comparison.ids) and (difference.low is None or difference.just_these)

    def answer(self, bar: Bar) -> GateAnswer:
        """Return the answer; few scenarios, or few in common, are never enough for a pass."""
        enough = self.share >= MIN_SHARE and len(self.comparison.ids) >= MIN_SCENARIOS
        if enough and self.low > -bar.margin:
            return "not worse"
        if self.high < 0:
            return "worse"
        return "open" if self.low > -bar.alarm or bar.alarm >= 1 else "unseen"


def judge_difference(name: str, before: Mapping[str, Tally], looks: Sequence[Look], bar: Bar) -> RuleResult:
    """Return the result for a paired difference, the worse of both readings of errors (decision 21a).

    `looks` are those taken at the sweep after, at least one.
    """
    after = looks[-1].after
    readings = [_read(before, looks, bar, errors_as_zero=False)]
    if any(tally.errors for tallies in (before, after) for tally in tallies.values()):
        readings.append(_read(before, looks, bar, errors_as_zero=True))
    order = list(OUTCOMES)
    worst = min(readings, key=lambda reading: order.index(reading.answer(bar)))
    answer = worst.answer(bar)
    level = 1 - 2 * looks[0].level
    advice, sizes = _advice(worst, before, after, bar, level, errors_as_zero=worst is not readings[0])
    views = [_figures(reading, bar) | (sizes if reading is worst else {}) for reading in readings]
    found = views[0] | {"errors_as_zero": views[1] if views[1:] else None}
    if answer != "not worse":
        found["noisy"] = _is_noisy(worst, before, after)
    found |= {"answer": answer, "alarm": bar.alarm, "p_worse": _together(readings)}
    said = [sentence(readings[0].comparison)]
    said += [f"with errors as 0: {sentence(reading.comparison)}" for reading in readings[1:]]
    if readings[0].by_rollouts:
        said.append(f"by their rollouts alone {interval([readings[0].low, readings[0].high], '+.3f')}")
    elif (shown := worst.comparison.difference).method == "exact":
        alike = "all scenarios differ alike" if shown.mean else "no scenario differs"
        said.append(f"{alike}; each bound by itself {interval([worst.low, worst.high], '+.3f')}")
    if looks[-1].rollouts:
        found["looks"] = [look.rollouts for look in looks]
        said.append(
            f"look {len(looks)} of {len(TIMES)}, with {plural(looks[-1].rollouts, 'rollout')} of each"
        )
    message = f"{_said(answer, bar)}{'; '.join(said)}; margin {bar.margin:g}"
    return RuleResult(name=name, outcome=OUTCOMES[answer], message=message, advice=advice, figures=found)


def share_level(results: Iterable[RuleResult]) -> list[RuleResult]:
    """Return the results of one gate, where a drop is worse only if it is so among all that were looked for.

    Holm 1979: several comparisons share the level of one, and so do both readings of errors, whose smaller p
    counts twice. That all pass needs no correction, as every single one must (Berger 1982, "Multiparameter
    Hypothesis Testing and Acceptance Sampling").
    """
    results = list(results)
    places = [i for i, result in enumerate(results) if result.figures.get("p_worse") is not None]
    tests = sum(1 + (results[i].figures["errors_as_zero"] is not None) for i in places)
    if tests < 2:
        return results
    adjusted = holm([results[i].figures["p_worse"] for i in places]).tolist()
    for i, p in zip(places, adjusted, strict=True):
        results[i] = _weighed(results[i], p, tests)
    return results


def can_be_seen(result: RuleResult) -> bool:
    """Return whether more rollouts of the same scenarios may decide what keeps a result from passing.

    They cannot where the rollouts of each scenario all agree: then only more scenarios would.
    """
    undecided = result.figures.get("answer") in ("open", "unseen") and "lost" not in result.figures
    return undecided and bool(result.figures.get("noisy"))


def _weighed(result: RuleResult, p: float, tests: int) -> RuleResult:
    """Return a result with its adjusted p, open instead of worse where that is too large."""
    result = replace(result, figures={**result.figures, "p_holm": p})
    if result.figures["answer"] != "worse" or p < ALPHA or "lost" in result.figures:
        return result
    low, alarm = result.figures["bounds"][0], result.figures["alarm"]
    answer: GateAnswer = "open" if low > -alarm or alarm >= 1 else "unseen"
    bar = Bar(margin=result.figures["margin"], alarm=alarm)
    return replace(
        result,
        outcome=OUTCOMES[answer],
        message=_said(answer, bar) + result.message.removeprefix(_said("worse", bar)),
        advice=(
            f"with {tests} comparisons, such a drop may be chance (p {p:.3f} after Holm, {ALPHA:g} needed)"
        ),
        figures={**result.figures, "answer": answer},
    )


def _read(before: Mapping[str, Tally], looks: Sequence[Look], bar: Bar, *, errors_as_zero: bool) -> _Reading:
    low, high, p = -math.inf, math.inf, 1.0
    for look in looks:
        known = before if look.before is None else look.before
        comparison = compare(known, look.after, errors_as_zero=errors_as_zero)
        if comparison.ids:
            bounds = _bounds(comparison, known, look, bar.drift, errors_as_zero)
            low, high = max(low, bounds[0]), min(high, bounds[1])
            p = min(p, bounds[2] * ALPHA / look.level)
    share = len(comparison.ids) / max(len(before), len(looks[-1].after), 1)
    return _Reading(comparison=comparison, low=max(low, -1.0), high=min(high, 1.0), p_worse=p, share=share)


def _bounds(
    comparison: Comparison, before: Mapping[str, Tally], look: Look, drift: float, errors_as_zero: bool
) -> tuple[float, float, float]:
    """Return both bounds at the level of a look, and the p that the difference is below 0.

    Where there are too few families, the rollouts alone decide: on these tasks, and no others.
    """
    difference = comparison.difference
    mean, low, high = difference.mean, difference.low, difference.high
    if low is None or high is None or difference.just_these:
        sides = [
            [
                (row.n + row.errors * errors_as_zero, row.sum)
                for row in (tallies[id_] for id_ in comparison.ids)
            ]
            for tallies in (before, look.after)
        ]
        low, high, p = rollouts_bounds(sides[0], sides[1], look.level)
        spread = (high - low) / 2 / normal_quantile(1 - look.level)
    else:
        differences, families = comparison.differences_K, comparison.families_K
        exact = difference.method == "exact"  # its level is that of one bound: none of n shows both ends
        if look.level != ALPHA or exact:
            level = 1 - look.level * (1 if exact else 2)
            made = mean_interval(differences, families, support=(-1.0, 1.0), level=level)
            low, high = made.low or 0.0, made.high or 0.0
        p = one_sided_p(differences, families, alternative="less")
        spread = difference.std / math.sqrt(difference.n)
    if drift:
        far = normal_quantile(1 - look.level) * drift
        low, high = mean - math.hypot(mean - low, far), mean + math.hypot(high - mean, far)
        p = _drifted(p, drift / max(spread, 1e-12))
    return low, high, p


def _drifted(p: float, ratio: float) -> float:
    """Return a p below a half as it is where drift of `ratio` standard errors comes on top."""
    if p >= 0.5:
        return p
    from statistics import NormalDist

    return 1 - NormalDist().cdf(normal_quantile(1 - p) / math.sqrt(1 + ratio * ratio))


def _together(readings: Sequence[_Reading]) -> float:
    return min(len(readings) * min(reading.p_worse for reading in readings), 1.0)


def _said(answer: GateAnswer, bar: Bar) -> str:
    """Return an answer in words, to which the figures are added."""
    return {
        "not worse": f"not worse by more than {bar.margin:g}: ",
        "worse": "worse: ",
        "unseen": f"cannot see a drop of {bar.alarm:g}: ",
        "open": f"open, as only a drop of {bar.alarm:g} is excluded: " if bar.alarm < 1 else "open: ",
    }[answer]


def _is_noisy(reading: _Reading, before: Mapping[str, Tally], after: Mapping[str, Tally]) -> bool:
    """Return whether rollouts of a scenario differ, or are too few to know; then more of them help.

    Of answers that both sides share no number would.
    """
    pairs = [(before[id_], after[id_]) for id_ in reading.comparison.ids]
    rows = [row for pair in pairs if not (pair[0].shared and pair[1].shared) for row in pair]
    varied = any(row.n and row.sum_sq - row.sum**2 / row.n > 1e-9 for row in rows)
    few = reading.by_rollouts or any(row.n + row.errors < 2 for row in rows)
    return bool(rows) and (varied or few or any(row.errors for row in rows))


def _figures(reading: _Reading, bar: Bar) -> dict[str, object]:
    found = figures(reading.comparison) | {"margin": bar.margin, "share": reading.share}
    return found | {"bounds": [reading.low, reading.high] if reading.comparison.ids else None}


def _advice(
    reading: _Reading,
    before: Mapping[str, Tally],
    after: Mapping[str, Tally],
    bar: Bar,
    level: float,
    *,
    errors_as_zero: bool,
) -> tuple[str, dict[str, object]]:
    answer, n = reading.answer(bar), len(reading.comparison.ids)
    if answer == "not worse":
        return "", {}
    if answer == "worse":
        return "look at the largest regressions in the report", {}
    if reading.by_rollouts and reading.share >= MIN_SHARE:
        larger = ", or set gate_alarm to a larger drop" if answer == "unseen" else ""
        return f"add eval scenarios of other families, or set eval_rollouts higher{larger}", {}
    if reading.share < MIN_SHARE:
        few = f"only {reading.share:.0%} of the scenarios are in both"
        return f"{few}; save a new baseline or run the same scenarios", {}
    if n < MIN_SCENARIOS:
        return f"compare at least {MIN_SCENARIOS} eval scenarios", {}
    wanted = bar.alarm if answer == "unseen" else bar.margin
    return settling_advice(
        reading.comparison, before, after, wanted, errors_as_zero=errors_as_zero, level=level
    )
