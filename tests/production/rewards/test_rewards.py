"""Rewards: every branch by hand, and the same numbers one by one, in a batch, and from a rebuilt history."""

import json
import math
import random
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.events import (
    FEEDBACK,
    REWARD,
    SCHEMAS,
    TRAJECTORY,
    RlEvent,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.rewards.columns import columns
from pytest_tfgrpo.production.rewards.columns import rewards as rewards_in_batch
from pytest_tfgrpo.production.rewards.components import further_claims
from pytest_tfgrpo.production.rewards.evidence import RewardEvidence, gather
from pytest_tfgrpo.production.rewards.history import MOST_COMPONENTS, RewardHistory
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS, TrajectoryReward, Unrewarded, reward

AT = "2025-12-09T00:00:00Z"
UP = {"type": "thumbs_up"}
CODE = {"contains_code": True}


def trajectory(name: str = "a", turns: int = 2, domain: str = "coding", **outcome: object) -> dict:
    data = load_schema(SCHEMAS[TRAJECTORY])["examples"][0]
    return {
        **data,
        "trajectory_id": derived_id(name),
        "turns": data["turns"][:1] * turns,
        "task_context": {**data["task_context"], "domain": domain},
        "outcome": outcome,
    }


def feedback(kind: str, at: str = "2025-12-08T13:00:00Z", name: str = "f", **more: object) -> dict:
    known = {"feedback_id": derived_id(name), "trajectory_id": derived_id("a"), "timestamp": at, "type": kind}
    found = check_event(wrap(FEEDBACK, {**known, **more}))
    assert isinstance(found, RlEvent), found
    return dict(found.data)


def foreign(
    scores: dict[str, float], at: str = "2025-12-08T13:00:00Z", weight: float = 0.5, **metadata: object
) -> dict:
    parts = {name: {"score": score, "weight": weight, "source": "judge"} for name, score in scores.items()}
    return {
        "reward_id": derived_id(str(scores)), "trajectory_id": derived_id("a"), "session_id": "s",
        "timestamp": at, "reward_components": parts, "total_reward": 0, "reward_type": "dense",
        "metadata": metadata,
    }  # fmt: skip


@lru_cache
def plain() -> tuple[dict, ...]:
    """Return payloads of 1,003 rewards of failed runs."""
    history = RewardHistory()
    found = []
    for n in range(1003):
        scored = reward(gather(trajectory(str(n), task_status="failed")), history)
        assert isinstance(scored, TrajectoryReward)
        found.append(scored.payload(AT))
        history.join(found[-1])
    return tuple(found)


def scored(data: dict, *said: dict, rewards: tuple[dict, ...] = (), **more: object) -> TrajectoryReward:
    found = reward(gather(data, said, rewards), more.pop("history", RewardHistory()), **more)  # type: ignore[arg-type]
    assert isinstance(found, TrajectoryReward)
    event = check_event(wrap(REWARD, found.payload(AT)))
    assert isinstance(event, RlEvent), event
    assert all(part.get("reasoning", "some") for part in event.data["reward_components"].values())
    return found


def scores(found: TrajectoryReward) -> dict[str, float]:
    return {name: part.score for name, part in found.components.items()}


NEUTRAL = {"efficiency": 0.5, "user_feedback": 0.5}

BRANCHES = [
    ({"task_status": "completed_successfully"}, {"task_completion": 1.0}, (0.4 + 0.1 + 0.125) / 0.85),
    ({"task_status": "partial_completion"}, {"task_completion": 0.5}, (0.2 + 0.1 + 0.125) / 0.85),
    (
        {"task_status": "partial_completion", "completion": 0.5},
        {"task_completion": 0.75},
        (0.3 + 0.1 + 0.125) / 0.85,
    ),
    ({"task_status": "failed"}, {"task_completion": 0.0}, (0.1 + 0.125) / 0.85),
    ({**CODE, "linter": {"score": 8.5}}, {"code_quality": 0.85}, (0.1 + 0.1275 + 0.125) / 0.6),
    ({**CODE, "tests": {"passed": 3, "total": 4}}, {"code_quality": 0.75}, (0.1 + 0.1125 + 0.125) / 0.6),
    ({**CODE, "security": {"critical_issues": 1}}, {"code_quality": 0.5}, (0.1 + 0.075 + 0.125) / 0.6),
    ({**CODE, "security": {"critical_issues": 9}}, {"code_quality": 0.0}, (0.1 + 0.125) / 0.6),
    (
        {**CODE, "linter": {"score": 10}, "tests": {"passed": 0, "total": 2}},
        {"code_quality": 0.5},
        (0.1 + 0.075 + 0.125) / 0.6,
    ),
    ({"user_feedback": UP}, {"user_feedback": 1.0}, (0.1 + 0.25) / 0.45),
    ({"user_feedback": {"type": "thumbs_down"}}, {"user_feedback": 0.0}, 0.1 / 0.45),
    ({"user_feedback": {"type": "rating", "rating": 4}}, {"user_feedback": 0.8}, (0.1 + 0.2) / 0.45),
    ({"correction_requested": True}, {"user_feedback": 0.2}, (0.1 + 0.05) / 0.45),
    ({"task_abandoned": True}, {"user_feedback": 0.0}, 0.1 / 0.45),
    ({"correction_requested": True, "task_abandoned": True}, {"user_feedback": 0.2}, (0.1 + 0.05) / 0.45),
    ({"user_feedback": UP, "task_abandoned": True}, {"user_feedback": 1.0}, (0.1 + 0.25) / 0.45),
]


@pytest.mark.parametrize(("outcome", "known", "total"), BRANCHES)
def test_each_branch_of_the_formulas_gives_what_it_gives_by_hand(outcome, known, total):
    found = scored(trajectory(**outcome))
    assert scores(found) == {**NEUTRAL, **known}
    assert found.total == pytest.approx(total, abs=1e-12)


def test_only_marks_that_a_trajectory_has_are_of_its_reward():
    bare = {**trajectory(), "metadata": {"policy_version": None}, "task_context": {"domain": "coding"}}
    assert gather(bare).marks == {}
    told = {
        **bare,
        "metadata": {"policy_version": "v2"},
        "task_context": {"domain": "coding", "task_key": "k"},
    }
    assert gather(told).marks == {"policy_version": "v2", "task_key": "k"}


NOTHING = [
    {},
    {"task_status": "unknown"},
    {"task_status": "unknown", "completion": 0.7},
    {"contains_code": True},
    {**CODE, "tests": {"passed": 0, "total": 0}},
    {"contains_code": False, "linter": {"score": 10}},
    {"linter": {"score": 10}},
    {"correction_requested": False, "task_abandoned": False, "safety_blocked": False},
]


@pytest.mark.parametrize("outcome", NOTHING)
def test_without_status_code_result_or_feedback_there_is_no_reward(outcome):
    known = gather(trajectory(**outcome))
    assert reward(known, RewardHistory()) is Unrewarded.INSUFFICIENT_EVIDENCE
    batch = rewards_in_batch(columns([known]), RewardHistory())
    assert math.isnan(batch.total_N[0])
    assert math.isnan(batch.scores["efficiency"][0])


def test_a_trajectory_without_an_outcome_has_no_reward_until_somebody_says_something():
    data = trajectory()
    del data["outcome"]
    assert reward(gather(data), RewardHistory()) is Unrewarded.INSUFFICIENT_EVIDENCE
    assert scores(scored(data, feedback("rating", rating=2)))["user_feedback"] == 0.4


def test_a_blocked_trajectory_has_0_and_keeps_its_components_also_without_other_evidence():
    done = {"task_status": "completed_successfully", "user_feedback": UP, "safety_blocked": True}
    found = scored(trajectory(**done))
    assert found.total == 0
    assert scores(found) == {"task_completion": 1.0, "efficiency": 0.5, "user_feedback": 1.0}
    payload = found.payload(AT)
    assert payload["metadata"]["hard_gate"] is True
    assert payload["normalization"]["normalized_unit"] == 0
    assert scored(trajectory(safety_blocked=True)).total == 0


# -- feedback events


def user(*said: dict, **outcome: object) -> float:
    return scored(trajectory(**outcome), *said).components["user_feedback"].score


def test_of_equal_feedback_at_one_time_the_last_counts():
    assert user(feedback("thumbs_down", name="f"), feedback("thumbs_up", name="f")) == 1.0
    assert user(feedback("thumbs_up", name="f"), feedback("thumbs_down", name="f")) == 0.0


def test_the_newest_feedback_counts_and_explicit_feedback_before_implicit():
    late, later = "2025-12-08T14:00:00+00:00", "2025-12-08T14:30:00+01:00"  # in truth an hour earlier
    assert user(feedback("thumbs_down"), feedback("rating", late, rating=3)) == 0.6
    assert user(feedback("rating", late, rating=3), feedback("thumbs_down", later)) == 0.6
    assert user(feedback("thumbs_up"), feedback("correction", late)) == 1.0
    assert user(feedback("correction"), feedback("abandonment", late)) == 0.0
    assert user(feedback("correction", late), feedback("abandonment")) == 0.2
    assert user(feedback("correction"), user_feedback=UP) == 1.0
    assert user(feedback("thumbs_down"), user_feedback=UP) == 0.0


@given(st.permutations(range(4)))
def test_the_order_in_which_feedback_arrives_does_not_count(order):
    said = [
        feedback("thumbs_up", name="1"),
        feedback("thumbs_down", name="2"),
        feedback("correction", "2025-12-08T15:00:00Z", name="3"),
        feedback("rating", name="4", rating=3),
    ]
    expected = scored(trajectory(), *said)
    assert scored(trajectory(), *[said[n] for n in order]) == expected


def test_a_label_of_the_status_and_a_score_of_a_component_replace_what_was_computed():
    data = trajectory(task_status="completed_successfully", **CODE, linter={"score": 9})
    assert scores(scored(data, feedback("label", text="failed")))["task_completion"] == 0.0
    label = feedback("label", text="partial_completion", component="task_completion")
    assert scores(scored(data, label))["task_completion"] == 0.5
    for other in (
        feedback("label", text="rude"),
        feedback("label", text="unknown"),
        feedback("label", text="failed", component="tone"),
    ):
        assert scores(scored(data, other))["task_completion"] == 1.0
    said = feedback("score", component="code_quality", score=0.25, source="linter")
    assert scored(data, said).components["code_quality"].source == "linter"


def test_components_of_other_evaluators_count_with_their_weight_and_those_of_this_one_do_not():
    data = trajectory(task_status="failed")
    found = scored(data, rewards=(foreign({"tone": 1.0, "task_completion": 0.5}, evaluator="judge-1"),))
    assert scores(found) == {**NEUTRAL, "task_completion": 0.5, "tone": 1.0}
    assert found.total == pytest.approx((0.2 + 0.1 + 0.125 + 0.5) / 1.35)
    assert "tone" not in scores(scored(data, rewards=(foreign({"tone": 1.0}, evaluator="tfgrpo"),)))
    heavy = scored(data, rewards=(foreign({"tone": 1.0}, weight=1e6),))
    assert heavy.components["tone"].weight == 1.0
    weights = {**WEIGHTS, "tone": 0.1}
    assert scored(data, rewards=(foreign({"tone": 1.0}),), weights=weights).components["tone"].weight == 0.1
    assert "tone" not in scores(scored(data, feedback("score", component="tone", score=1.0)))
    said = feedback("score", component="tone", score=1.0)
    assert scored(data, said, weights=weights).components["tone"].score == 1.0


@pytest.mark.parametrize(
    ("said", "weights"),
    [
        ([feedback("score", component="politeness", score=0.9)], WEIGHTS),
        ([feedback("score", component="code_quality", score=0.9)], {**WEIGHTS, "code_quality": 0.0}),
    ],
)
def test_what_has_no_weight_is_no_evidence(said, weights):
    known = gather(trajectory(), said)
    assert reward(known, RewardHistory(), weights) is Unrewarded.INSUFFICIENT_EVIDENCE
    assert math.isnan(rewards_in_batch(columns([known], weights), RewardHistory(), weights).total_N[0])
    weighed = dict.fromkeys(known.claims, 0.2)
    assert isinstance(reward(known, RewardHistory(), {**WEIGHTS, **weighed}), TrajectoryReward)


def test_a_further_component_counts_where_it_has_a_weight_and_is_no_evidence_alone():
    def brevity(data):
        return 1 / len(data["turns"]), "short"

    def broken(data):
        raise KeyError("x")

    def wild(data):
        return 7

    data = trajectory(task_status="failed")
    claims, problems = further_claims(
        data, {"brevity": brevity, "broken": broken, "wild": wild, "none": lambda data: None}
    )
    assert set(problems) == {"broken", "wild"}
    assert [claim.reasoning for claim in claims] == ["short"]
    known = gather(data, further=claims, problems=problems)
    found = reward(known, RewardHistory(), {**WEIGHTS, "brevity": 0.2, "wild": 0.1})
    assert isinstance(found, TrajectoryReward)
    assert scores(found) == {**NEUTRAL, "task_completion": 0.0, "brevity": 0.5}
    assert found.payload(AT)["metadata"]["problems"] == problems
    alone = gather(trajectory(), further=claims)
    assert reward(alone, RewardHistory(), {**WEIGHTS, "brevity": 0.2}) is Unrewarded.INSUFFICIENT_EVIDENCE


def test_confidence_is_the_share_of_all_weights_that_rests_on_something_known():
    def confidence(*said, **outcome):
        return scored(trajectory(**outcome), *said).payload(AT)["metadata"]["confidence"]

    assert confidence(task_status="failed") == pytest.approx(0.4)  # code_quality is absent, and counts
    assert confidence(feedback("thumbs_up"), task_status="failed") == pytest.approx(0.65)
    assert confidence(feedback("thumbs_up"), task_status="failed", linter={"score": 9}, **CODE) == (
        pytest.approx(0.8)
    )


@pytest.mark.parametrize(
    ("said", "score"),
    [
        *((True, None), (False, None), ((True, "yes"), None), (-0.4, None), (1.01, None), (math.nan, None)),
        *((1, 1.0), (0.0, 0.0), ((0.5, "so so"), 0.5)),
    ],
)
def test_a_score_of_a_further_component_is_a_number_from_0_to_1(said, score):
    claims, problems = further_claims(trajectory(), {"tone": lambda data: said})
    assert [claim.score for claim in claims] == ([] if score is None else [score])
    assert list(problems) == (["tone"] if score is None else [])


def test_what_a_component_says_of_its_failure_is_cut():
    def broken(data):
        raise ValueError("x" * 500)

    assert len(further_claims(trajectory(), {"broken": broken})[1]["broken"]) == 200


def test_a_reward_says_why_and_from_whom():
    outcome = {"task_status": "failed", **CODE, "linter": {"score": 10}, "tests": {"passed": 1, "total": 3}}
    found = scored(trajectory(**outcome)).components
    assert found["task_completion"].reasoning == "failed"
    assert found["code_quality"].reasoning == "linter 1, tests 0.333"
    judged = foreign({"tone": 1.0})
    judged["reward_components"]["tone"]["reasoning"] = "kind"
    assert scored(trajectory(**outcome), rewards=(judged,)).components["tone"].reasoning == "kind"
    for said, name in (
        (feedback("thumbs_up", source="reviewer"), "user_feedback"),
        (feedback("label", text="failed", source="reviewer"), "task_completion"),
    ):
        assert scored(trajectory(**outcome), said).components[name].source == "reviewer"


@pytest.mark.parametrize(
    ("said", "rewards", "method"),
    [
        ((), (), "automated"),
        ((feedback("thumbs_up"),), (), "hybrid"),
        ((feedback("score", component="task_completion", score=1.0, source="linter"),), (), "automated"),
        ((), (foreign({"tone": 1.0}),), "hybrid"),
    ],
)
def test_a_reward_in_which_a_person_or_a_judge_has_a_say_is_hybrid(said, rewards, method):
    metadata = scored(trajectory(task_status="failed"), *said, rewards=rewards).payload(AT)["metadata"]
    assert metadata["evaluation_method"] == method


def test_a_reward_has_the_marks_of_its_trajectory():
    data = trajectory(task_status="failed")
    data["metadata"] = {"policy_version": "v2"}
    data["task_context"] = {"domain": "coding", "task_key": "k"}
    metadata = scored(data).payload(AT)["metadata"]
    assert (metadata["policy_version"], metadata["task_key"]) == ("v2", "k")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            feedback("label", text="failed", name="1"),
            feedback("label", text="completed_successfully", name="2"),
        ),
        (
            feedback("score", component="task_completion", score=0.2, name="1"),
            feedback("score", component="task_completion", score=0.7, name="2"),
        ),
        (foreign({"task_completion": 0.2}), foreign({"task_completion": 0.7})),
    ],
)
def test_of_two_claims_at_one_time_the_same_counts_whichever_arrives_first(first, second):
    data = trajectory(task_status="failed")
    found = [
        scores(scored(data, rewards=pair) if "reward_id" in first else scored(data, *pair))
        for pair in ((first, second), (second, first))
    ]
    assert found[0] == found[1]


# -- history


def grown(values: list[dict], history: RewardHistory | None = None) -> RewardHistory:
    history = RewardHistory() if history is None else history
    for data in values:
        history.join(scored(data, history=history).payload(AT))
    return history


def test_efficiency_compares_the_turns_with_those_of_the_domain():
    history = grown([trajectory("b", 5, task_status="failed")])
    assert scores(scored(trajectory(turns=1, task_status="failed"), history=history))["efficiency"] == 0.5
    history = grown([trajectory("c", 5, task_status="failed")], history)
    assert scores(scored(trajectory(turns=1, task_status="failed"), history=history))["efficiency"] == 0.5
    alike = scored(trajectory(turns=1, task_status="failed"), history=history).components["efficiency"]
    assert (alike.normalized.method, alike.normalized.n, alike.normalized.std) == ("none", 2, 0.0)
    history = grown([trajectory("d", 8, task_status="failed")], history)  # 5, 5, 8: mean 6, std sqrt 2
    for turns, expected in ((6, 0.5), (7, (2 - 1 / math.sqrt(2)) / 4), (1, 1.0), (60, 0.0)):
        found = scored(trajectory(turns=turns, task_status="failed"), history=history)
        assert scores(found)["efficiency"] == pytest.approx(expected, abs=1e-12)
        z = found.components["efficiency"].normalized
        assert z.normalized == pytest.approx(4 * expected - 2, abs=1e-12)
        reasoning = f"{turns} turns, mean 6 of 3 runs in coding"
        assert found.components["efficiency"].reasoning == reasoning
    other = trajectory(turns=1, domain="research", task_status="failed")
    assert scores(scored(other, history=history))["efficiency"] == 0.5


def test_a_score_is_normalized_from_30_values_on_before_it_joins():
    def history_of(n: int) -> RewardHistory:
        statuses = ["failed", "completed_successfully"]
        return grown([trajectory(str(k), task_status=statuses[k % 2]) for k in range(n)])

    done = trajectory(task_status="completed_successfully")
    early = scored(done, history=history_of(29)).components["task_completion"].normalized
    assert (early.method, early.n, early.normalized) == ("none", 29, 0.0)
    found = scored(done, history=history_of(30))
    late = found.components["task_completion"].normalized
    assert (late.method, late.n, late.mean, late.std) == ("z-score", 30, 0.5, 0.5)
    assert late.normalized == 1.0
    flat = found.components["user_feedback"].normalized
    assert (flat.method, flat.n, flat.std) == ("none", 30, 0.0)
    assert found.normalized_total == pytest.approx(0.4)
    assert found.payload(AT)["normalization"]["normalized_unit"] == pytest.approx(0.6)


def test_a_z_score_is_clipped_to_2():
    values = [trajectory(str(k), task_status="failed" if k else "completed_successfully") for k in range(50)]
    found = scored(trajectory(task_status="completed_successfully"), history=grown(values))
    assert found.components["task_completion"].normalized.normalized == 2.0


def test_the_last_1000_values_count():
    history = RewardHistory()
    history.rebuild(plain())
    values = history.scores("task_completion")
    assert len(values) == len(history.turns_of("coding")) == 1000
    assert derived_id("2") not in values
    assert derived_id("3") in values


def test_a_later_revision_takes_the_place_of_the_one_before_and_keeps_its_efficiency():
    history = grown([trajectory(str(n), n % 7, task_status="failed") for n in range(40)])
    data = trajectory("a", 3, task_status="failed")
    first = scored(data, history=history)
    before = first.payload(AT)
    history.join(before)
    history = grown([trajectory(f"x{n}", 9, task_status="failed") for n in range(5)], history)
    place = [key for key, _ in history.scores("user_feedback").items()].index(derived_id("a"))
    second = scored(data, feedback("thumbs_up"), history=history, previous=before)
    assert (second.revision, second.joined) == (2, ())
    assert second.components["efficiency"] == first.components["efficiency"]
    assert second.components["user_feedback"].normalized.n == 45
    assert second.differs(before)
    assert not scored(data, history=history, previous=before).differs(before)
    history.join(second.payload(AT))
    assert history.scores("user_feedback").items()[place] == (derived_id("a"), 1 << 20)
    assert len(history.scores("user_feedback")) == 46


def test_a_later_revision_does_not_keep_the_efficiency_of_a_judge_who_says_it_no_more():
    data = trajectory("a", task_status="failed")
    judged = scored(data, rewards=(foreign({"efficiency": 0.9}),))
    assert judged.components["efficiency"].source == "judge"
    again = scored(data, previous=judged.payload(AT)).components["efficiency"]
    assert (again.score, again.source) == (0.5, "automated")


@pytest.mark.parametrize(("turns", "domain"), [(3, "research"), (4, "coding")])
def test_a_later_revision_of_another_length_or_domain_has_an_efficiency_of_its_own(turns, domain):
    history = grown([trajectory(str(n), n % 7, task_status="failed") for n in range(40)])
    before = scored(trajectory("a", 3, task_status="failed"), history=history)
    again = scored(
        trajectory("a", turns, domain, task_status="failed"), history=history, previous=before.payload(AT)
    )
    kept, found = before.components["efficiency"], again.components["efficiency"]
    assert kept.reasoning.startswith("3 turns, mean")
    assert found.score != kept.score
    assert found.reasoning.startswith(f"{turns} turns")


def test_a_later_revision_has_the_weight_of_today_and_is_as_sure_as_the_first():
    data = trajectory("a", task_status="failed")
    first = scored(data).payload(AT)
    again = scored(data, previous=first, weights={**WEIGHTS, "efficiency": 0.3})
    assert again.components["efficiency"].weight == 0.3
    same = scored(data, previous=first).payload(AT)["metadata"]
    assert same["confidence"] == first["metadata"]["confidence"] == pytest.approx(0.4)
    history = grown([trajectory("b", 5, task_status="failed")])
    assert scored(data, history=history).payload(AT)["metadata"]["confidence"] == pytest.approx(0.4)
    judged = scored(data, rewards=(foreign({"efficiency": 0.9}),)).payload(AT)["metadata"]
    assert judged["confidence"] == pytest.approx(0.6)


def test_a_revision_differs_by_score_weight_source_or_block_and_not_by_its_reasons():
    data = trajectory("a", task_status="failed")
    before = scored(data).payload(AT)
    blocked = trajectory("a", task_status="failed", safety_blocked=True)
    linter = feedback("score", component="task_completion", score=0.0, source="linter")
    assert scored(blocked, previous=before).differs(before)
    assert scored(data, linter, previous=before).differs(before)
    assert scored(data, previous=before, weights={**WEIGHTS, "task_completion": 0.5}).differs(before)
    before["reward_components"]["task_completion"]["reasoning"] = "another"
    assert not scored(data, previous=before).differs(before)


def test_a_run_counts_in_the_domain_of_its_newest_revision_alone():
    history = grown([trajectory("a", 3, task_status="failed")])
    before = scored(trajectory("a", 3, task_status="failed")).payload(AT)
    after = scored(trajectory("a", 4, "research", task_status="failed"), history=history, previous=before)
    history.join(after.payload(AT))
    assert history.turns_of("coding").items() == []
    assert history.turns_of("research").items() == [(derived_id("a"), 4)]


def test_turns_join_with_the_first_revision_that_has_an_efficiency():
    data, history = trajectory("a", 3, task_status="failed"), RewardHistory()
    before = scored(data, weights={**WEIGHTS, "efficiency": 0.0}).payload(AT)
    after = scored(data, previous=before)
    assert after.joined == ("efficiency",)
    history.join(after.payload(AT))
    assert history.turns_of("coding").items() == [(derived_id("a"), 3)]


def test_weights_of_a_project_count_in_a_batch_as_one_by_one():
    weights = {**WEIGHTS, "tone": 0.1, "task_completion": 0.0}
    known = gather(trajectory(user_feedback=UP), (), (foreign({"tone": 0.2}),))
    single = reward(known, RewardHistory(), weights)
    assert isinstance(single, TrajectoryReward)
    batch = rewards_in_batch(columns([known], weights), RewardHistory(), weights)
    assert batch.total_N[0] == single.total == pytest.approx((0.1 + 0.25 + 0.02) / 0.55)


def test_a_revision_whose_predecessor_left_the_history_does_not_come_back():
    first = scored(trajectory("a", task_status="failed")).payload(AT)
    history = RewardHistory()
    history.join(first)
    history.rebuild(plain()[:1000])
    judged = foreign({"tone": 0.5})
    second = scored(trajectory("a", task_status="failed"), rewards=(judged,), history=history, previous=first)
    assert second.joined == ("tone",)
    history.join(second.payload(AT))
    assert derived_id("a") not in history.scores("task_completion")
    assert derived_id("a") not in history.turns_of("coding")
    assert derived_id("a") in history.scores("tone")


def test_a_trajectory_that_turns_out_blocked_leaves_the_history():
    history = grown([trajectory(str(n), task_status="failed") for n in range(3)])
    before = scored(trajectory("2", task_status="failed")).payload(AT)
    blocked = trajectory("2", task_status="failed", safety_blocked=True)
    history.join(scored(blocked, history=history, previous=before).payload(AT))
    assert len(history.scores("task_completion")) == len(history.turns_of("coding")) == 2


def test_a_judge_with_ever_new_components_takes_no_place_of_those_that_go_on():
    history, published = RewardHistory(), []
    for n in range(2 * MOST_COMPONENTS):
        judged = foreign({f"case_{n}": 0.5, "tone": n % 2})
        found = scored(trajectory(str(n), task_status="failed"), rewards=(judged,), history=history)
        published.append(found.payload(AT))
        history.join(published[-1])
    assert len(history.components) == MOST_COMPONENTS
    assert len(history.known_scores("tone")) == len(history.known_scores("task_completion")) == len(published)
    assert not len(history.known_scores("case_0"))
    again = RewardHistory()
    again.rebuild(published[:300])
    kept = RewardHistory()
    kept.restore(json.loads(json.dumps(again.dump())))
    kept.rebuild(published[300:])
    assert list(kept.components) == list(history.components)
    assert state(kept) == state(history)


def state(history: RewardHistory) -> dict:
    parts = {**history.components, **{f"turns {key}": value for key, value in history.turns.items()}}
    return {name: (values.items(), values.moments()) for name, values in parts.items() if len(values)}


def evidence_of(n: int, chance: random.Random) -> RewardEvidence:
    outcome: dict[str, object] = {
        "task_status": chance.choice(["completed_successfully", "partial_completion", "failed", "unknown"]),
        "completion": chance.random(),
        "contains_code": chance.random() < 0.5,
        "linter": {"score": 10 * chance.random()},
        "tests": {"passed": chance.randrange(4), "total": 3},
        "safety_blocked": chance.random() < 0.05,
        "correction_requested": chance.random() < 0.1,
    }
    if chance.random() < 0.3:
        outcome["user_feedback"] = {"type": "rating", "rating": chance.randint(1, 5)}
    data = trajectory(str(n), chance.randint(1, 30), chance.choice(["coding", "research"]), **outcome)
    judged = (foreign({"tone": chance.random()}),) if chance.random() < 0.3 else ()
    return gather(data, (), judged)


@pytest.mark.parametrize("cut", [0, 700])
def test_a_batch_gives_the_same_numbers_as_one_by_one_and_leaves_the_same_history(cut):
    chance = random.Random(3)
    known = [evidence_of(n, chance) for n in range(1500)]
    single, batch = RewardHistory(), RewardHistory()
    expected = []
    for one in known:
        expected.append(reward(one, single))
        if isinstance(expected[-1], TrajectoryReward):
            single.join(expected[-1].payload(AT))
    halves = [rewards_in_batch(columns(part), batch) for part in (known[:cut], known[cut:])]
    for name in ("task_completion", "efficiency", "code_quality", "user_feedback", "tone"):
        parts = [one.components.get(name) if isinstance(one, TrajectoryReward) else None for one in expected]
        for found, wanted in (
            ([half.scores for half in halves], [part.score if part else math.nan for part in parts]),
            (
                [half.normalized for half in halves],
                [part.normalized.normalized if part else math.nan for part in parts],
            ),
        ):
            np.testing.assert_array_equal(
                np.concatenate([half.get(name, np.empty(0)) for half in found]), wanted
            )
    pairs = [
        (one.total, one.normalized_total) if isinstance(one, TrajectoryReward) else (math.nan, math.nan)
        for one in expected
    ]
    totals = [np.stack([half.total_N, half.normalized_total_N], axis=1) for half in halves]
    np.testing.assert_array_equal(np.concatenate(totals), pairs)
    assert state(single) == state(batch)


def test_a_history_that_is_rebuilt_from_published_rewards_gives_equal_rewards():
    chance = random.Random(5)
    history, published, latest = RewardHistory(), [], {}
    for n in range(1150):
        if n % 5 == 4 and latest:  # feedback that comes later
            key = chance.choice(sorted(latest))
            known, before = latest[key]
            found = reward(
                gather(trajectory(key, known.turns, known.domain), (feedback("thumbs_up"),)),
                history,
                previous=before,
            )
        else:
            key, known = str(n), evidence_of(n, chance)
            found = reward(known, history)
        if isinstance(found, TrajectoryReward):
            payload = found.payload(AT)
            latest[key] = (known, payload)
            published.append(payload)
            history.join(payload)
    again = RewardHistory()
    again.rebuild(published)
    assert state(again) == state(history)


outcomes = st.fixed_dictionaries(
    {},
    optional={
        "task_status": st.sampled_from(["completed_successfully", "partial_completion", "failed", "unknown"]),
        "completion": st.floats(0, 1),
        "contains_code": st.booleans(),
        "linter": st.fixed_dictionaries({"score": st.floats(0, 10)}),
        "tests": st.integers(0, 9).map(lambda n: {"passed": n // 2, "total": n}),
        "security": st.fixed_dictionaries({"critical_issues": st.integers(0, 99)}),
        "user_feedback": st.floats(1, 5).map(lambda r: {"type": "rating", "rating": r}),
        "correction_requested": st.booleans(),
        "task_abandoned": st.booleans(),
        "safety_blocked": st.booleans(),
    },
)


@reaches("a reward", "blocked", "none")
@given(
    outcomes | outcomes.map(lambda known: {**known, "safety_blocked": True}) | st.just({}), st.integers(0, 40)
)
def test_whatever_the_outcome_a_reward_is_a_valid_event_or_there_is_none(outcome, turns):
    found = reward(gather(trajectory(turns=turns, **outcome)), RewardHistory())
    if not isinstance(found, TrajectoryReward):
        reached("none")
    else:
        reached("blocked" if found.evidence.blocked else "a reward")
        assert isinstance(check_event(wrap(REWARD, found.payload(AT))), RlEvent)
        assert 0 <= found.total <= 1
        assert (found.total == 0) >= found.evidence.blocked
