import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.errors import RewarderError
from pytest_tfgrpo.core.records import CheckResult, Failure, Rollout, Score
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.scoring.rewarders.scoring import batch_of, group_of, score

SCENARIO = make_scenario()
SCENARIOS = {SCENARIO.id: SCENARIO}


@dataclass
class Extra:
    values: Any
    name: str = "brevity"
    weight: float = 1.0

    def __call__(self, batch: Any) -> Any:
        if isinstance(self.values, Exception):
            raise self.values
        return self.values(batch) if callable(self.values) else self.values


def group(*credited: float | None, **changes: Any) -> list[Rollout]:
    return [make_rollout(i, credit, **changes) for i, credit in enumerate(credited)]


def rewards(scores: tuple[Score, ...]) -> list[float | None]:
    return [s.reward for s in scores]


def test_gt_score_is_the_weighted_share_of_planned_checks() -> None:
    checks = (Check(kind="exact", weight=3), Check(kind="file"))
    scenario = make_scenario(checks=checks)
    results = (CheckResult(kind="exact", weight=3, credit=1), CheckResult(kind="file", weight=1, credit=0.5))
    (found,) = score([make_rollout(checks=results)], {scenario.id: scenario})
    assert found.gt_score == 3.5 / 4


def test_a_check_not_reached_counts_as_failed() -> None:
    scenario = make_scenario(checks=(Check(kind="exact"), Check(kind="file", weight=3)))
    reached = (CheckResult(kind="exact", weight=1, credit=1),)
    (found,) = score([make_rollout(checks=reached)], {scenario.id: scenario})
    assert found.gt_score == 0.25


def test_all_checks_passed_is_exactly_1() -> None:
    weights = [0.1, 0.2, 0.3, 0.7]
    scenario = make_scenario(checks=tuple(Check(kind="exact", weight=w) for w in weights))
    results = tuple(CheckResult(kind="exact", weight=w, credit=1) for w in weights)
    assert score([make_rollout(checks=results)], {scenario.id: scenario})[0].gt_score == 1.0


def test_a_marked_function_scores_by_its_own_result() -> None:
    scenario = make_scenario(checks=(), checker="tests/test_x.py::test_x")
    judged = make_rollout(0, checks=(CheckResult(kind="test", weight=1, credit=0.4),))
    waiting = make_rollout(1, checks=())
    assert [s.gt_score for s in score([judged, waiting], {scenario.id: scenario})] == [0.4, 0.0]


def test_the_agents_failure_scores_0_and_our_error_scores_nothing() -> None:
    failed = make_rollout(0, status="failed", failure=Failure(code="timeout", message="slow"))
    solved, broken = make_rollout(1), make_rollout(2, None)
    scores = score([failed, solved, broken], SCENARIOS)
    assert [(s.gt_score, s.reward, s.relative_rank, s.advantage) for s in scores] == [
        (0.0, 0.0, 0.0, -1.0),
        (1.0, 1.0, 1.0, 1.0),
        (None, None, None, None),
    ]


def test_scoring_groups_together_is_scoring_them_apart() -> None:
    one = group(1, 0, 0.5, group_id="a")
    two = group(1, None, 1, group_id="b")
    assert score([*one, *two], SCENARIOS) == score(one, SCENARIOS) + score(two, SCENARIOS)


def test_without_spread_ranks_are_even_and_advantages_0() -> None:
    assert [(s.relative_rank, s.advantage) for s in score(group(1, 1, 1), SCENARIOS)] == [(0.5, 0.0)] * 3


def test_an_advantage_of_0_without_spread_has_its_reason() -> None:
    flat = [make_rollout(0, 0.5), make_rollout(1, 0.5), make_rollout(2, None)]
    spread = [make_rollout(i, credit, group_id="other") for i, credit in enumerate((0.0, 0.5, 1.0))]
    scores = score([*flat, *spread], {"count-words": make_scenario()})
    assert [s.advantage for s in scores] == pytest.approx([0, 0, None, -1.2247, 0, 1.2247], abs=1e-4)
    assert [s.advantage_reason for s in scores] == ["zero_variance", "zero_variance", "", "", "", ""]


def test_a_lone_rollout_has_no_rank() -> None:
    assert score(group(1), SCENARIOS)[0].relative_rank is None


def test_no_rollouts_give_no_scores() -> None:
    assert score([], {}) == ()


def test_an_extra_rewarder_joins_the_reward_by_weight() -> None:
    scores = score(group(1, 1, 0), SCENARIOS, [Extra([0.0, 1.0, 1.0], weight=0.5)])
    assert rewards(scores) == [pytest.approx(2 / 3), 1.0, pytest.approx(1 / 3)]
    assert [s.relative_rank for s in scores] == [0.5, 1.0, 0.0]
    assert [s.extra for s in scores] == [{"brevity": 0.0}, {"brevity": 1.0}, {"brevity": 1.0}]


def test_an_extra_rewarder_of_weight_0_only_reports() -> None:
    scores = score(group(1, 0), SCENARIOS, [Extra([0.1, 0.9], weight=0)])
    assert rewards(scores) == [1.0, 0.0]
    assert scores[1].extra == {"brevity": 0.9}


def test_where_an_extra_rewarder_has_no_score_the_others_stand_alone() -> None:
    scores = score(group(1, 0.5), SCENARIOS, [Extra([math.nan, 1.0])])
    assert rewards(scores) == [1.0, 0.75]
    assert scores[0].extra == {"brevity": None}


def test_what_an_extra_rewarder_says_of_an_error_is_ignored() -> None:
    scores = score(group(None, 1), SCENARIOS, [Extra([7.0, 1.0])])
    assert scores[0] == Score(
        rollout_id=scores[0].rollout_id,
        gt_score=None,
        reward=None,
        relative_rank=None,
        advantage=None,
        extra={"brevity": None},
    )


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        (Extra([0.5]), r"'brevity' returned scores of shape \(1,\).*one per rollout"),
        (Extra([[0.5, 0.5]]), "shape"),
        (Extra([0.5, 1.2]), r"'brevity' returned 1.2 for rollout 'run1.e1.count-words.r1'"),
        (Extra([-0.1, 1.0]), "returned -0.1"),
        (Extra([math.inf, 1.0]), "returned inf"),
        (Extra(["a", "b"]), "'brevity' raised ValueError"),
        (Extra(None), "shape"),
        (Extra(KeyError("x")), "'brevity' raised KeyError: 'x'; it must return 2 results"),
        (Extra([1.5, 1.2]), r"returned 1.5 for rollout 'run1.e1.count-words.r0'"),
    ],
)
def test_a_rewarder_that_breaks_its_contract_is_named(extra: Extra, complaint: str) -> None:
    with pytest.raises(RewarderError, match=complaint):
        score(group(1, 0), SCENARIOS, [extra])


def test_an_extra_rewarder_cannot_change_the_batch_it_keeps() -> None:
    kept = np.array([0.5, 0.5])
    score(group(None, 1), SCENARIOS, [Extra(kept)])
    assert kept.tolist() == [0.5, 0.5]


def test_a_batch_tells_groups_and_errors_apart() -> None:
    batch = batch_of([*group(1, None, group_id="a"), *group(0, group_id="b")], SCENARIOS)
    assert batch.group_N.tolist() == [0, 0, 1]
    assert batch.scored_N.tolist() == [True, False, True]
    assert np.isnan(batch.gt_N).tolist() == [False, True, False]


def test_scattered_groups_are_refused() -> None:
    scattered = [make_rollout(0, group_id="a"), make_rollout(0, group_id="b"), make_rollout(1, group_id="a")]
    with pytest.raises(ValueError, match="group 'a' are not adjacent"):
        batch_of(scattered, SCENARIOS)


@pytest.mark.parametrize(
    ("credited", "informative"), [([1, 0], True), ([1, 1], False), ([None, 1], False), ([None], False)]
)
def test_a_group_is_informative_when_its_rewards_differ(
    credited: list[float | None], informative: bool
) -> None:
    rollouts = group(*credited)
    found = group_of(rollouts, score(rollouts, SCENARIOS), SCENARIO)
    assert found.informative is informative
    assert (found.group_id, found.domain, found.rollouts) == (rollouts[0].group_id, "text", tuple(rollouts))


@given(st.lists(st.lists(st.sampled_from([0.0, 0.3, 1.0, None]), min_size=1, max_size=5), max_size=6))
def test_scores_lie_in_their_ranges_and_errors_have_none(cohort: list[list[float | None]]) -> None:
    rollouts = [r for k, credited in enumerate(cohort) for r in group(*credited, group_id=f"g{k}")]
    for rollout, found in zip(rollouts, score(rollouts, SCENARIOS), strict=True):
        assert found.rollout_id == rollout.rollout_id
        assert (found.gt_score is None) == (rollout.status == "error")
        assert found.relative_rank is None or 0 <= found.relative_rank <= 1


@given(st.sampled_from([0.0, 0.3, 1.0, None]))
def test_a_lone_rollout_is_scored_as_one_among_other_groups(credit: float | None) -> None:
    (own,), other = group(credit, group_id="a"), group(1, 0, group_id="b")
    assert score([own], SCENARIOS) == score([own, *other], SCENARIOS)[:1]
