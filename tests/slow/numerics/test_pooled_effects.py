"""Effects of all lessons at once, over many worlds."""

from itertools import product

import numpy as np
from support.lesson_worlds import cells, found, gain_of, parts, world

from pytest_tfgrpo.numerics.pooled_effects import chosen, cross_fitted


def test_the_best_of_large_effects_is_not_listed_as_too_large() -> None:
    excess, true = [], []
    for seed, share in product(range(10), (0.6, 1.0)):
        rng = np.random.default_rng(seed)
        on = rng.choice([-2.5, 2.5], 24) * rng.uniform(0.5, 1.5, 24)
        w = world(seed, each=20, lessons=24, on=on, elsewhere=[0.0] * 24, share=share)
        effects = found(w)
        best = np.arange(24) == np.argmax(effects.value)
        others = chosen(effects) & ~best
        true.append(gain_of(w, others | best) - gain_of(w, others))
        excess.append(effects.value.max() - true[-1])
    assert abs(np.mean(excess)) < 0.12 * np.mean(true)  # 0.19 if effects counted as equal in all tasks


def test_lessons_that_do_nothing_gain_nothing_where_others_than_those_that_chose_them_measure() -> None:
    honest, flattering = [], []
    for seed in range(25):
        w = world(seed, scenarios=40, on=[0.0] * 12, elsewhere=[0.0] * 12)
        honest.append(cross_fitted(cells(w), w.about, parts(w))[0])
        effects = found(w)
        flattering.append(effects.value[chosen(effects)].sum())
    assert abs(np.mean(honest)) < 0.025
    assert np.mean(flattering) > 0.02


def test_the_cross_fitted_gain_is_that_of_the_lessons_chosen_and_its_error_is_stated() -> None:
    errors, stated = [], []
    for seed in range(25):
        w = world(seed, scenarios=60, on=[1.5] * 6 + [-1.5] * 6, elsewhere=[0.0] * 12)
        gain, sd = cross_fitted(cells(w), w.about, parts(w))
        errors.append(gain - gain_of(w, np.arange(12) < 6))
        stated.append(sd)
    assert -0.03 < np.mean(errors) < 0.015
    assert 0.5 < np.std(errors) / np.mean(stated) < 2.0


def test_more_parts_choose_better_than_two_halves() -> None:
    gains: dict[int, list[float]] = {2: [], 5: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        w = world(seed, scenarios=60, each=4, on=rng.choice([-1.0, 1.0], 12), elsewhere=[0.0] * 12)
        for number, own in gains.items():
            own.append(cross_fitted(cells(w), w.about, parts(w, number))[0])
    assert np.mean(gains[5]) > np.mean(gains[2])


def test_scenarios_apart_are_measured_by_themselves_with_lessons_that_others_chose() -> None:
    gains = []
    for seed in range(8):
        w = world(seed, scenarios=120, on=[1.5, 1.5, 1.5, 0.0, 0.0, 0.0] * 2, elsewhere=[0.0] * 12)
        apart = w.about[:, 3:6].any(axis=1)
        gains.append([cross_fitted(cells(w), w.about, np.where(part, 0, -1))[0] for part in (apart, ~apart)])
    nothing, much = np.mean(gains, axis=0)
    assert abs(nothing) < 0.05
    assert much > 0.1
