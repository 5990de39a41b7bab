"""The watch over a final sweep: what it looks at, when it is settled, and what the gate then says."""

import numpy as np
from support.gate.sequential import ids, tallies, watch

from pytest_tfgrpo.gate.sequential import (
    WatchedBar,
    WatchedReading,
)


def test_few_small_losses_among_hidden_gains_are_no_failure() -> None:
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(200):
        gains = np.where(rng.random(40) < 1 / 11, 1.0, -0.1)  # scenarios like these do not change on average
        reading = WatchedReading(
            dict.fromkeys(ids(40), 0.0), bar=WatchedBar(at=0.05, difference=True), share=1.0
        )
        for id_, gain in zip(ids(40), gains.tolist(), strict=True):
            reading.feed(id_, gain)
        false += reading.finding == "fail"
    assert false <= 5


def test_under_constant_looking_no_difference_is_rarely_taken_for_one() -> None:
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(150):
        before = rng.random(60) < 0.6
        after = rng.random(60) < 0.6
        watched = watch(tallies([float(x) for x in before]))
        watched.feed(tallies([float(x) for x in after]))
        alarms += watched.outcome == "fail"
    assert alarms / 150 < 0.06  # 0.025, and three standard errors of 150 runs


def test_families_that_share_what_they_gain_raise_no_false_alarms() -> None:
    rng = np.random.default_rng(13)
    by_families = by_scenarios = 0
    for _ in range(60):
        gains = np.repeat(rng.choice([-1.0, 0.0, 1.0], 50, p=[0.2, 0.6, 0.2]), 10)
        families = {id_: f"f{n // 10}" for n, id_ in enumerate(ids(500))}
        for known in (families, {}):
            reading = WatchedReading(
                dict.fromkeys(ids(500), 0.0),
                bar=WatchedBar(at=0.05, difference=True),
                share=1.0,
                families=known,
            )
            for id_, gain in zip(ids(500), gains.tolist(), strict=True):
                reading.feed(id_, gain)
            by_families += bool(known) and reading.finding == "fail"
            by_scenarios += not known and reading.finding == "fail"
    assert by_families <= 4
    assert by_scenarios >= 12
