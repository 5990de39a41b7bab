"""Evidence: exposures of many lessons in, what is known of each out."""

from dataclasses import replace

import pytest
from support.builders import make_exposure, make_exposures

from pytest_tfgrpo.core.lessons import Exposure
from pytest_tfgrpo.learning.attribution.effects import (
    UNSEEN,
    LessonEffect,
    _groups,
    lesson_effects,
    shrunken,
)

EFFECTS = {"bad": -0.45, "good": 0.3, "null1": 0.0, "null2": 0.0}


def test_strong_effects_are_told_from_none() -> None:
    found = lesson_effects(make_exposures(EFFECTS))
    assert {key: standing.verdict for key, standing in found.items()} == {
        "bad": "harmful", "good": "helpful", "null1": "unclear", "null2": "unclear",
    }  # fmt: skip
    for key in EFFECTS:
        assert found[key].groups == 400
        assert found[key].scenarios == 100


def test_p_values_are_corrected_for_all_lessons() -> None:
    found = lesson_effects(make_exposures(EFFECTS))
    for standing in found.values():
        assert standing.p is not None
        assert standing.p_adjusted is not None
        assert standing.p_adjusted >= standing.p
    smallest = min(found.values(), key=lambda s: s.p or 0)
    assert smallest.p_adjusted == pytest.approx(4 * (smallest.p or 0))


def test_an_effect_that_is_clear_alone_is_not_claimed_among_many() -> None:
    rows = make_exposures({"weak": -0.15}, seed=1)
    alone = lesson_effects(rows)["weak"]
    assert alone.verdict == "harmful"
    many = {f"null{i}": 0.0 for i in range(40)}
    crowd = [
        replace(row, included=(*row.included, *other.included), left_out=(*row.left_out, *other.left_out))
        for row, other in zip(rows, make_exposures(many, seed=4), strict=True)
    ]
    among = lesson_effects(crowd)["weak"]
    assert among.effect == pytest.approx(alone.effect)
    assert among.verdict == "unclear"


def test_too_few_groups_are_not_yet_estimable() -> None:
    found = lesson_effects(make_exposures({"new": 0.3}, groups=60))["new"]
    assert found.verdict == "not_estimable"
    assert (found.effect, found.ci95, found.p, found.p_adjusted) == (None, None, None, None)
    assert found.included + found.left_out == 60


@pytest.mark.parametrize("rows", [[], [make_exposure(reward=None, included=("a",))]])
def test_without_rewards_nothing_is_known(rows: list[Exposure]) -> None:
    assert lesson_effects(rows, ["a"]) == {"a": replace(UNSEEN)}


def test_errors_are_counted_also_where_no_rollout_has_a_reward() -> None:
    rows = [
        make_exposure(1, reward=None, errors=2, included=("a",)),
        make_exposure(2, errors=1, left_out=("a",)),
        make_exposure(3, errors=1, included=("b",)),
    ]
    assert {key: s.errors for key, s in lesson_effects(rows, ["a", "b", "c"]).items()} == {
        "a": 3,
        "b": 1,
        "c": 0,
    }


def test_an_equal_run_is_no_more_evidence() -> None:
    once = make_exposures(EFFECTS)
    again = [replace(row, run_id="run2") for row in once]
    assert lesson_effects([*once, *again]) == lesson_effects(once)


def test_groups_of_one_draw_are_averaged() -> None:
    once = [replace(row, reward=1.0) for row in make_exposures({"a": 0.0}, groups=200)]
    again = [replace(row, run_id="run2", reward=0.5) for row in once]
    found = lesson_effects([*once, *again])["a"]
    assert found.groups == 200
    assert found.effect == 0


def test_a_run_with_draws_of_its_own_is_more_evidence() -> None:
    once = make_exposures(EFFECTS)
    more = make_exposures(EFFECTS, seed=1, run_id="run2", series="series2")
    found, before = lesson_effects([*once, *more]), lesson_effects(once)
    assert found["good"].groups == 800
    width = [s["good"].ci95[1] - s["good"].ci95[0] for s in (found, before) if s["good"].ci95]
    assert width[0] < 0.8 * width[1]


def test_constant_outcomes_show_nothing() -> None:
    rows = [replace(row, reward=1.0) for row in make_exposures(EFFECTS)]
    assert {s.verdict for s in lesson_effects(rows).values()} == {"unclear"}
    assert {s.effect for s in lesson_effects(rows).values()} == {0.0}


def test_always_in_the_prompt_or_never_is_not_estimable() -> None:
    rows = [make_exposure(n % 50, epoch=1 + n // 50, included=("in",), left_out=("out",)) for n in range(200)]
    assert {s.verdict for s in lesson_effects(rows).values()} == {"not_estimable"}


def test_one_scenario_alone_is_not_estimable() -> None:
    rows = [replace(row, scenario="f" * 64, epoch=n) for n, row in enumerate(make_exposures({"a": -0.4}))]
    assert lesson_effects(rows)["a"].verdict == "not_estimable"


def test_lessons_of_two_domains_do_not_mix() -> None:
    text = make_exposures({"a": 0.0}, groups=200)
    dates = [
        replace(row, domain="dates", scenario=f"date{row.scenario}")
        for row in make_exposures({"b": -0.4}, groups=200, seed=1)
    ]
    assert lesson_effects([*text, *dates])["a"].effect == lesson_effects(text)["a"].effect


def test_order_does_not_matter() -> None:
    rows = make_exposures(EFFECTS)
    backwards = lesson_effects(rows[::-1])
    for key, standing in lesson_effects(rows).items():
        assert backwards[key].effect == pytest.approx(standing.effect)
        assert backwards[key].verdict == standing.verdict


def test_the_covariate_is_what_a_scenario_and_its_domain_came_to_before() -> None:
    rows = [
        make_exposure(1, epoch=1, reward=1.0, included=("a",)),
        make_exposure(2, epoch=1, reward=0.0, included=("a",)),
        make_exposure(3, epoch=1, reward=0.2, included=("b",), domain="dates"),
        make_exposure(1, epoch=2, reward=0.0, included=("a",)),
        make_exposure(2, epoch=2, reward=1.0, left_out=("a",)),
        make_exposure(4, epoch=2, reward=1.0, left_out=("b",), domain="dates"),
        make_exposure(1, epoch=1, reward=1.0, included=("a",), run_id="run2"),
    ]
    found = _groups(reversed(rows))
    known = {
        (row.run_id, row.epoch, int(row.scenario, 16)): x
        for row, x in zip(found.rows, found.x_K, strict=True)
    }
    assert known == {
        ("run1", 1, 1): 0.5,
        ("run1", 1, 2): 0.5,
        ("run1", 1, 3): 0.5,
        ("run1", 2, 1): (0.5 + 1.0) / 2,
        ("run1", 2, 2): (0.5 + 0.0) / 2,
        ("run1", 2, 4): 0.2,
        ("run2", 1, 1): (0.5 + 1.0 + 0.0) / 3,
    }


def test_groups_are_compared_within_their_domain_and_chance() -> None:
    kinds = [("text", 0.8), ("dates", 0.8), ("text", 0.5), ("text", 0.8)]
    rows = [make_exposure(n, domain=d, propensity=p) for n, (d, p) in enumerate(kinds)]
    found = _groups(rows)
    assert found.stratum_K.tolist() == [0, 1, 2, 0]
    assert found.propensity_K.tolist() == [0.8, 0.8, 0.5, 0.8]


def test_effects_are_drawn_towards_their_mean_as_far_as_they_are_uncertain() -> None:
    def known(effect: float, half: float) -> LessonEffect:
        return replace(UNSEEN, effect=effect, ci95=(effect - half, effect + half))

    found = shrunken({"a": known(0.3, 0.05), "b": known(0.3, 0.4), "c": known(-0.1, 0.05), "d": UNSEEN})
    assert found.keys() == {"a", "b", "c"}
    assert 0.29 < found["a"] < 0.3
    assert 0.1 < found["b"] < 0.25
    assert -0.1 < found["c"] < -0.09
    noise = shrunken({str(n): known(0.01 * n, 0.2) for n in range(5)})
    assert max(noise.values()) - min(noise.values()) < 1e-9  # no more spread than chance gives
    assert shrunken({"one": known(0.2, 0.1)}) == {"one": pytest.approx(0.2)}
    assert shrunken({"none": UNSEEN}) == {}
