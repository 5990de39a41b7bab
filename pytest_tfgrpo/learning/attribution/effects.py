"""Effects: what training groups with and without a lesson show about it, for all lessons together."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import fsum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.lessons import Exposure
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.numerics.arrays import Floats, Ints, np
from pytest_tfgrpo.numerics.attribution import Effect, Trials, draws_for, estimate
from pytest_tfgrpo.numerics.stats import holm

if TYPE_CHECKING:
    pass

Codes: TypeAlias = Ints
EffectDecision: TypeAlias = Literal["helpful", "harmful", "unclear", "not_estimable"]
ALPHA = 0.05
"""Level of the claims that a lesson helps or harms, over all lessons together."""
UNINFORMED = 0.5
"""Covariate of the first groups of all, before any outcome is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonEffect:
    """What is known of one lesson; `effect` is mean reward with it minus without."""

    included: int
    """Groups whose prompt carried it."""
    left_out: int
    """Groups that it was left out of at random."""
    scenarios: int
    errors: int
    """Rollouts of these groups that are errors and count nowhere else."""
    effect: float | None
    ci95: tuple[float, float] | None
    p: float | None
    p_adjusted: float | None
    """`p` corrected for all lessons that were estimated with it (Holm)."""
    verdict: EffectDecision

    @property
    def groups(self) -> int:
        """Groups that it was selected for."""
        return self.included + self.left_out


UNSEEN = LessonEffect(
    included=0, left_out=0, scenarios=0, errors=0,
    effect=None, ci95=None, p=None, p_adjusted=None, verdict="not_estimable",
)  # fmt: skip


def shrunken(found: Mapping[str, LessonEffect]) -> dict[str, float]:
    """Return the estimated effects, each drawn towards the mean of all as far as it is uncertain.

    The largest of many estimates is mostly too large. The spread of the true effects is that of DerSimonian
    and Laird 1986, "Meta-analysis in clinical trials".
    """
    known = {key: (e.effect, e.ci95) for key, e in found.items() if e.effect is not None and e.ci95}
    if not known:
        return {}
    effect_L = np.array([effect for effect, _ in known.values()], dtype=np.float64)
    spread_L = np.array([(ci[1] - ci[0]) / (2 * 1.96) for _, ci in known.values()]) ** 2
    w_L = 1.0 / np.maximum(spread_L, 1e-9)
    mean = float((w_L * effect_L).sum() / w_L.sum())
    excess = float((w_L * (effect_L - mean) ** 2).sum()) - (len(known) - 1)
    scale = float(w_L.sum() - (w_L**2).sum() / w_L.sum())
    tau2 = max(0.0, excess / scale) if scale > 0 else np.inf
    v_L = 1.0 / (spread_L + tau2) if np.isfinite(tau2) else np.ones_like(w_L)
    center = float((v_L * effect_L).sum() / v_L.sum())
    keep_L = tau2 / (tau2 + spread_L) if np.isfinite(tau2) else np.ones_like(w_L)
    return {
        key: float(value) for key, value in zip(known, center + keep_L * (effect_L - center), strict=True)
    }


class _Groups(NamedTuple):
    """Groups with a reward, oldest first (axis ``_K``)."""

    rows: list[Exposure]
    reward_K: Floats
    x_K: Floats
    """Mean reward that the scenario had before."""
    propensity_K: Floats
    draw_K: Codes
    """Equal for groups whose lessons were left out by the same draw."""
    scenario_K: Codes
    stratum_K: Codes
    """Domain and propensity."""


def lesson_effects(rows: Iterable[Exposure], keys: Iterable[str] | None = None) -> dict[str, LessonEffect]:
    """Return what is known of each lesson in `keys`, by content key; of all that occur when it is None.

    The unit is the group; groups with the same draw count as one. The covariate of a group is the mean reward
    of the groups that its scenario had before, in earlier epochs and runs, drawn towards that of its domain:
    it is settled before the chance is drawn, so the two are independent.
    """
    known = list(rows)
    groups = _groups(known)
    places: dict[str, tuple[array[int], array[int]]] = {}
    for k, row in enumerate(groups.rows):
        for lessons, included in ((row.included, True), (row.left_out, False)):
            for key in lessons:
                at, flags = places.setdefault(key, (array("q"), array("b")))
                at.append(k)
                flags.append(included)
    errors: Counter[str] = Counter()
    for row in known:
        if row.errors:
            errors.update(dict.fromkeys((*row.included, *row.left_out), row.errors))
    ordered = sorted(places if keys is None else set(keys))
    draws = draws_for(len(ordered))
    nowhere = array("q"), array("b")
    effects = [_effect(groups, *places.get(key, nowhere), draws=draws) for key in ordered]
    adjusted = holm([effect.p for effect in effects]) if effects else ()
    return {
        key: _standing(effect, float(p), errors[key])
        for key, effect, p in zip(ordered, effects, adjusted, strict=True)
    }


def _groups(rows: Iterable[Exposure]) -> _Groups:
    ordered: list[Exposure] = []
    rewards, xs = array("d"), array("d")
    past: dict[str, tuple[float, ...]] = {}
    known: dict[tuple[float, ...], tuple[float, ...]] = {}
    """Values of `past`, of which there are many: equal ones are held once."""
    of_domain: dict[str, array[float]] = {}
    for moment in _in_time(rows):
        prior = {domain: fsum(seen) / len(seen) for domain, seen in of_domain.items()}
        for row, _ in moment:
            own = past.get(row.scenario, ())
            xs.append((prior.get(row.domain, UNINFORMED) + fsum(own)) / (1 + len(own)))
        for row, reward in moment:
            own = (*past.get(row.scenario, ()), reward)
            past[row.scenario] = known.setdefault(own, own)
            of_domain.setdefault(row.domain, array("d")).append(reward)
            ordered.append(row)
            rewards.append(reward)
    scenario_K = _codes(row.scenario for row in ordered)
    draw_K = _codes((row.series, row.epoch) for row in ordered) * (len(past) + 1) + scenario_K
    return _Groups(
        rows=ordered,
        reward_K=np.array(rewards, dtype=np.float64),
        x_K=np.array(xs, dtype=np.float64),
        propensity_K=np.array([row.propensity for row in ordered], dtype=np.float64),
        draw_K=_in_order(draw_K),
        scenario_K=scenario_K,
        stratum_K=_codes((row.domain, row.propensity) for row in ordered),
    )


def _in_time(rows: Iterable[Exposure]) -> Iterator[list[tuple[Exposure, float]]]:
    """Yield the rows with a known reward by run and epoch, oldest first: ids of runs sort by time."""
    moments: dict[tuple[str, int], list[Exposure]] = {}
    for row in rows:
        if row.reward is not None:
            moments.setdefault((row.run_id, row.epoch), []).append(row)
    for moment in sorted(moments):
        yield [(row, row.reward) for row in moments[moment] if row.reward is not None]


def _codes(values: Iterable[Hashable]) -> Codes:
    """Return equal numbers for equal values, from 0 in order of first sight."""
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(value, len(seen)) for value in values), dtype=np.intp)


def _in_order(numbers_K: Codes) -> Codes:
    """Return the same for numbers, with less memory."""
    _, first_U, unit_of_K = np.unique(numbers_K, return_index=True, return_inverse=True)
    rank_U = np.empty_like(first_U)
    rank_U[np.argsort(first_U)] = np.arange(first_U.size)
    return rank_U[unit_of_K]


def _effect(groups: _Groups, at: array[int], included: array[int], *, draws: int) -> Effect:
    k_K = np.array(at, dtype=np.intp)
    unit_K = 2 * groups.draw_K[k_K] + np.array(included, dtype=np.intp)
    _, first_U, unit_of_K, count_U = np.unique(
        unit_K, return_index=True, return_inverse=True, return_counts=True
    )
    at_U = k_K[first_U]
    y_U = np.bincount(unit_of_K, weights=groups.reward_K[k_K], minlength=at_U.size) / count_U
    scenario_U = np.unique(groups.scenario_K[at_U], return_inverse=True)[1]
    return estimate(
        Trials(
            z_K=unit_K[first_U] % 2 == 1,
            propensity_K=groups.propensity_K[at_U],
            y_K=y_U,
            x_K=groups.x_K[at_U],
            cluster_K=scenario_U,
            stratum_K=groups.stratum_K[at_U],
        ),
        draws=draws,
    )


def _standing(effect: Effect, p_adjusted: float, errors: int) -> LessonEffect:
    verdict: EffectDecision = "not_estimable"
    ci95 = None
    if effect.low is not None and effect.high is not None:
        ci95 = (effect.low, effect.high)
        claimed = p_adjusted < ALPHA
        verdict = "unclear"
        if claimed and effect.high < 0:
            verdict = "harmful"
        elif claimed and effect.low > 0:
            verdict = "helpful"
    return LessonEffect(
        included=effect.included,
        left_out=effect.left_out,
        scenarios=effect.clusters,
        errors=errors,
        effect=effect.effect,
        ci95=ci95,
        p=effect.p if ci95 else None,
        p_adjusted=p_adjusted if ci95 else None,
        verdict=verdict,
    )
