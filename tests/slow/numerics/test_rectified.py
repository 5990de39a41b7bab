"""A judge's gain corrected by labels, over many samples."""

import numpy as np
import pytest

from pytest_tfgrpo.numerics.rectified import rectify


def test_a_sample_is_right_on_average_whatever_the_judge_says() -> None:
    rng = np.random.default_rng(5)
    people = rng.choice([-1.0, 0.0, 1.0], 60, p=[0.1, 0.6, 0.3])
    judge = np.where(rng.random(60) < 0.7, 1.0, people)
    gains = []
    for _ in range(300):
        places = rng.permutation(60)[:15]
        found = rectify(list(judge), list(range(60)), places.tolist(), list(people[places] - judge[places]))
        gains.append(judge.mean() + found.correction.mean)
    assert np.mean(gains) == pytest.approx(people.mean(), abs=4 * np.std(gains) / 300**0.5)
    assert abs(judge.mean() - people.mean()) > 0.3
