"""The guard: what holds live RL, and what lets it go on (decision 23)."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.live_runs import rollout
from support.reached import reached, reaches

from pytest_tfgrpo.production.live.records import GateState, LiveRollout, LiveStatus
from pytest_tfgrpo.production.live.selection import guard
from pytest_tfgrpo.production.live.selection.control import MORE_FAILURES, bet, wealth
from pytest_tfgrpo.production.live.selection.guard import Guard, reset
from pytest_tfgrpo.production.live.selection.selector import open_selector

GUARD = Guard()
CHOICE = open_selector(0, None, {"config": {"bare": "s"}}).draw("t", "r", 1, "config", 0, category="a")


def ended(state: GateState, *runs: LiveRollout) -> GateState:
    for run in runs:
        state = GUARD.ended(state, run)
    return state


def run(
    sequence: int = 1, *, score: float = 1.0, blocked: bool = False, control: bool = False
) -> LiveRollout:
    return rollout(sequence, [CHOICE], score, blocked=blocked, control=control)


def test_c03_failures_in_a_row_hold_when_they_reach_the_maximum() -> None:
    state = GateState()
    for streak in (1, 2):
        state = GUARD.failed(state, f"disk full {streak}", 5.0)
        assert (state.state, state.streak) == ("pass", streak)
    state = GUARD.failed(state, "disk full 3", 7.0)
    assert (state.state, state.reason, state.last_error, state.since) == (
        "hold",
        "failures",
        "disk full 3",
        7.0,
    )


def test_c03_a_whole_cycle_ends_the_streak() -> None:
    state = GUARD.failed(GUARD.failed(GateState(), "one", 1.0), "two", 2.0)
    state = GUARD.succeeded(state)
    assert (state.streak, state.last_error) == (0, "two")
    assert GUARD.failed(state, "three", 3.0).state == "pass"


EVENTS = st.sampled_from(["fail", "pass", "run", "blocked"]) | st.sampled_from(["pass", "run", "blocked"])
FAILED = st.lists(st.sampled_from(["fail", "fail", "fail", "run", "pass"]), min_size=9, max_size=30)
BLOCKED = st.lists(st.sampled_from(["pass", "run", "blocked"]), min_size=9, max_size=60)


@reaches("failures", "max_blocked", "pass")
@given(st.lists(EVENTS, max_size=60) | st.lists(EVENTS, max_size=6) | FAILED | BLOCKED, st.integers(1, 4))
def test_c03_only_a_reset_ends_a_hold(events: list[str], most: int) -> None:
    guard, state, streak = Guard(max_failure_streak=most), GateState(), 0
    for event in events:
        held = state.state == "hold"
        if event == "fail":
            state, streak = guard.failed(state, "no", 1.0), streak + 1
        elif event == "pass":
            state, streak = guard.succeeded(state), 0
        else:
            state = guard.ended(state, run(blocked=event == "blocked"))
        assert state.state == "hold" or not held
        assert state.state == "hold" or streak < most
    reached(state.reason or "pass")
    again = reset(state, "ada", "the disk has room again", 9.0)
    assert (again.state, again.streak, again.by, again.reason) == (
        "pass",
        0,
        "ada",
        "the disk has room again",
    )
    assert (again.blocked, again.control, again.failures, again.since) == ((), {}, {}, 9.0)


def test_3_blocked_runs_of_the_last_32_hold() -> None:
    blocked = run(blocked=True)
    state = ended(GateState(), blocked, *[run() for _ in range(30)], blocked, blocked)  # 1 + 30 + 2
    assert state.state == "pass"
    state = ended(state, run(7, blocked=True))
    assert (state.state, state.reason, state.since) == ("hold", "max_blocked", 7.5)
    within = ended(GateState(), blocked, *[run() for _ in range(29)], blocked, run(9, blocked=True))
    assert (within.state, within.reason) == ("hold", "max_blocked")


def test_a_cancelled_run_says_nothing() -> None:
    gone = replace(run(blocked=True), status=LiveStatus.CANCELLED)
    assert ended(GateState(), gone, gone, gone) == GateState()


def test_a_selector_worse_than_control_holds_and_a_better_one_does_not() -> None:
    for better, expected in ((False, "hold"), (True, "pass")):
        rng, state = random.Random(4), GateState()
        for i in range(600):
            control = rng.random() < 0.1
            good = rng.random() < (0.8 if control != better else 0.4)
            state = ended(state, run(i, score=float(good), control=control))
        assert state.state == expected
        assert state.reason == ("" if better else "worse_than_control")


def fails_more(guard: Guard, selected: float, control: float, seed: int) -> GateState:
    """Return the state after 1,500 runs that fail at these rates, while the selector's rewards are better."""
    rng, state = random.Random(seed), GateState()
    for i in range(1500):
        is_control = rng.random() < 0.1
        failed = rng.random() < (control if is_control else selected)
        found = run(i, score=0.1 if is_control else 0.9, control=is_control)
        state = guard.ended(state, replace(found, status=LiveStatus.FAILED) if failed else found)
    return state


def test_runs_that_fail_more_often_than_those_of_the_control_hold() -> None:
    held = [fails_more(GUARD, 0.4, 0.05, seed) for seed in range(4)]
    assert {(state.state, state.reason) for state in held} == {("hold", "more_failures")}
    even = [
        fails_more(GUARD, rate, control, seed)
        for seed in range(4)
        for rate, control in ((0.3, 0.3), (0.1, 0.06), (0.0, 0.4))
    ]
    assert {state.state for state in even} == {"pass"}


def test_a_few_more_failures_are_let_pass() -> None:
    expected = bet({}, 1.0, control=False, margin=0.05)
    assert ended(GateState(), run()).failures == expected


def test_failures_do_not_hold_where_they_count_as_inferred() -> None:
    state = fails_more(Guard(count_failed=False), 0.4, 0.05, 0)
    assert (state.state, state.failures) == ("pass", {})


def test_a_run_without_a_choice_says_nothing_of_failures() -> None:
    assert ended(GateState(), replace(run(), choices=(), status=LiveStatus.FAILED)).failures == {}


def test_a_reward_that_comes_later_counts_once() -> None:
    late = run(control=True)
    unknown = ended(GateState(), replace(late, reward=None))
    assert unknown.control == {}
    assert GUARD.rewarded(unknown, late) == ended(GateState(), late)


def test_a_run_without_choices_says_nothing_of_them() -> None:
    state = ended(GateState(), replace(run(control=True), choices=()), replace(run(), trace=None))
    assert (state.blocked, state.control) == ((False, False), ended(GateState(), run()).control)


def test_held_it_learns_nothing_of_runs() -> None:
    held = GUARD.failed(GateState(streak=2), "no", 1.0)
    assert GUARD.rewarded(held, run(control=True)) == held
    assert ended(held, run(), run(blocked=True)) == held


def test_a_whole_cycle_of_a_held_gate_changes_nothing() -> None:
    held = GUARD.failed(GateState(streak=2), "no", 1.0)
    assert (held.state, held.streak) == ("hold", 3)
    assert GUARD.succeeded(held) == held


@pytest.mark.parametrize(("actor", "reason"), [("", "why"), (" ", "why"), ("ada", " ")])
def test_a_reset_names_who_and_why(actor: str, reason: str) -> None:
    with pytest.raises(ValueError, match="needs an actor and a reason"):
        reset(GateState(), actor, reason, 1.0)


def test_a_reset_lets_go_of_all_but_the_last_error_and_keeps_who_did_it_and_why() -> None:
    held = GUARD.failed(ended(GateState(streak=2), run(blocked=True)), "the disk is full", 1.0)
    assert (held.state, held.blocked) == ("hold", (True,))
    after = reset(held, "ada", "there is room again", 2.0)
    assert after == GateState(
        last_error="the disk is full", since=2.0, reason="there is room again", by="ada"
    )


@pytest.mark.parametrize("test", ["worse_than_control", "more_failures"])
def test_the_gate_holds_once_the_wealth_is_what_is_needed(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bet on a first control run that ends well wins a little."""
    worse = test == "worse_than_control"
    won = wealth(bet({}, 1.0, control=True, margin=0.0 if worse else MORE_FAILURES))
    name = "NEEDED" if worse else "NEEDED_OF_FAILURES"
    for needed, state in ((won, "hold"), (math.nextafter(won, 9.0), "pass")):
        monkeypatch.setattr(guard, name, needed)
        found = ended(GateState(), run(4, control=True))
        assert (found.state, found.reason) == (state, test if state == "hold" else "")
        assert found.since == (4.5 if state == "hold" else GateState().since)
