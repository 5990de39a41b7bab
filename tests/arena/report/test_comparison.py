"""The sides of an arena compared: gains, pairs, equal prompts, errors, too little data."""

import random
from dataclasses import replace
from typing import Any

import pytest
from support.arena.results import arena_result, simulated

from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.result import Side
from pytest_tfgrpo.gate.result import MIN_SHARE
from pytest_tfgrpo.gate.sample_size import settling_advice
from pytest_tfgrpo.metrics.comparison import Tally, compare
from pytest_tfgrpo.numerics.stats import holm, two_sided_p


def side(name: str, solved: float, scenarios: int = 12, **values: object) -> Side:
    """Return a side that solves each scenario equally often in four rollouts."""
    right = round(4 * solved)
    scores = {f"s{n}": (1.0,) * right + (0.0,) * (4 - right) for n in range(scenarios)}
    return replace(Side(name=name, scores=scores), **values)


@pytest.fixture(scope="module")
def three() -> list[Side]:
    return simulated({"none": 0.0, "good": 0.3, "twin": 0.3}, random.Random(3))


def test_each_pair_is_the_comparison_by_family_with_holms_p(three: list[Side]) -> None:
    result = arena_result(three)
    value = compare_sides(result)
    tallies = {
        one.name: {
            id_: Tally(stamp="", n=5, sum=sum(s), sum_sq=sum(s), errors=0, family=result.families[id_])
            for id_, s in one.scores.items()
        }
        for one in three
    }
    found = [compare(tallies[p["before"]], tallies[p["after"]]) for p in value["pairs"]]
    p_values = [two_sided_p(c.differences_K, c.families_K) for c in found]
    assert [(p["before"], p["after"]) for p in value["pairs"]] == [
        ("none", "good"),
        ("none", "twin"),
        ("good", "twin"),
    ]
    assert [p["difference"]["ci95"] for p in value["pairs"]] == [c.difference.ci95 for c in found]
    assert [p["difference"]["p_adjusted"] for p in value["pairs"]] == holm(p_values).tolist()
    assert [p["claim"] for p in value["pairs"]] == ["better", "better", None]
    assert value["sides"][1]["gain"]["difference"] == value["pairs"][0]["difference"]["difference"]
    assert (value["over"], value["scenarios"], value["families"]) == ("none", 60, 20)


def test_gains_are_over_none_wherever_it_stands_and_else_over_the_first_side(three: list[Side]) -> None:
    none, good, twin = three
    assert compare_sides(arena_result([good, none]))["pairs"][0]["before"] == "none"
    value = compare_sides(arena_result([good, twin]))
    assert (value["over"], value["sides"][0]["gain"]) == ("good", None)


def test_equal_prompts_are_no_test_and_take_no_share_of_the_level(three: list[Side]) -> None:
    none, good, _ = three
    idle = replace(none, name="idle", same_as="none")
    value = compare_sides(arena_result([none, good, idle]))
    alike = value["pairs"][1]
    assert value["comparisons"] == 2
    assert (alike["alike"], alike["claim"], alike["difference"]["p"]) == (True, None, None)
    assert alike["difference"]["ci95"] is None
    assert compare_sides(arena_result([none, good]))["pairs"][0]["difference"]["p"] < 0.025


def test_a_difference_that_errors_explain_is_not_claimed() -> None:
    none, good = side("none", 0.5), side("good", 0.75)
    failing = dict.fromkeys(none.scores, (1.0, None, None, None))
    value = compare_sides(arena_result([none, replace(good, scores=failing)]))
    pair = value["pairs"][0]
    assert pair["difference"]["difference"] == 0.5
    assert pair["errors_as_zero"]["difference"] == -0.25
    assert pair["claim"] is None
    assert value["sides"][1]["errors"] == 36


@pytest.mark.parametrize(
    ("scenarios", "obstacle"),
    [(9, "only 9 eval scenarios; a claim needs 10 or more"), (10, None)],
)
def test_ten_scenarios_are_the_least_for_a_claim(scenarios: int, obstacle: str | None) -> None:
    value = compare_sides(arena_result([side("none", 0.0, scenarios), side("good", 1.0, scenarios)]))
    pair = value["pairs"][0]
    assert pair["obstacles"] == ([obstacle] if obstacle else [])
    assert pair["claim"] == (None if obstacle else "better")


def test_a_side_without_most_of_the_scenarios_is_not_claimed() -> None:
    value = compare_sides(arena_result([side("none", 0.0, 40), side("good", 1.0, 20)]))
    assert value["pairs"][0]["obstacles"] == ["only 20 of 40 scenarios are scored for both"]


def test_a_side_without_scores_stands_in_the_table_with_its_note() -> None:
    value = compare_sides(
        arena_result([side("none", 0.0), Side(name="placebo", note="placebo not possible")])
    )
    assert value["pairs"] == []
    assert (value["sides"][1]["note"], value["sides"][1]["mean"]) == ("placebo not possible", None)


def test_sides_are_equal_within_the_margin_only_if_the_whole_interval_is() -> None:
    rng = random.Random(0)
    sides = simulated({"none": 0.0, "idle": 0.0}, rng, scenarios=90, rollouts=20)
    wide = compare_sides(arena_result(sides, margin=0.2))["pairs"][0]
    narrow = compare_sides(arena_result(sides, margin=0.001))["pairs"][0]
    assert (wide["equal_within"], wide["settling"]) == (0.2, None)
    assert narrow["equal_within"] is None
    assert "eval scenarios" in narrow["settling"]


def test_errors_of_the_side_before_count_as_those_of_the_other_do() -> None:
    none, good = side("none", 0.5), side("good", 0.75)
    failing = replace(none, scores=dict.fromkeys(none.scores, (1.0, None, None, None)))
    value = compare_sides(arena_result([failing, good]))
    (pair,) = value["pairs"]
    assert (pair["difference"]["difference"], pair["errors_as_zero"]["difference"]) == (-0.25, 0.5)
    assert pair["claim"] is None
    assert compare_sides(arena_result([none, good]))["pairs"][0]["errors_as_zero"] is None


def test_two_sides_that_are_both_like_a_third_are_alike(three: list[Side]) -> None:
    none, good, twin = three
    twins = [replace(twin, name=name, same_as="good") for name in ("twin", "other")]
    value = compare_sides(arena_result([none, good, *twins]))
    alike = [(pair["before"], pair["after"]) for pair in value["pairs"] if pair["alike"]]
    assert alike == [("good", "twin"), ("good", "other"), ("twin", "other")]


def test_more_comparisons_make_each_of_them_ask_for_more() -> None:
    sides = simulated({"none": 0, "gepa": 0.04, "llm": 0.0}, random.Random(9), scenarios=60, rollouts=5)

    def first(count: int, margin: float = 0.001) -> dict[str, Any]:
        return dict(compare_sides(arena_result(sides[:count], margin=margin))["pairs"][0])

    assert first(2)["difference"]["detectable"] < first(3)["difference"]["detectable"]
    margin = max(map(abs, first(2)["difference"]["ci95"]))
    assert first(2, margin)["equal_within"] == margin
    assert first(3, margin)["equal_within"] is None
    needed = [int(first(count)["settling"].split("about ")[1].split()[0]) for count in (2, 3)]
    assert needed[0] < needed[1]


def test_what_would_settle_a_gain_is_what_would_settle_as_large_a_loss() -> None:
    none, gepa = simulated({"none": 0, "gepa": 0.06}, random.Random(2))
    (forth,) = compare_sides(arena_result([none, gepa]))["pairs"]
    turned = [replace(none, scores=gepa.scores), replace(gepa, scores=none.scores)]
    (back,) = compare_sides(arena_result(turned))["pairs"]
    assert forth["difference"]["difference"] == -back["difference"]["difference"] > 0
    assert forth["settling"] == back["settling"]
    assert "eval scenarios" in forth["settling"]


def test_the_value_has_each_fact_of_the_arena_and_of_its_sides() -> None:
    good = side(
        "good",
        1.0,
        14,
        rollouts=30,
        teacher_calls=7,
        teacher_limited=True,
        usd=0.25,
        wall_s=2.5,
        files=("a", "b"),
    )
    result = arena_result(
        [side("none", 0.0), good],
        families={},
        usd=None,
        seed=5,
        budget_rollouts=40,
        budget_teacher_calls=8,
        sweep_rollouts=104,
        earlier=3,
    )
    value = compare_sides(result)
    for name in (
        *("arena_id", "task_id", "actor", "teacher", "started_at", "seed", "suite_hash", "budget_rollouts"),
        *("budget_teacher_calls", "sweep_rollouts", "usd", "earlier"),
    ):
        assert value[name] == getattr(result, name), name
    assert (value["scenarios"], value["families"]) == (14, 14)
    told = value["sides"][1]
    for name in ("name", "rollouts", "teacher_calls", "teacher_limited", "usd", "tokens_added", "wall_s"):
        assert told[name] == getattr(good, name), name
    assert told["files"] == ["a", "b"]


def test_the_margin_is_said_of_the_gain_of_a_side_that_is_equal_within_it() -> None:
    sides = simulated({"none": 0, "gepa": 0}, random.Random(1), scenarios=90, rollouts=20)
    value = compare_sides(arena_result(sides, margin=0.2))
    assert value["sides"][1]["gain"]["equal_within"] == 0.2


def test_a_share_of_scenarios_that_is_just_enough_is_enough() -> None:
    count = round(20 / MIN_SHARE)
    assert count * MIN_SHARE == 20
    for sides in ((count, 20), (20, count)):
        none, good = (side(name, 0.5, n) for name, n in zip(("none", "good"), sides, strict=True))
        assert compare_sides(arena_result([none, good]))["pairs"][0]["obstacles"] == []
    short = compare_sides(arena_result([side("none", 0.5, 19), side("good", 0.5, count)]))
    assert short["pairs"][0]["obstacles"] == [f"only 19 of {count} scenarios are scored for both"]


def test_what_would_settle_a_pair_rests_on_the_spread_of_scores_between_0_and_1() -> None:
    none, gepa = (
        replace(one, scores={id_: tuple((s or 0.0) / 2 for s in row) for id_, row in one.scores.items()})
        for one in simulated({"none": 0, "gepa": 0.06}, random.Random(2))
    )
    result = arena_result([none, gepa])
    (pair,) = compare_sides(result)["pairs"]
    old, new = (
        {
            id_: Tally(
                stamp="",
                n=5,
                sum=sum(row),
                sum_sq=sum(s * s for s in row),
                errors=0,
                family=result.families[id_],
            )
            for id_, row in one.scores.items()
        }
        for one in (gepa, none)
    )
    assert pair["difference"]["difference"] > 0
    assert pair["settling"] == settling_advice(compare(old, new), old, new, 0.05, level=0.95)[0]
