"""Advice on an open comparison, in numbers a reader can act on."""

import re
from dataclasses import replace

import numpy as np
import pytest

from pytest_tfgrpo.core.settings import TABLE
from pytest_tfgrpo.gate import sample_size
from pytest_tfgrpo.gate.sample_size import red_builds, settling_advice
from pytest_tfgrpo.metrics.comparison import Comparison, Tally, compare
from pytest_tfgrpo.numerics.planning import settling_n


def sweep(seed: int, chances, rollouts: int) -> dict[str, Tally]:
    passed = np.random.default_rng(seed).binomial(rollouts, chances)
    return {
        f"s{i}": Tally(stamp="x", n=rollouts, sum=float(c), sum_sq=float(c), errors=0, domain="text")
        for i, c in enumerate(passed)
    }


def advice(before: dict[str, Tally], after: dict[str, Tally], **options):
    compared = compare(before, after, errors_as_zero=options.get("errors_as_zero", False))
    return settling_advice(compared, before, after, 0.05, **options)


def test_noise_is_settled_by_rollouts_too() -> None:
    half = np.full(120, 0.5)
    text, found = advice(sweep(1, half, 5), sweep(2, half, 5))
    assert found["settled_by"] > 120
    assert found["settled_rollouts"] > 5
    assert text.startswith(f"about {found['settled_by']} eval scenarios x 5 rollouts or ")
    assert text.endswith(
        f"{found['settled_rollouts']} rollouts of each of these 120 would be enough in 4 of 5 runs"
    )
    assert found["spread"]["between"] < 0.2 * found["spread"]["within"]


def test_scenarios_that_differ_are_settled_by_more_scenarios_only() -> None:
    chances = np.tile([0.0, 1.0], 20)
    text, found = advice(sweep(1, chances, 5), sweep(2, np.append(chances[1:34], np.full(7, 0.5)), 5))
    assert found["settled_rollouts"] is None
    assert text.endswith("would be enough in 4 of 5 runs; more rollouts alone would not")


def test_single_rollouts_are_advised_in_scenarios() -> None:
    before, after = sweep(1, np.full(40, 0.8), 1), sweep(2, np.full(40, 0.8), 1)
    text, found = advice(before, after)
    assert text == f"about {found['settled_by']} eval scenarios would be enough in 4 of 5 runs"
    assert "settled_options" not in found


def test_errors_that_count_as_0_are_rollouts_of_0() -> None:
    before = sweep(1, np.full(40, 0.5), 4)
    after = {
        id_: Tally(stamp="x", n=3, sum=float(i % 3), sum_sq=float(i % 3), errors=1, domain="text")
        for i, id_ in enumerate(before)
    }
    text, found = advice(before, after, errors_as_zero=True)
    assert f"{found['settled_by']} eval scenarios x 4 rollouts" in text


def test_nothing_settles_an_edge() -> None:
    before = sweep(1, np.full(40, 0.5), 4)
    compared = compare(before, before)
    assert settling_advice(compared, before, before, 0.0) == (
        "no number of scenarios would be enough",
        {"settled_by": None},
    )


def in_families(rows: dict[str, Tally], size: int) -> dict[str, Tally]:
    return {id_: replace(row, family=f"f{n // size}") for n, (id_, row) in enumerate(rows.items())}


def test_families_that_are_lost_whole_are_settled_by_more_families() -> None:
    lost = np.repeat(np.arange(24) % 6 == 0, 5).astype(float) * 0.3
    gained = np.repeat(np.arange(24) % 6 == 3, 5).astype(float) * 0.3
    before = sweep(1, np.full(120, 0.7) - gained, 20)
    after = in_families(sweep(2, np.full(120, 0.7) - lost, 20), 5)
    plain = {id_: replace(row, family=None) for id_, row in after.items()}
    text, found = advice(before, after)
    by_scenarios = advice(before, plain)[1]
    assert found["settled_by"] > 1.5 * by_scenarios.get("settled_by", 0)
    families = -(-found["settled_by"] // 5)
    assert found["settled_families"] == families > 24
    assert text.startswith(f"about {found['settled_by']} eval scenarios in {families} families x 20 rollouts")
    assert "settled_families" not in by_scenarios


def test_of_too_few_families_more_scenarios_settle_what_is_about_just_these() -> None:
    before, after = sweep(1, np.full(40, 0.5), 4), sweep(2, np.full(40, 0.5), 4)
    text, found = advice(before, in_families(after, 10))
    assert found == advice(before, after)[1]
    assert f"{found['settled_by']} eval scenarios of these 4 families x 4 rollouts" in text
    assert " eval scenarios of this family x " in advice(before, in_families(after, 40))[0]


def test_so_many_families_more_of_the_same_kind_do_settle_it() -> None:
    lost = np.repeat(np.tile([0.5, 0.0, -0.5, 0.0], 12), 5)

    def repeated(times: int) -> Comparison:
        after = np.tile(0.5 + lost, times)
        rows = [
            {f"s{n}": Tally(stamp="x", n=4, sum=4 * x, sum_sq=4 * x, errors=0) for n, x in enumerate(values)}
            for values in (np.full(after.size, 0.5), after)
        ]
        return compare(rows[0], in_families(rows[1], 5))

    needed = settling_n(repeated(1).difference, 0.05)
    assert needed is not None
    times = round(needed / 240)
    assert times >= 3
    open_one, settled = repeated(times // 4).difference, repeated(times + 1).difference
    assert open_one.low is not None
    assert settled.low is not None
    assert open_one.low < -0.05 < settled.low


def red(rows: dict[str, Tally], **options) -> str:
    return red_builds(rows, {row.name: row.default for row in TABLE} | options)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    share = sample_size.red_share
    monkeypatch.setattr(sample_size, "red_share", lambda *given, draws=0: share(*given, draws=40))


@pytest.mark.usefixtures("few_draws")
def test_a_saved_baseline_says_how_often_the_gate_will_be_red_and_what_to_do() -> None:
    difficulties = np.random.default_rng(5).uniform(0.2, 0.8, 40)
    once, thrice = red(sweep(1, difficulties, 3)), red(sweep(1, difficulties, 25))
    assert re.fullmatch(
        r"without a change the gate will be red in about \d+ of 100 builds; after [249] more runs like this "
        r"with other seeds save it again: then in (about [234]|at most 1)",
        once,
    )
    assert re.fullmatch(
        r"without a change the gate will be red in (about [234]|at most 1) of 100 builds", thrice
    )


@pytest.mark.usefixtures("few_draws")
def test_what_no_sweep_mends_takes_scenarios_or_another_alarm() -> None:
    assert red(sweep(1, np.full(12, 1.0), 5)).endswith("; with about 36 eval scenarios in at most 1")
    assert red(sweep(1, np.full(5, 0.5), 5)).endswith(
        "; add eval scenarios, or set gate_alarm to a larger drop than 0.15"
    )
    assert red(sweep(1, np.full(5, 0.5), 5), gate_strict=True).endswith(", or unset gate_strict")


def test_without_scores_nothing_is_said_of_red_builds() -> None:
    errors = {"s": Tally(stamp="x", n=0, sum=0.0, sum_sq=0.0, errors=3)}
    assert red(errors) == ""


class Shares:
    """Answers with shares of red builds in turn, the last one without end, and keeps what was simulated."""

    def __init__(self, *shares: float) -> None:
        self.shares, self.seen = list(shares), []

    def __call__(self, *given: object, draws: int) -> float:
        self.seen.append((*given, draws))
        return self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]


@pytest.mark.parametrize(
    ("shares", "sweeps", "told", "simulated"),
    [
        ([0.0149], 1, "at most 1 of 100 builds", [(0, 1)]),
        ([0.015], 1, "about 2 of 100 builds", [(0, 1)]),
        ([0.04], 1, "about 4 of 100 builds", [(0, 1)]),
        (
            [0.5, 0.04],
            4,
            "after one more run like this with another seed save it again: then in about 4",
            [(0, 1), (1 / 4, 1)],
        ),
        (
            [0.5, 0.041, 0.01],
            2,
            "after 2 more runs like this with other seeds save it again: then in at most 1",
            [(0, 1), (1 / 2, 1), (1, 1)],
        ),
        (
            [0.5] * 6 + [0.03],
            1,
            "with about 9 eval scenarios in about 3",
            [(0, 1), (1, 1), (2, 1), (4, 1), (9, 1), (0, 2), (0, 3)],
        ),
        (
            [0.5],
            1,
            "add eval scenarios, or set gate_alarm to a larger drop than 0.15",
            [(0, 1), (1, 1), (2, 1), (4, 1), (9, 1), (0, 2), (0, 3), (0, 4), (0, 6)],
        ),
    ],
)
def test_the_cheapest_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch,
    shares: list[float],
    sweeps: int,
    told: str,
    simulated: list[tuple[float, int]],
) -> None:
    made = Shares(*shares)
    monkeypatch.setattr(sample_size, "red_share", made)
    settings = {row.name: row.default for row in TABLE}
    assert red_builds(sweep(1, np.full(3, 0.5), 2), settings, sweeps=sweeps).endswith(told)
    assert [(stored.more, stored.times) for stored, *_ in made.seen] == simulated
    assert [seen[-1] for seen in made.seen] == [sample_size.DRAWS] + [sample_size.FEWER_DRAWS] * (
        len(simulated) - 1
    )


def test_what_is_simulated_is_what_the_settings_and_the_baseline_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Shares(0.0)
    monkeypatch.setattr(sample_size, "red_share", made)
    settings = {row.name: row.default for row in TABLE}
    rows = {"a": Tally(stamp="x", n=0, sum=0.0, sum_sq=0.0, errors=3)} | sweep(1, np.full(2, 0.5), 2)
    rows["s1"] = replace(rows["s1"], family="f")
    for changes in ({}, {"eval_rollouts": 5}, {"gate_extend": 0}, {"gate_sequential": True}):
        red_builds(rows, settings | changes)
    others = {"gate_margin": 0.2, "gate_alarm": 0.3, "gate_strict": True}
    red_builds(rows, settings | others, drift=0.125)
    assert [[(look.rollouts, round(look.level, 6)) for look in seen[1]] for seen in made.seen[:4]] == [
        [(3, 0.02), (6, 0.0025), (12, 0.0025)],
        [(5, 0.02), (10, 0.0025), (20, 0.0025)],
        [(1, 0.025)],
        [(3, 0.025)],
    ]
    stored, _, limits, _ = made.seen[0]
    assert (list(stored.rows), list(stored.families_K)) == ([rows["s0"], rows["s1"]], ["scenario s0", "f"])
    assert limits == (0.05, 0.15, 0.0, False)
    assert made.seen[-1][2] == (0.2, 0.3, 0.125, True)
