"""Effects of all lessons at once: what is recovered, what is learned, and what degenerate evidence does."""

from typing import Any

import numpy as np
import pytest
from support.lesson_worlds import cells, found, gain_of, parts, world

from pytest_tfgrpo.numerics.cells import cells_of
from pytest_tfgrpo.numerics.effect_model import EffectPrior, EffectSpread
from pytest_tfgrpo.numerics.pooled_effects import (
    PooledEffects,
    chosen,
    cross_fitted,
    pooled_effects,
)


def is_finite(effects: PooledEffects) -> bool:
    numbers = (
        effects.on_topic, effects.on_topic_sd, effects.elsewhere, effects.elsewhere_sd,
        effects.value, effects.value_sd,
    )  # fmt: skip
    return all(np.isfinite(values).all() for values in numbers)


def test_the_order_of_rollouts_changes_nothing() -> None:
    w = world(1)
    order = np.random.default_rng(0).permutation(w.scores.size)
    shuffled = pooled_effects(cells_of(w.scores[order], w.scenarios[order], w.carried[order]), w.about)
    np.testing.assert_allclose(shuffled.on_topic, found(w).on_topic, atol=1e-9)
    np.testing.assert_allclose(shuffled.value, found(w).value, atol=1e-9)


def test_the_order_of_lessons_and_scenarios_changes_nothing() -> None:
    w = world(2)
    rng = np.random.default_rng(0)
    lessons, places = rng.permutation(w.about.shape[1]), rng.permutation(w.about.shape[0])
    turned = pooled_effects(
        cells_of(w.scores, np.argsort(places)[w.scenarios], w.carried[:, lessons]),
        w.about[places][:, lessons],
    )
    np.testing.assert_allclose(turned.on_topic, found(w).on_topic[lessons], atol=1e-8)
    np.testing.assert_allclose(turned.value_sd, found(w).value_sd[lessons], atol=1e-8)


def test_known_effects_are_found_within_what_is_said_to_be_known() -> None:
    errors, covered = [], []
    for seed in range(30):
        effects_of = np.random.default_rng(seed)
        w = world(seed, on=effects_of.normal(0.3, 0.7, 12), elsewhere=effects_of.normal(-0.02, 0.05, 12))
        effects = found(w)
        errors.append([np.mean(effects.on_topic - w.on), np.mean(effects.elsewhere - w.elsewhere)])
        covered += list(np.abs(effects.on_topic - w.on) < 1.96 * effects.on_topic_sd)
        covered += list(np.abs(effects.elsewhere - w.elsewhere) < 1.96 * effects.elsewhere_sd)
    assert np.abs(np.mean(errors, axis=0)).max() < 0.08
    assert 0.90 < np.mean(covered) < 0.99


def test_many_rollouts_tell_a_lesson_that_helps_on_topic_and_harms_elsewhere() -> None:
    on = [1.5] * 6 + [0.0] * 6
    elsewhere = [-0.8] * 3 + [0.0] * 9
    w = world(3, scenarios=120, each=40, on=on, elsewhere=elsewhere)
    effects = found(w)
    np.testing.assert_allclose(effects.on_topic, on, atol=0.6)
    np.testing.assert_allclose(effects.elsewhere, elsewhere, atol=0.25)
    assert not chosen(effects)[:3].any()
    assert chosen(effects)[3:6].all()
    assert (effects.value[3:6] > 0.01).all()


def test_what_most_lessons_do_is_learned_and_decides_on_those_little_is_known_of() -> None:
    def kept(sign: float) -> PooledEffects:
        w = world(4, scenarios=80, on=[sign] * 12, elsewhere=[0.0] * 12)
        untried = w.carried & (np.arange(12) > 0)
        scores = np.where(w.carried[:, 0] & w.about[w.scenarios, 0], np.nan, w.scores)
        told = np.isfinite(scores)
        return pooled_effects(cells_of(scores[told], w.scenarios[told], untried[told]), w.about)

    good, bad = kept(1.2), kept(-1.2)
    assert good.prior.on_topic.mean > 0.5
    assert bad.prior.on_topic.mean < -0.5
    assert not good.tried[0]
    assert chosen(good)[0]
    assert not chosen(bad)[0]


def test_a_learned_prior_carries_over_to_the_next_run() -> None:
    w = world(5, on=[1.0] * 12)
    learned = found(w).prior
    assert learned.on_topic.weight > EffectPrior().on_topic.weight
    few = world(6, scenarios=10, each=4, on=[1.0] * 12)
    assert found(few, learned).on_topic.mean() > found(few).on_topic.mean()


def test_more_confidence_keeps_less() -> None:
    effects = found(world(7))
    kept = [chosen(effects, confidence=level).sum() for level in (0.1, 0.5, 0.9)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[-1]


def test_graded_scores_say_more_than_solved_or_not() -> None:
    w = world(8)
    rng = np.random.default_rng(0)
    clip = 0.5 + 0.4 * (w.scores - 0.5) + rng.normal(0, 0.02, w.scores.size)
    graded = pooled_effects(cells_of(clip, w.scenarios, w.carried), w.about)
    assert graded.on_topic_sd.mean() < found(w).on_topic_sd.mean()


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_equal_scores_show_no_more_than_the_prior(score: float) -> None:
    w = world(9)
    effects = pooled_effects(cells(w._replace(scores=np.full(w.scores.size, score))), w.about)
    assert is_finite(effects)
    assert np.abs(effects.elsewhere).max() < 0.6


def test_a_lesson_that_separates_scores_perfectly_has_a_finite_effect() -> None:
    w = world(10, scenarios=20)
    effects = pooled_effects(cells(w._replace(scores=w.carried[:, 0].astype(float))), w.about)
    assert is_finite(effects)
    assert effects.value[0] == max(effects.value)
    assert 1.0 < effects.elsewhere[0] < 20.0


def test_one_scenario_is_enough_to_stay_finite() -> None:
    w = world(11, scenarios=1, each=8)
    assert is_finite(found(w))


def test_lessons_never_carried_or_always_carried_are_not_tried() -> None:
    w = world(12)
    carried = w.carried.copy()
    carried[:, 0], carried[:, 1] = False, True
    effects = pooled_effects(cells(w._replace(carried=carried)), w.about)
    assert is_finite(effects)
    assert effects.tried.tolist() == [False, False] + [True] * 10
    assert effects.on_topic[0] == pytest.approx(effects.prior.on_topic.mean, abs=1e-6)


def test_lessons_always_carried_together_share_what_they_do() -> None:
    w = world(13)
    about, carried = w.about.copy(), w.carried.copy()
    about[:, 1], carried[:, 1] = about[:, 0], carried[:, 0]
    effects = pooled_effects(cells(w._replace(carried=carried)), about)
    assert is_finite(effects)
    assert effects.on_topic[0] == pytest.approx(effects.on_topic[1], abs=1e-6)
    assert effects.value[0] == pytest.approx(effects.value[1], abs=1e-6)


def test_without_rollouts_or_lessons_there_is_nothing_to_estimate() -> None:
    nothing = pooled_effects(
        cells_of(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros((0, 3), bool)), np.ones((2, 3), bool)
    )
    assert is_finite(nothing)
    assert not nothing.estimable
    assert nothing.prior.on_topic.mean == pytest.approx(EffectPrior().on_topic.mean)
    w = world(14)
    empty = pooled_effects(cells(w._replace(carried=w.carried[:, :0])), w.about[:, :0])
    assert empty.value.size == 0
    assert not empty.estimable


def test_the_value_counts_only_where_prompts_would_carry_the_lesson() -> None:
    w = world(15)
    stands = np.ones_like(w.about)
    stands[:, 0] = False
    effects = pooled_effects(cells(w), w.about, stands_SL=stands)
    assert effects.value[0] == 0.0
    assert (effects.value[1:] != 0.0).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_cross_fitted_gain_is_that_of_the_lessons_chosen_within_its_error(seed: int) -> None:
    w = world(seed, on=[1.5] * 6 + [-1.5] * 6, elsewhere=[0.0] * 12)
    gain, sd = cross_fitted(cells(w), w.about, parts(w))
    assert gain == pytest.approx(gain_of(w, np.arange(12) < 6), abs=2 * sd)
    assert 0.04 < sd < 0.07


def test_only_lessons_that_are_in_question_count_as_gain() -> None:
    w = world(18)
    nobody = np.zeros(12, dtype=bool)
    assert cross_fitted(cells(w), w.about, parts(w), among_L=nobody) == (0.0, 0.0)


def test_scenarios_have_no_say_in_the_choice_that_they_measure() -> None:
    w = world(22, scenarios=40)
    parts_S = np.where(np.arange(40) < 30, 0, -1)
    helps = parts_S[w.scenarios] == 0  # and harms where it is chosen
    w = w._replace(scores=(w.carried[:, 0] == helps).astype(float))
    assert chosen(found(w))[0]
    assert cross_fitted(cells(w), w.about, parts_S, among_L=np.arange(12) == 0) == (0.0, 0.0)


def test_scenarios_that_only_choose_measure_nothing() -> None:
    w = world(21)
    nowhere = np.full(len(w.about), -1)
    assert cross_fitted(cells(w), w.about, nowhere) == (0.0, 0.0)


def test_the_cross_fitted_gain_of_degenerate_rollouts_is_finite() -> None:
    w = world(19, scenarios=2, each=3)
    for part in (parts(w), np.ones(len(w.about), dtype=int)):
        assert np.isfinite(cross_fitted(cells(w), w.about, part)).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scores": np.array([2.0])}, "scores must lie in"),
        ({"scenarios": np.array([5])}, "indices below 1"),
        ({"carried": np.zeros(2, bool)}, "rollouts x lessons"),
        ({"carried": np.zeros((1, 3), bool)}, "other lessons"),
        ({"scenarios": np.array([0, 0])}, "differ"),
    ],
)
def test_misuse_is_refused(changed: dict[str, Any], message: str) -> None:
    fields = {
        "scores": np.array([1.0]), "scenarios": np.array([0]), "carried": np.zeros((1, 2), bool),
        "about": np.zeros((1, 2), bool),
    } | changed  # fmt: skip
    with pytest.raises(ValueError, match=message):
        pooled_effects(cells_of(fields["scores"], fields["scenarios"], fields["carried"]), fields["about"])


def test_spread_and_weight_are_plain_numbers() -> None:
    prior = found(world(17)).prior
    for spread in (prior.on_topic, prior.elsewhere):
        assert isinstance(spread, EffectSpread)
        assert all(type(value) is float for value in (spread.mean, spread.sd, spread.weight))
