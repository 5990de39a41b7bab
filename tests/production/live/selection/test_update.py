"""Updates of the selector: what is learned, from which runs, and when nothing is."""

import json
import math
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from support.live_runs import ARMS, POINTS, RATES, LiveWorld, rollout

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.numerics.rl import softmax
from pytest_tfgrpo.production.live.records import ArmChoice, LiveRollout, LiveStatus, LiveUpdate
from pytest_tfgrpo.production.live.selection.selector import OTHER, Points, open_selector
from pytest_tfgrpo.production.live.selection.update import (
    MAX_DRIFT,
    MAX_KL,
    WAITS_FOR,
    Learning,
    PolicyAlgorithm,
    compute,
    update_document,
)

LEARNING = Learning(points=POINTS, strategy="outcome_v1")
ALGORITHMS: tuple[PolicyAlgorithm, ...] = ("ppo", "grpo", "rloo")


def chosen(run: int, *, selector: int = 0) -> ArmChoice:
    state = open_selector(selector, None, POINTS)
    return state.draw("test", str(run), 1, "config", 0, category="freight")


def far(run: LiveRollout) -> ArmChoice:
    """Return the choice of a run by a policy of which runs count for less than a tenth of today's."""
    (choice,) = run.choices
    return replace(choice, probabilities={arm: 0.98 if arm == "misled" else 0.01 for arm in ARMS})


def batch(n: int = 8, *, selector: int = 0) -> list[LiveRollout]:
    """Return runs in which `learned` scores 1 and the others 0."""
    drawn = {i: chosen(i, selector=selector) for i in range(1, n + 1)}
    return [rollout(i, [choice], float(choice.arm == "learned")) for i, choice in drawn.items()]


def update(
    runs: list[LiveRollout], *, selector: int = 0, document: Json = None, learning: Learning = LEARNING
) -> tuple[LiveUpdate, Json]:
    return compute(runs, selector, document, learning=learning, now=12.0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_c02_an_update_makes_the_better_arm_likelier_and_says_what_it_did(algorithm: PolicyAlgorithm) -> None:
    runs = batch(16)
    report, document = update(runs, learning=replace(LEARNING, algorithm=algorithm))
    assert report.executed
    assert not report.weights_applied
    assert (report.selector_before, report.selector_after) == (0, 1)
    assert (report.trajectories, report.samples) == (16, 16)
    assert report.used == report.spent == tuple(run.id for run in runs)
    before = report.probabilities_before["config"]["freight"]
    after = report.probabilities_after["config"]["freight"]
    assert before == dict.fromkeys(ARMS, pytest.approx(1 / 3))
    assert after["learned"] > 0.4
    assert open_selector(1, document, POINTS).probabilities("config", "freight") == after
    assert 0 < report.metrics["kl"] <= MAX_KL
    names = {"loss", "value_loss", "clip_fraction", "entropy", "early_stop", "mean_reward"}
    assert names <= {*report.metrics}


def test_c02_shuffled_rewards_teach_nothing() -> None:
    late = []
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def shuffled(runs: list[LiveRollout], rng: np.random.Generator = rng) -> list[LiveRollout]:
            rewards = [runs[i].reward for i in rng.permutation(len(runs))]
            return [replace(run, reward=reward) for run, reward in zip(runs, rewards, strict=True)]

        world = LiveWorld(seed, rewards=shuffled)
        world.serve(300)
        late.append(world.late())
    uniform = statistics.mean(statistics.mean(rates.values()) for rates in RATES.values())
    best = statistics.mean(max(rates.values()) for rates in RATES.values())
    assert statistics.mean(late) == pytest.approx(uniform / best, abs=0.12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_c02_a_wrong_sign_of_the_gradient_would_be_seen(
    algorithm: PolicyAlgorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = softmax.log_prob_gradient
    monkeypatch.setattr(softmax, "log_prob_gradient", lambda policy, c, a, slope: right(policy, c, a, -slope))
    world = LiveWorld(0, learning=replace(LEARNING, algorithm=algorithm))
    world.serve(300)
    assert world.late() < 0.6


def test_a_rollout_is_used_once() -> None:
    world = LiveWorld(3)
    world.serve(400)
    used = [name for report in world.updates for name in report.used]
    spent = [name for report in world.updates for name in report.spent]
    assert len(used) == len(set(used))
    assert sorted(used) == sorted(spent)
    eligible = {run.id for run in world.runs if not run.control}
    assert set(used) <= eligible
    assert len(eligible) - len(used) < 64 + 8


LEFT_OUT: dict[str, Callable[[LiveRollout], LiveRollout]] = {
    "control": lambda run: replace(run, control=True),
    "no_choices": lambda run: replace(run, choices=()),
    "no_outcome": lambda run: replace(run, reward=None),
    "used": lambda run: replace(run, used_in=2),
    "cancelled": lambda run: replace(run, status=LiveStatus.CANCELLED),
    "other_strategy": lambda run: replace(run, reward=replace(run.reward, strategy="trace_v1")),
    "missing_logprobs": lambda run: replace(run, choices=(replace(run.choices[0], probabilities={}),)),
    "stale": lambda run: replace(run, choices=(far(run),)),
    "unknown_arm": lambda run: replace(
        run, choices=(replace(run.choices[0], arms=dict.fromkeys(ARMS, "s-gone")),)
    ),
}


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_a_run_that_teaches_nothing_is_left_out_by_its_reason(reason: str) -> None:
    runs = batch(16, selector=12)
    odd = [LEFT_OUT[reason](run) for run in runs[:3]]
    report, _ = update([*odd, *runs[3:]], selector=12)
    assert report.executed
    assert report.left_out == {reason: 3}
    assert report.trajectories == 13
    assert set(report.used) == {run.id for run in runs[3:]}
    waits = reason == "unknown_arm"
    assert set(report.spent) == {run.id for run in runs[3 if waits else 0 :]}


def test_a_run_one_of_whose_choices_was_made_without_the_selector_is_control() -> None:
    runs = batch(16)
    odd = replace(runs[0], choices=(runs[0].choices[0], replace(runs[0].choices[0], control=True)))
    assert update([odd, *runs[1:]])[0].left_out == {"control": 1}


def test_a_run_of_an_arm_that_another_process_has_waits_for_it_until_it_is_stale() -> None:
    others = {"config": {"bare": "s-other", "warm": "s-warm"}}
    state = open_selector(12, None, others)
    drawn = [state.draw("test", str(i), 1, "config", 0, category="freight") for i in range(6)]
    runs = [rollout(i + 1, [choice], float(choice.arm == "warm")) for i, choice in enumerate(drawn)]
    here, _ = update(runs, selector=12)
    assert (here.executed, here.left_out, here.spent) == (False, {"unknown_arm": 6}, ())
    there, _ = update(runs, selector=12, learning=replace(LEARNING, points=others))
    assert (there.executed, len(there.used)) == (True, 6)
    last, _ = update(runs, selector=12 + WAITS_FOR)
    assert (last.left_out, last.spent) == ({"unknown_arm": 6}, ())
    late, _ = update(runs, selector=13 + WAITS_FOR)
    assert (late.left_out, len(late.spent)) == ({"stale": 6}, 6)


@pytest.mark.parametrize(
    "points",
    [
        [{"config": ARMS}, {"config": {**ARMS, "learned": "s-changed"}}],
        [{"config": ARMS}, {"plan": ARMS}],
    ],
    ids=["another library", "another point"],
)
def test_processes_with_other_arms_share_a_store_and_each_learns(points: list[Points]) -> None:
    """As of services of two releases: each update is made by either."""
    shares = [statistics.fmean(served_by_two(points, seed)) for seed in range(2)]
    assert statistics.fmean(shares) > 0.9


def served_by_two(points: list[Points], seed: int) -> list[float]:
    """Return the expected scores of the last 100 of 400 runs, as shares of the best arm's."""
    draws, document, number = random.Random(seed), None, 0
    waiting: list[LiveRollout] = []
    shares: list[float] = []
    for sequence in range(1, 401):
        mine, category = draws.choice(points), draws.choice(list(RATES))
        state = open_selector(number, document, mine)
        choice = state.draw(f"two-{seed}", str(sequence), 1, next(iter(mine)), 0, category=category)
        rate = RATES[category][choice.arm]
        waiting.append(rollout(sequence, [choice], float(draws.random() < rate), category=category))
        shares.append(rate / max(RATES[category].values()))
        if sequence % 8 == 0:
            learning = replace(LEARNING, points=draws.choice(points))
            report, document = compute(waiting[:64], number, document, learning=learning, now=0.0)
            number = report.selector_after
            waiting = [run for run in waiting if run.id not in report.spent]
    return shares[-100:]


def skewed(share: float, n: int = 64) -> list[LiveRollout]:
    """Return runs by a policy that takes `misled` with this probability, of which `learned` score 1."""
    policy = {arm: share if arm == "misled" else (1 - share) / 2 for arm in ARMS}
    rng = random.Random(4)
    arms = rng.choices([*policy], [*policy.values()], k=n)
    return [
        rollout(i, [replace(chosen(i), arm=arm, probabilities=policy)], float(arm == "learned"))
        for i, arm in enumerate(arms, 1)
    ]


def test_a_run_teaches_however_many_selectors_ago_it_chose_if_its_policy_is_near() -> None:
    report, _ = update(batch(16), selector=500)
    assert (report.trajectories, report.left_out) == (16, {})


def test_what_ages_a_run_is_how_far_its_policy_is_from_todays() -> None:
    near = 1 / 3  # of a uniform policy: the mean square of the ratio is (1/3)^2 (2 / (1 - p)/2 + 1 / p)
    assert update(skewed(near))[0].left_out == {}
    for share, stale in ((0.95, False), (0.98, True)):
        square = (1 / 9) * (4 / (1 - share) + 1 / share)
        assert (square > MAX_DRIFT) == stale
        assert update(skewed(share))[0].left_out == ({"stale": 64} if stale else {})


def test_a_choice_weighs_as_much_as_todays_policy_would_take_it() -> None:
    """One run in ten took `learned`; today every third would."""
    report, _ = update(skewed(0.8))
    assert report.probabilities_after["config"]["freight"]["learned"] > 0.42


def test_each_choice_of_a_run_ages_it() -> None:
    points = {"first": ARMS, "second": ARMS}
    skew = {arm: 0.9 if arm == "misled" else 0.05 for arm in ARMS}
    runs = [two_choices(i) for i in range(16)]
    old = [
        replace(run, choices=tuple(replace(choice, probabilities=skew) for choice in run.choices))
        for run in runs
    ]
    half = [replace(run, choices=(old[i].choices[0], run.choices[1])) for i, run in enumerate(runs)]
    learning = replace(LEARNING, points=points)
    assert update(half, learning=learning)[0].left_out == {}
    assert update(old, learning=learning)[0].left_out == {"stale": 16}, "4.6 for each of two choices"


def leaning(arm: str, arms: Mapping[str, str] = ARMS) -> Json:
    """Return the document of a selector that takes an arm 19 times in 20."""
    document = open_selector(0, None, {"config": arms}).document()
    document["points"]["config"]["shared"][arm] = math.log(19 * (len(arms) - 1))
    return document


def test_a_run_is_old_by_todays_policy() -> None:
    assert update(skewed(0.95), document=leaning("misled"))[0].left_out == {}
    assert update(skewed(0.95), document=leaning("learned"))[0].left_out == {"stale": 64}


def test_an_arm_that_came_since_hides_no_age() -> None:
    """Among the arms that both have, today's policy is uniform."""
    arms = {**ARMS, "new": "s-new"}
    for share, left_out in ((0.9, {}), (0.98, {"stale": 64})):
        found, _ = update(
            skewed(share),
            document=leaning("new", arms),
            learning=replace(LEARNING, points={"config": arms}),
        )
        assert found.left_out == left_out


def test_arms_are_opened_no_faster_than_a_step_goes() -> None:
    """As of a selector of which nothing is known: it leans to an arm that nothing has shown better."""
    report, _ = update(skewed(0.95), document=leaning("misled"))
    after = report.probabilities_after["config"]["freight"]
    assert 0 < report.metrics["kl"] <= MAX_KL
    assert 0.6 < after["misled"] < 0.93


def test_an_arm_that_came_since_does_not_age_a_run() -> None:
    more = {"config": {**ARMS, "new": "s-new"}}
    report, _ = update(batch(16), learning=replace(LEARNING, points=more))
    assert (report.trajectories, report.left_out) == (16, {})


def test_equal_arms_keep_on_being_explored() -> None:
    worlds = [LiveWorld(seed, rates={"a": {"bare": 0.6, "learned": 0.6, "misled": 0.6}}) for seed in range(3)]
    for world in worlds:
        world.serve(300)
    most = [max(world.selector.probabilities("config", "a").values()) for world in worlds]
    assert statistics.median(most) < 0.7


def test_failed_runs_teach_as_well() -> None:
    runs = [replace(run, status=LiveStatus.FAILED) for run in batch(16)]
    assert update(runs)[0].trajectories == 16


def check_nothing_learned(report: LiveUpdate, document: Json, reason: str) -> None:
    assert (report.executed, report.reason) == (False, reason)
    assert (report.used, dict(report.metrics)) == ((), {})
    assert report.selector_before == report.selector_after
    assert report.probabilities_before == report.probabilities_after
    assert document is None


def test_no_trajectories_are_no_learning() -> None:
    for runs in ([], [replace(run, reward=None) for run in batch()]):
        check_nothing_learned(*update(runs), "no_trajectories")


def test_missing_log_probabilities_are_no_learning() -> None:
    check_nothing_learned(*update([LEFT_OUT["missing_logprobs"](run) for run in batch()]), "missing_logprobs")


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_equal_rewards_are_no_learning_and_their_runs_wait_until_an_update_is_full(score: float) -> None:
    def equal(n: int) -> list[LiveRollout]:
        return [rollout(i, [chosen(i)], score, category=f"c{i % 3}") for i in range(1, n + 1)]

    report, document = update(equal(8))
    check_nothing_learned(report, document, "zero_variance")
    assert report.spent == ()
    full, document = update(equal(64))
    check_nothing_learned(full, document, "zero_variance")
    assert len(full.spent) == 64


@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_groups_of_one_are_no_learning(algorithm: PolicyAlgorithm) -> None:
    runs = [replace(run, category=f"c{i}") for i, run in enumerate(batch(16))]
    report, document = update(runs, learning=replace(LEARNING, algorithm=algorithm))
    check_nothing_learned(report, document, "zero_variance")


def test_the_oldest_runs_come_first_and_no_more_than_the_limit() -> None:
    runs = batch(80)
    report, _ = update(runs[::-1])
    assert report.used == tuple(run.id for run in runs[:64])


def test_categories_beyond_64_learn_together() -> None:
    runs = [replace(run, category=f"c{i}") for i, run in enumerate(batch(192))]
    document, number = None, 0
    for start in (0, 64, 128):
        report, document = update(runs[start : start + 64], selector=number, document=document)
        number = report.selector_after
    selector = open_selector(number, document, POINTS)
    assert len(selector.categories) == 65
    assert selector.probabilities("config", OTHER)["learned"] > 0.4


def test_every_report_fits_its_schema_and_applies_no_weights() -> None:
    world = LiveWorld(4)
    world.serve(120)
    reports = [*world.updates, update([])[0], update([rollout(i, [chosen(i)], 1.0) for i in range(3)])[0]]
    assert {report.reason for report in reports} >= {"", "no_trajectories", "zero_variance"}
    for report in reports:
        document = json.loads(json.dumps(update_document(report), allow_nan=False))
        assert violations("live-update", document) == []
        assert document["weights_applied"] is False
        assert violations("live-update", {**document, "weights_applied": True})
        assert violations("live-update", {**document, "executed": not report.executed})


def test_equal_runs_give_equal_updates() -> None:
    assert update(batch(40)) == update(batch(40))


def two_choices(run: int) -> LiveRollout:
    """Return a run of two choices that is worth something only if the second is `learned`."""
    state = open_selector(0, None, {"first": ARMS, "second": ARMS})
    choices = [state.draw("test", str(run), 1, name, i, category="a") for i, name in enumerate(state.points)]
    return rollout(run, choices, float(choices[1].arm == "learned"), category="a")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_choice_of_a_run_is_a_step_of_its_trajectory(algorithm: PolicyAlgorithm) -> None:
    learning = replace(LEARNING, points={"first": ARMS, "second": ARMS}, algorithm=algorithm)
    report, document = update([two_choices(i) for i in range(64)], learning=learning)
    assert (report.trajectories, report.samples) == (64, 128)
    after = open_selector(1, document, learning.points)
    assert after.probabilities("second", "a")["learned"] > 0.4
    assert after.probabilities("second", "a")["learned"] > after.probabilities("first", "a")["learned"] + 0.05
    assert {*after.critic.means["a"]} == {"0", "1"}


def test_advantages_are_generalised_over_the_choices_of_a_run_and_teach_the_critic() -> None:
    points = {f"p{i}": ARMS for i in range(3)}
    state = open_selector(0, None, points)
    document = state.document()
    known = {str(place): {"n": 1, "mean": value} for place, value in enumerate((0.5, 0.4, 0.3))}
    document["critic"] = {"means": {"a": known}}
    runs = []
    for i, score in ((1, 1.0), (2, 0.0)):
        choices = [state.draw("t", str(i), 1, f"p{n}", n, category="") for n in range(3)]
        runs.append(rollout(i, choices, score, category="ab"[i - 1]))
    report, after = update(runs, document=document, learning=replace(LEARNING, points=points))
    assert report.executed
    means = open_selector(1, after, points).critic.means
    # rewards 0, 0, 1; values .5, .4, .3; by decision 27's gamma .99 and lambda .95
    advantages = (-0.104 + 0.9405 * (-0.103 + 0.9405 * 0.7), -0.103 + 0.9405 * 0.7, 0.7)
    for place, (value, advantage) in enumerate(zip((0.5, 0.4, 0.3), advantages, strict=True)):
        assert means["a"][str(place)].mean == pytest.approx(value + advantage / 2)
        assert means["a"][str(place)].n == 2
    assert means["b"]["2"].mean == pytest.approx(-0.75)


def test_an_arm_that_becomes_good_comes_back() -> None:
    before, after = ({"a": {"bare": p, "learned": 1 - p, "misled": 0.1}} for p in (0.9, 0.1))
    world = LiveWorld(1, rates=before)
    world.serve(300)
    assert world.selector.probabilities("config", "a")["bare"] > 0.9
    world.rates = after
    world.serve(300)
    assert world.selector.probabilities("config", "a")["learned"] > 0.8
