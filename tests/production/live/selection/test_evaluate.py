"""What another policy would have earned, beside the truth; and what the selector brings over control."""

import random
from dataclasses import replace
from typing import Any

import pytest
from support.live_runs import ARMS, POINTS, RATES, LiveWorld, rollout

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.live.records import ArmChoice, LiveRollout, LiveStatus
from pytest_tfgrpo.production.live.selection.evaluate import (
    PolicyValue,
    WorthBy,
    _logged,
    control_difference,
    evaluate,
    target_policy,
    value_of,
)
from pytest_tfgrpo.production.live.selection.rewards import FailureReward, OutcomeReward
from pytest_tfgrpo.production.live.selection.selector import PointPolicy, SelectorState, open_selector
from pytest_tfgrpo.production.live.states import HELD

QUANTITIES: tuple[WorthBy, ...] = ("reward", "score")
STATE = open_selector(0, None, POINTS)
CHOSEN = [ArmChoice(point="config", place=0, arm="a", arms={}, probabilities={}, selector=0)]


@pytest.fixture(scope="module")
def world() -> LiveWorld:
    """Return a service that has learned for 1,200 runs."""
    found = LiveWorld(5)
    found.serve(1200)
    return found


@pytest.fixture(scope="module")
def uniform() -> list[LiveRollout]:
    """Return 900 runs of a selector that knows nothing."""
    world = LiveWorld(6, control=False)
    world.rewards = lambda runs: [replace(run, reward=None) for run in runs]
    world.serve(900)
    return world.runs


def policies(world: LiveWorld) -> dict[int, PointPolicy]:
    return {number: open_selector(number, one, POINTS).points["config"] for number, one in world.documents}


def truth(policy: str) -> float:
    means = [
        sum(rates.values()) / len(rates) if policy == "uniform" else rates[policy.removeprefix("arm:")]
        for rates in RATES.values()
    ]
    return sum(means) / len(means)


def value(
    runs: list[LiveRollout], policy: str, state: SelectorState = STATE, quantity: WorthBy = "score"
) -> PolicyValue:
    target = target_policy(policy, state.points["config"], {0: STATE.points["config"]}.get)
    return evaluate(runs, target, state, "config", policy=policy, quantity=quantity)


@pytest.mark.parametrize("policy", ["arm:bare", "arm:learned", "arm:misled", "uniform"])
def test_each_estimator_s_interval_covers_the_truth(policy: str, uniform: list[LiveRollout]) -> None:
    found = value(uniform, policy)
    assert found.decisions == 900
    for estimate in (found.ips, found.snips, found.dr):
        assert estimate.value is not None
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low < truth(policy) < estimate.high
        assert estimate.high - estimate.low < 0.25


def test_of_a_selector_that_learned_the_rare_arm_is_not_estimable_and_the_good_one_is(
    world: LiveWorld,
) -> None:
    late = [run for run in world.runs if run.choices[0].selector > 20]
    rare, good = value(late, "arm:misled"), value(late, "arm:learned")
    assert (rare.dr.value, rare.ips.value) == (None, None)
    assert "effective decisions" in rare.dr.reason
    assert good.dr.value == pytest.approx(truth("arm:learned"), abs=0.06)
    assert good.left_out == {"control": sum(run.control for run in late)}


def test_control_runs_make_the_default_arm_estimable(world: LiveWorld) -> None:
    runs, point = world.runs, world.selector.points["config"]
    numbered = {
        number: open_selector(number, one, POINTS).points["config"] for number, one in world.documents
    }
    target = target_policy("arm:bare", point, numbered.get)
    late = [run for run in runs if run.choices[0].selector > 20]
    alone = evaluate(late, target, world.selector, "config", policy="arm:bare", quantity="score")
    both = evaluate(
        late, target, world.selector, "config", policy="arm:bare", quantity="score", numbered=numbered.get
    )
    assert alone.dr.value is None
    assert both.left_out == {}
    assert both.decisions == len(late)
    assert both.dr.low is not None
    assert both.dr.high is not None
    assert both.dr.low < truth("arm:bare") < both.dr.high
    control = [run.trace.score for run in late if run.control and run.trace and run.trace.score is not None]
    assert both.snips.value == pytest.approx(sum(control) / len(control), abs=0.05)


def test_control_runs_that_took_several_arms_are_left_out(world: LiveWorld) -> None:
    runs, first = list(world.runs), next(i for i, run in enumerate(world.runs) if run.control)
    other = replace(runs[first].choices[0], arm="learned", probabilities={"learned": 1.0})
    runs[first] = replace(runs[first], choices=(other,))
    target = target_policy("uniform", world.selector.points["config"], {}.get)
    numbered = {
        number: open_selector(number, one, POINTS).points["config"] for number, one in world.documents
    }
    found = evaluate(runs, target, world.selector, "config", policy="uniform", numbered=numbered.get)
    assert found.left_out == {"control": sum(run.control for run in runs)}


def test_a_selector_s_own_value_is_about_the_mean_of_its_runs(world: LiveWorld) -> None:
    point = world.selector.points["config"]
    target = target_policy("selector:7", point, {7: point}.get)
    found = evaluate(world.runs, target, world.selector, "config", policy="selector:7", quantity="score")
    assert found.dr.value == pytest.approx(truth("arm:learned"), abs=0.08)


def test_rewards_are_judged_as_q(uniform: list[LiveRollout]) -> None:
    score, reward = value(uniform, "uniform").snips, value(uniform, "uniform", quantity="reward").snips
    assert score.value is not None
    assert reward.value == pytest.approx((1.75 * score.value - 0.75 + 1) / 2)


def test_runs_without_overlap_outcome_or_arm_are_left_out_by_reason(uniform: list[LiveRollout]) -> None:
    trace = uniform[1].trace
    assert trace is not None
    runs = [
        replace(uniform[0], status=LiveStatus.CANCELLED),
        replace(uniform[1], trace=replace(trace, score=None)),
        replace(uniform[2], choices=()),
        replace(uniform[3], choices=(replace(uniform[3].choices[0], probabilities={}),)),
        *uniform[4:],
    ]
    found = value(runs, "uniform")
    assert found.left_out == {"cancelled": 1, "missing_logprobs": 1, "no_choices": 1, "no_outcome": 1}
    grown = STATE.with_points({"config": {**ARMS, "fresh": "s-fresh"}})
    assert value(uniform, "arm:fresh", grown).left_out == {"no_overlap": 900}
    assert value(uniform, "arm:bare", grown).decisions == 900
    shrunk = STATE.with_points({"config": {"bare": "s-bare", "taught": "s-learned"}})
    found = value(uniform, "arm:taught", shrunk)
    assert found.left_out["unknown_arm"] == sum(run.choices[0].arm == "misled" for run in uniform)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("arm:leanred", "no arm 'leanred'; there are bare, learned, misled; did you mean 'learned'"),
        ("selector:9", "no selector 9 in the store"),
        ("best", "no policy 'best'; use arm:NAME, selector:N or uniform"),
    ],
)
def test_a_policy_that_there_is_not_is_an_error(policy: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        value([], policy)


def test_nothing_is_estimable_from_no_runs() -> None:
    assert value([], "uniform").dr.value is None


def runs_of(rng: random.Random, selected: float, control: float, n: int) -> list[LiveRollout]:
    choice = STATE.draw("t", "r", 1, "config", 0, category="a")
    found = []
    for i in range(n):
        is_control = rng.random() < 0.1
        score = float(rng.random() < (control if is_control else selected))
        found.append(rollout(i, [choice], score, control=is_control))
    return found


@pytest.mark.parametrize(("selected", "control"), [(0.8, 0.5), (0.6, 0.6), (0.9, 0.98)])
def test_the_interval_of_selector_minus_control_covers_the_truth(selected: float, control: float) -> None:
    rng, covered, n = random.Random(1), 0, 60
    for _ in range(n):
        found = control_difference(runs_of(rng, selected, control, 300), quantity="score")
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= selected - control <= found.high
    assert covered / n >= 0.9


@pytest.mark.parametrize("change", [{"reward": None}, {"status": LiveStatus.CANCELLED}], ids=["lost", "cut"])
def test_outcomes_that_are_missing_more_often_on_one_side_are_told(change: dict[str, Any]) -> None:
    def without(share: float, of_control: float) -> list[LiveRollout]:
        rng = random.Random(3)
        runs = runs_of(rng, 0.5, 0.5, 600)
        return [
            replace(run, **change) if rng.random() < (of_control if run.control else share) else run
            for run in runs
        ]

    found = control_difference(without(0.3, 0.0))
    assert found.selected + found.missing[0] + found.controls == 600
    assert (found.missing[0] > 100, found.missing[1], found.uneven) == (True, 0, True)
    assert not control_difference(without(0.3, 0.3)).uneven
    assert not control_difference(without(0.0, 0.0)).uneven
    assert not control_difference([]).uneven


def test_too_few_control_runs_give_no_difference() -> None:
    runs = [replace(run, control=False) for run in runs_of(random.Random(2), 0.5, 0.5, 30)]
    found = control_difference([*runs[:-1], replace(runs[-1], control=True)])
    assert (found.selected, found.controls, found.difference, found.low) == (29, 1, None, None)


def failed(run: LiveRollout) -> LiveRollout:
    """Return the run as one that ended by an exception."""
    trace = replace(run.trace, completed=False, score=None)
    return replace(
        run, status=LiveStatus.FAILED, trace=trace, reward=FailureReward(OutcomeReward()).infer(trace)
    )


def test_an_arm_that_fails_where_it_does_not_shine_loses_by_reward_and_by_score() -> None:
    """As of an application that reports scores only of runs that end well: missing not at random."""
    rng = random.Random(9)
    runs = [
        failed(run) if not run.control and rng.random() < 0.6 else run for run in runs_of(rng, 0.95, 0.7, 800)
    ]
    for quantity in QUANTITIES:
        found = control_difference(runs, quantity=quantity)
        assert (found.selected + found.controls, found.missing) == (800, (0, 0))
        assert found.high is not None
        assert found.high < 0
    worth = value(runs, "uniform")
    assert worth.decisions == sum(not run.control for run in runs)
    assert worth.left_out == {"control": sum(run.control for run in runs)}


def test_where_no_run_has_a_score_failures_alone_give_no_mean_score() -> None:
    runs = [failed(run) if run.sequence % 9 == 0 else run for run in runs_of(random.Random(2), 1.0, 1.0, 90)]
    runs = [replace(run, trace=replace(run.trace, score=None)) for run in runs]
    found = control_difference(runs, quantity="score")
    assert (found.selected, found.controls) == (0, 0)
    assert value(runs, "uniform").decisions == 0


def test_blocked_runs_without_a_score_have_the_score_0_and_others_none() -> None:
    (choice,) = runs_of(random.Random(2), 1.0, 1.0, 1)[0].choices
    assert value_of(rollout(1, [choice], None, blocked=True), "score") == 0
    assert value_of(rollout(1, [choice], None), "score") is None
    assert value_of(failed(rollout(1, [choice], None)), "score") == 0
    untold = replace(failed(rollout(1, [choice], None)), reward=None)
    assert value_of(untold, "score") is None, "failed_runs = inferred"


def test_a_run_that_the_guard_cut_off_is_missing_on_no_side() -> None:
    cut = replace(rollout(1, CHOSEN, None, status=LiveStatus.FAILED), reason=HELD, reward=None)
    without = replace(rollout(2, CHOSEN, None), reward=None)
    found = control_difference([rollout(3, CHOSEN, 0.5), cut, without])
    assert (found.missing, found.selected) == ((1, 0), 1)


def test_an_arm_with_a_twin_keeps_its_name_in_what_was_logged() -> None:
    """Two arms of equal values have one stamp; a run of then has the name of its own time."""
    policy = open_selector(0, None, {"config": {"bare": "s", "twin": "s"}}).points["config"]
    choice = replace(CHOSEN[0], arm="bare", arms={"bare": "s"}, probabilities={"bare": 1.0})
    assert policy.arm_of(choice) == "bare"
    assert _logged(choice, policy) == {"bare": 1.0}
    assert _logged(replace(choice, arms={"old": "s", "gone": "t"}, probabilities={"old": 0.5}), policy) == {
        "twin": 0.5
    }
