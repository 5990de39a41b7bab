"""The judge as rewarder beside ground truth, and as ground truth itself."""

from typing import Any

from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.records import Failure, JudgeResult, Rollout
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.scoring.rewarders.judge import JudgeRewarder
from pytest_tfgrpo.scoring.rewarders.scoring import score

RUBRIC = (Criterion(text="It greets."),)
KNOWN = make_scenario(rubric=RUBRIC)
JUDGED = make_scenario(checks=(), rubric=RUBRIC, truth="judge")


def rollout(index: int, credit: float | None, verdict: float | None, **changes: Any) -> Rollout:
    return make_rollout(index, credit, opinion=JudgeResult(score=verdict, reason="r"), **changes)


def test_a_judge_without_weight_only_reports():
    one, two = score([rollout(0, 1, 0.2), rollout(1, 0, 0.9)], {KNOWN.id: KNOWN}, [JudgeRewarder(0.0)])
    assert (one.reward, two.reward) == (1, 0)
    assert (one.extra, two.extra) == ({"judge": 0.2}, {"judge": 0.9})


def test_a_judge_with_weight_counts_beside_ground_truth():
    (one,) = score([rollout(0, 1, 0.25)], {KNOWN.id: KNOWN}, [JudgeRewarder(0.5)])
    assert one.gt_score == 1
    assert one.reward == (1 + 0.5 * 0.25) / 1.5


def test_without_a_verdict_ground_truth_stands_alone():
    none, unasked = score([rollout(0, 1, None), make_rollout(1, 0)], {KNOWN.id: KNOWN}, [JudgeRewarder(3.0)])
    assert (none.reward, none.extra) == (1, {"judge": None})
    assert (unasked.reward, unasked.extra) == (0, {"judge": None})


class Brevity:
    name, weight = "brevity", 1.0

    def __call__(self, batch: Any) -> list[float]:
        return [0.0] * len(batch.rollouts)


def test_a_verdict_that_is_the_ground_truth_counts_once():
    (one,) = score([rollout(0, 1, 0.5, checks=())], {JUDGED.id: JUDGED}, [JudgeRewarder(9.0), Brevity()])
    assert one.gt_score == 0.5
    assert one.reward == 0.25
    assert one.extra == {"judge": None, "brevity": 0.0}


def test_a_judged_scenario_without_a_verdict_has_no_score_and_a_failed_rollout_has_0():
    failure = Failure(code="crash", message="x")
    none, unasked, error, failed = score(
        [
            rollout(0, 1, None, checks=()),
            make_rollout(1, checks=()),
            rollout(2, None, 0.9),
            make_rollout(3, status="failed", failure=failure, checks=()),
        ],
        {JUDGED.id: JUDGED},
    )
    assert [s.gt_score for s in (none, unasked, error, failed)] == [None, None, None, 0]


def test_checks_of_a_judged_scenario_do_not_score_it():
    scenario = make_scenario(rubric=RUBRIC, truth="judge")
    (one,) = score([rollout(0, 1.0, 0.25)], {scenario.id: scenario})
    assert one.gt_score == 0.25
