"""The live store: what is kept of runs, what is refused, and that a rollout is used once."""

from __future__ import annotations

import gc
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.connections import is_closed
from support.live_events import RULES, Reporter, attributes, by_score, by_turns, outcome, reset, rules, runs

from pytest_tfgrpo.production.live.records import GateState, LiveStatus
from pytest_tfgrpo.production.live.store import store_file, store_reading
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store

NOW = 5000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LiveStore]:
    with closing(open_live_store(tmp_path / "live.db", "shop")) as opened:
        yield opened


def write(store: LiveStore, events, rules=RULES, now=NOW, lost=()):
    return store.write(events, rules=rules, now=now, lost=lost)


def update(store: LiveStore, rules=RULES, *, due=1, limit=64, wait=0.0, now=NOW):
    return store.update(rules.update, limit=limit, outcome_wait_s=wait, now=now, due=due)


def test_live_rl_c01_a_run_becomes_a_rollout_with_spans_and_a_final_status(store):
    report = write(store, runs("ticket-17"))
    (rollout,) = store.rollouts()
    assert report.ended == (rollout,)
    assert rollout.id == "live-rl-rollout-shop-0000000001"
    assert (rollout.run, rollout.category, rollout.status) == ("ticket-17", "billing", LiveStatus.SUCCEEDED)
    assert (rollout.prompt, rollout.reply) == ("Pay 7", "Paid")
    assert [choice.arm for choice in rollout.choices] == ["learned"]
    assert rollout.choices[0].propensity == 0.75
    assert [span.name.removeprefix("live.agent.") for span in store.spans(rollout.id)] == [
        "choice", "turn", "tool", "turn", "decision",
    ]  # fmt: skip
    assert [(a.number, a.status, a.ended_at) for a in store.attempts(rollout.id)] == [
        (1, LiveStatus.SUCCEEDED, 1005.0)
    ]
    assert report.refused == store.refusals() == {}
    assert store.rollout(rollout.id) == rollout
    assert store.rollout("live-rl-rollout-shop-2") is None
    assert store.rollout("live-rl-rollout-shop-0000000002") is None


def test_reward_inference_c03_the_decision_has_the_reward_and_its_components(store):
    write(store, runs("ticket-17"))
    (decision,) = attributes(store.spans("live-rl-rollout-shop-0000000001"), "live.agent.decision")
    assert decision == {
        "status": "succeeded",
        "reason": "",
        "reward": 0.4,
        "reward_completion": 0.5,
        "reward_reliability": -0.1,
        "reward_confidence": 0.75,
        "reward_strategy": "by_turns",
        "hard_gate": False,
    }


def test_live_rl_c02_an_update_is_due_after_the_interval_and_uses_a_rollout_once(store):
    write(store, runs(*"abcdefgh"))
    assert store.due() == 8
    first = update(store, due=8)
    assert first is not None
    assert first.executed
    assert first.used == tuple(f"live-rl-rollout-shop-{n:010}" for n in range(1, 9))
    assert (first.selector_before, first.selector_after, store.selector()) == (0, 1, (1, {"learned": 8}))
    assert update(store, due=1) is None
    write(store, runs("i"))
    second = update(store)
    assert second is not None
    assert second.used == ("live-rl-rollout-shop-0000000009",)
    assert store.updates() == (first, second)
    assert [rollout.used_in for rollout in store.rollouts()] == [1] * 8 + [2]
    assert store.selector(1) == (1, {"learned": 8})


def test_ids_go_on_where_the_store_ended(store):
    write(store, runs("a", "b"))
    store.close()
    with closing(open_live_store(store.path, "shop")) as again:
        write(again, runs("c"))
        assert [rollout.id[-2:] for rollout in again.rollouts()] == ["01", "02", "03"]
        assert again.rollout("live-rl-rollout-shop-0000000003").run == "c"


def test_a_run_is_cancelled_or_failed_for_a_reason(store):
    write(store, runs("a", status="failed", reason="ValueError") + runs("b", status="cancelled"))
    write(store, [Reporter("c").start()])
    statuses = [(r.status.value, r.reason) for r in store.rollouts()]
    assert statuses == [("failed", "ValueError"), ("cancelled", ""), ("running", "")]
    assert store.due() == 1, "a cancelled run teaches nothing"
    assert store.counts() == {
        "running": 1, "succeeded": 0, "failed": 1, "cancelled": 1, "used": 0, "control": 0,
    }  # fmt: skip
    assert [r.run for r in store.rollouts(status=LiveStatus.FAILED)] == ["a"]


def test_a_control_run_takes_no_part_in_updates(store):
    one = Reporter("a")
    write(store, [one.start(control=True), one.end()])
    assert store.due() == 0


def test_a_retry_opens_the_next_attempt_and_only_the_last_one_counts(store):
    one = Reporter("a")
    first = [one.start(), one.choice("bare"), one.tool("boom"), one.turn()]
    one.attempt = 2
    stale = one.turn()._replace(attempt=1)
    second = [one.event("retry"), one.choice("learned"), one.turn(), stale, one.end()]
    report = write(store, first + second)
    (rollout,) = report.ended
    assert (rollout.attempt, rollout.trace.turns, rollout.trace.tool_errors) == (2, 1, 0)
    assert [choice.arm for choice in rollout.choices] == ["learned"]
    assert [(a.status.value, a.reason) for a in store.attempts(rollout.id)] == [
        ("failed", "retried"),
        ("succeeded", ""),
    ]
    assert report.refused == {"stale_attempt": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"seq": -1}, {"seq": 2**63 - 1}, {"seq": 1.0}, {"seq": True},
        {"at": 7}, {"at": math.nan}, {"at": math.inf}, {"at": None},
        {"data": {"x": 1}}, {"kind": "tool"}, {"kind": "odd"}, {"run": ["a"]},
    ],
    ids=str,
)  # fmt: skip
def test_an_event_of_another_shape_is_refused_and_the_rest_is_taken(store, change):
    one = Reporter("a")
    write(store, [one.start()])
    report = write(store, [one.turn()._replace(**change), one.turn()._replace(seq=2**63 - 2), one.turn()])
    assert report.refused == {"malformed": 1}
    write(store, [one.event("turn", seq=0), one.end()])
    assert next(store.rollouts()).trace.turns == 3


def test_a_lost_event_of_a_run_that_is_not_known_or_has_ended_changes_nothing(store):
    write(store, runs("a"))
    report = write(store, [], lost=[Reporter("a").turn(), Reporter("b").turn()])
    assert report.refused == {"events_lost": 2}
    assert [(r.run, r.status.value) for r in store.rollouts()] == [("a", "succeeded")]


def test_a_retry_that_skips_or_repeats_an_attempt_is_refused(store):
    one = Reporter("a")
    write(store, [one.start()])
    for attempt, reason in ((3, "no_attempt"), (1, "duplicate"), (2, None), (2, "duplicate")):
        again = one.event("retry")._replace(attempt=attempt)
        assert write(store, [again]).refused == ({} if reason is None else {reason: 1})
    assert [a.number for a in store.attempts("live-rl-rollout-shop-0000000001")] == [1, 2]


def test_what_a_run_must_have_begun_for_is_refused_before_and_after(store):
    one, other = Reporter("a"), Reporter("b")
    late = one.event("retry")._replace(attempt=2)
    report = write(store, [late, other.end(), one.start()._replace(attempt=2), *runs("c")])
    assert report.refused == {"unknown_run": 2, "malformed": 1}
    again = Reporter("c").event("retry")._replace(attempt=2)
    assert write(store, [again, Reporter("c").end()]).refused == {"after_end": 2}
    assert [r.run for r in store.rollouts()] == ["c"]


def test_a_run_may_begin_without_a_prompt_and_is_no_control_unless_it_says_so(store):
    start = Reporter("a").start()
    write(store, [start._replace(data={"category": "billing"})], now=100.0)
    (run,) = store.rollouts()
    assert (run.prompt, run.control, run.started_at) == (None, False, start.at)
    (attempt,) = store.attempts(run.id)
    assert attempt.started_at == start.at


@pytest.mark.parametrize(("later", "expired"), [(109.0, 1), (110.0, 0)])
def test_that_a_run_goes_on_is_written_every_ten_seconds(store, later, expired):
    one = Reporter("a")
    write(store, [one.start()], now=100.0)
    write(store, [one.turn()], now=later)
    assert store.expire(105.0, rules=RULES, now=300.0) == expired


def test_a_retry_shows_that_a_run_goes_on(store):
    one = Reporter("a")
    write(store, [one.start()], now=100.0)
    one.attempt = 2
    write(store, [one.event("retry")], now=200.0)
    assert store.expire(150.0, rules=RULES, now=300.0) == 0


def test_a_lost_event_ends_a_run_that_an_earlier_batch_began(store):
    one = Reporter("a")
    write(store, [one.start()])
    write(store, [], lost=[one.turn()])
    assert [(r.status.value, r.reason) for r in store.rollouts()] == [("failed", "events_lost")]


def test_what_has_no_place_is_refused_with_a_counted_reason(store):
    one = Reporter("a")
    whole = one.whole()
    late = one.turn()
    ahead = Reporter("b", attempt=3)
    again = Reporter("b", attempt=1)
    stranger = Reporter("c")
    report = write(store, [
        *whole[:3], whole[2], whole[0], *whole[3:], late, whole[-1],
        Reporter("b").start(), ahead.turn(), ahead.event("retry"), again.event("retry"), stranger.turn(),
        outcome("nobody", 0.5),
    ])  # fmt: skip
    assert report.refused == {"duplicate": 3, "after_end": 2, "no_attempt": 2, "unknown_run": 2}
    write(store, whole)
    assert store.refusals() == {"after_end": 7, "duplicate": 4, "no_attempt": 2, "unknown_run": 2}
    assert store.rollout("live-rl-rollout-shop-0000000001").trace.turns == 2


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        (math.nan, "reward_not_a_number"),
        (math.inf, "reward_not_a_number"),
        ("0.5", "reward_not_a_number"),
        (None, "reward_not_a_number"),
        ([0.5], "reward_not_a_number"),
        (1.01, "reward_out_of_range"),
        (-0.01, "reward_out_of_range"),
    ],
)
def test_a_bad_reward_is_refused_and_a_good_one_may_follow(store, score, reason):
    write(store, runs("a"))
    assert write(store, [outcome("a", score), outcome("a", 0.5)]).refused == {reason: 1}
    assert next(store.rollouts()).trace.score == 0.5


def test_a_bad_score_at_the_end_leaves_the_run_without_one(store):
    report = write(store, runs("a", score=math.nan))
    assert report.refused == {"reward_not_a_number": 1}
    assert (report.ended[0].status, report.ended[0].trace.score) == (LiveStatus.SUCCEEDED, None)


@pytest.mark.parametrize("value", [True, False, "0.5", -1, math.nan, [1]], ids=str)
@pytest.mark.parametrize("key", ["cost_usd", "latency_ms"])
def test_an_amount_that_is_no_number_is_refused_by_its_key_and_the_run_ends_without_it(store, key, value):
    report = write(store, runs("a", **{key: value}))
    assert report.refused == {f"{key}_not_a_number": 1}
    assert report.ended[0].status is LiveStatus.SUCCEEDED
    assert getattr(report.ended[0].trace, key) is None


def test_a_reward_is_taken_once_until_the_run_is_used(store):
    write(store, [*runs("a"), outcome("a", True)])
    assert write(store, [outcome("a", 0.1)]).refused == {"reward_twice": 1}
    write(store, runs("b"))
    update(store)
    assert write(store, [outcome("b", 0.1)]).refused == {"reward_used": 1}
    assert [rollout.trace.score for rollout in store.rollouts()] == [1.0, None]


def test_an_outcome_is_of_the_newest_run_of_its_key_or_of_the_run_named(store):
    old, new = Reporter("a", owner="one"), Reporter("a", owner="two")
    write(store, [*old.whole(), *new.whole()])
    write(store, [outcome("a", 0.5), outcome("a", 0.25, owner="one")])
    assert [rollout.trace.score for rollout in store.rollouts()] == [0.25, 0.5]


def test_a_late_outcome_gives_the_reward_and_the_guard_looks_again(store):
    late = rules(infer=by_score)
    assert write(store, runs("a", "b"), late).ended[0].reward is None
    report = write(store, [outcome("a", 0.75)], late)
    rollout = store.rollout("live-rl-rollout-shop-0000000001")
    assert rollout.reward.composite == 0.5625
    (decision,) = attributes(store.spans(rollout.id), "live.agent.decision")
    assert (decision["reward"], decision["reward_strategy"]) == (0.5625, "by_score")
    assert report.gate.control == {"late": 1.0}
    assert report.gate.blocked == (False, False), "each run is in the window once"


def test_a_late_outcome_of_a_run_that_has_its_reward_shows_the_guard_nothing(store):
    counted = []
    at_once = rules(rewarded=lambda state, rollout: counted.append(rollout.id) or state)
    assert write(store, runs("a"), at_once).ended[0].reward is not None
    write(store, [outcome("a", 0.75)], at_once)
    assert next(store.rollouts()).trace.score == 0.75
    assert counted == []


def test_an_update_waits_for_outcomes_and_what_it_left_out_comes_back_with_its_own(store):
    late = rules(infer=by_score)
    write(store, runs("a", "b", "c"), late)  # they end at 1005
    write(store, [outcome("b", 0.5)], late)
    assert store.due(outcome_wait_s=100, now=1050) == 1
    first = update(store, late, wait=100, now=1050)
    assert first is not None
    assert first.used == ("live-rl-rollout-shop-0000000002",)
    assert store.due(outcome_wait_s=100, now=1106) == 2
    second = update(store, late, wait=100, now=1106)
    assert second is not None
    assert (second.executed, second.left_out) == (False, {"no_outcome": 2})
    assert store.due(outcome_wait_s=100, now=1106) == 0
    write(store, [outcome("a", 0.5)], late)
    assert store.due(outcome_wait_s=100, now=1106) == 1


def test_what_no_update_can_use_does_not_stay_in_the_way(store):
    late = rules(infer=by_score)
    write(store, runs(*"abcd"), late)
    assert not update(store, late, limit=4).executed
    write(store, [*runs("e"), outcome("e", 0.5)], late)
    assert update(store, late, limit=4).used == ("live-rl-rollout-shop-0000000005",)


def test_a_run_that_lost_an_event_fails_and_is_never_used(store):
    lost, unheard, whole = Reporter("lost"), Reporter("unheard"), Reporter("whole")
    events = lost.whole()
    report = write(
        store,
        [*events[:2], events[-1], *whole.whole()],
        lost=[events[2], unheard.start(), outcome("whole", 1)],
    )
    assert [(r.run, r.status.value, r.reason) for r in store.rollouts()] == [
        ("lost", "failed", "events_lost"),
        ("whole", "succeeded", ""),
        ("unheard", "failed", "events_lost"),
    ]
    assert report.refused == {"events_lost": 3}
    assert store.due() == 1
    assert write(store, [outcome("lost", 1.0)]).refused == {}
    assert store.due() == 1
    assert [r.reward is None for r in store.rollouts()] == [True, False, True]


def test_runs_without_events_time_out(store):
    write(store, [Reporter("a").start()], now=100.0)
    write(store, [Reporter("b").start()], now=200.0)
    assert store.expire(150.0, rules=RULES, now=300.0) == 1
    expired, alive = store.rollouts()
    assert (expired.status, expired.reason, expired.ended_at) == (LiveStatus.FAILED, "timeout", 300.0)
    assert not expired.trace.completed
    assert alive.status is LiveStatus.RUNNING
    assert store.due() == 1, "it shows what its arm does"
    write(store, [Reporter("b").event("turn", seq=1)], now=400.0)
    assert store.expire(350.0, rules=RULES, now=500.0) == 0


def test_live_rl_c03_held_nothing_is_collected_and_open_runs_are_cancelled_until_a_reset(store):
    one = Reporter("a")
    write(store, [one.start(), *runs("b")])
    store.change_gate(
        lambda _: GateState(state="hold", reason="failures", streak=3, last_error="disk full"), now=NOW
    )
    report = write(store, [one.turn(), Reporter("c").start()])
    assert (report.gate.state, report.refused) == ("hold", {"held": 2})
    assert [(r.run, r.status.value, r.reason) for r in store.rollouts()] == [
        ("a", "cancelled", "held"),
        ("b", "succeeded", ""),
    ]
    assert update(store) is None
    with closing(open_live_store(store.path, "shop")) as again:
        assert again.gate().last_error == "disk full"
        again.change_gate(reset, now=NOW)
    assert update(store) is not None
    assert [(state.state, state.by) for _, state in store.gate_journal()][-2:] == [
        ("hold", ""),
        ("pass", "ada"),
    ]


def test_what_a_collector_dropped_while_the_gate_held_is_counted(store):
    write(store, [Reporter("a").start()])
    assert store.cancel_open(NOW) == 0
    assert store.refusals() == {}
    assert [r.status for r in store.rollouts()] == [LiveStatus.RUNNING]
    store.change_gate(lambda _: GateState(state="hold", reason="failures"), now=NOW)
    assert store.cancel_open(NOW, dropped=5) == 1
    assert store.cancel_open(NOW, dropped=2) == 0
    assert store.refusals() == {"held": 7}


def test_the_guard_sees_every_run_end_and_may_hold(store):
    events = []
    for name in "abcd":
        one = Reporter(name)
        events += [one.start(), one.event("safety", blocked=True), one.end()]
    report = write(store, events)
    assert (report.gate.state, report.gate.reason) == ("hold", "max_blocked")
    assert all(rollout.trace.blocked for rollout in store.rollouts())
    assert len(store.gate_journal()) == 1, "the window itself is no entry"


def test_what_inference_raises_costs_the_reward_alone(store):
    report = write(store, runs("a"), rules(infer=lambda trace: 1 / 0))
    assert report.errors == ("ZeroDivisionError: division by zero",)
    assert (report.ended[0].status, report.ended[0].reward) == (LiveStatus.SUCCEEDED, None)


@pytest.mark.parametrize(
    "change",
    [
        {"composite": math.nan},
        {"composite": 1.5},
        {"composite": -1.0},
        {"components": {"completion": math.inf}},
        {"components": {"completion": "much"}},
        {"hard_gate": True},
        {"confidence": None},
    ],
)
def test_what_is_no_reward_is_stored_as_none(store, change):
    report = write(store, runs("a"), rules(infer=lambda trace: replace(by_turns(trace), **change)))
    assert report.errors[0].startswith("ValueError: a ")
    assert (report.ended[0].status, report.ended[0].reward) == (LiveStatus.SUCCEEDED, None)


def test_what_an_update_raises_leaves_the_store_as_it_was(store):
    write(store, runs("a"))
    with pytest.raises(ZeroDivisionError):
        update(store, rules(update=lambda *_: 1 / 0))
    assert (store.updates(), store.due()) == ((), 1)
    assert update(store).used == ("live-rl-rollout-shop-0000000001",)


def test_without_a_path_the_store_is_in_memory():
    with closing(open_live_store(None, "shop")) as store:
        write(store, runs("a"))
        assert update(store).executed


def test_a_forked_process_closes_the_connection_it_opened_and_leaves_its_parent_s_alone(store):
    """The child is played by the hook that a fork calls."""
    write(store, runs("a"))
    inherited = store._db
    store._after_fork()
    store.close()
    assert not is_closed(inherited)
    assert [rollout.run for rollout in store.rollouts()] == ["a"]
    opened = store._db
    assert opened is not inherited
    store.close()
    assert is_closed(opened)
    assert not is_closed(inherited)
    inherited.close()


def test_a_connection_of_a_parent_process_outlives_its_store(tmp_path, monkeypatch):
    """Letting go of the last reference closes a connection, which a child process must not do."""
    kept: list[sqlite3.Connection] = []
    monkeypatch.setattr(store_file, "_INHERITED", kept)
    store = open_live_store(tmp_path / "live.db", "shop")
    store._after_fork()
    store.close()
    del store
    gc.collect()
    (inherited,) = kept
    assert not is_closed(inherited)
    inherited.close()


def test_the_guards_memory_of_failures_is_kept_and_not_journalled(store):
    store.change_gate(lambda _: GateState(failures={"runs": 1.0}), now=NOW)
    store.change_gate(lambda _: GateState(failures={"runs": 2.0}), now=NOW)
    assert store.gate().failures == {"runs": 2.0}
    assert len(store.gate_journal()) == 1


def test_rollouts_are_read_page_by_page(store, monkeypatch):
    write(store, [*runs(*"abcde"), *runs(*"fg", status="failed")])
    monkeypatch.setattr(store_reading, "AT_ONCE", 2)
    found = lambda **how: "".join(one.run for one in store.rollouts(**how))  # noqa: E731
    assert found() == "abcdefg"
    assert [found(limit=limit) for limit in (0, 1, 2, 3, 4, 9)] == ["", "a", "ab", "abc", "abcd", "abcdefg"]
    assert (found(after=3), found(after=3, limit=3), found(status=LiveStatus.FAILED)) == ("defg", "def", "fg")


@pytest.mark.parametrize("value", [-0.5, math.nan, "1", None])
def test_a_cost_or_latency_that_is_none_is_not_known(store, value):
    write(store, runs("a", cost_usd=value, latency_ms=value))
    (rollout,) = store.rollouts()
    assert rollout.trace is not None
    assert (rollout.trace.cost_usd, rollout.trace.latency_ms) == (None, None)


def test_a_cost_of_nothing_is_known(store):
    write(store, runs("a", cost_usd=0, latency_ms=0.5))
    (rollout,) = store.rollouts()
    assert rollout.trace is not None
    assert (rollout.trace.cost_usd, rollout.trace.latency_ms) == (0.0, 0.5)


def test_the_length_of_a_reply_is_counted_where_it_is_not_said(store):
    one, other = Reporter("a"), Reporter("b")
    ends = [replaced(one.end(reply="Paid up")), replaced(other.end(reply=None))]
    write(store, [one.start(), other.start(), *ends])
    assert [run.trace.reply_chars for run in store.rollouts()] == [7, 0]


def replaced(end):
    """Return the end without the length of its reply."""
    return end._replace(data={key: value for key, value in end.data.items() if key != "reply_chars"})


@pytest.mark.parametrize(
    "change",
    [
        {"point": 1}, {"arm": "gone"}, {"arms": {"bare": "a", "learned": 2}}, {"selector": "0"},
        {"place": -1}, {"place": 2**63 - 1}, {"place": 0.0},
        {"probabilities": {"bare": 0.5, "learned": "0.5"}}, {"odd": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_choice_of_another_shape_is_refused(store, change):
    one = Reporter("a")
    start, choice = one.start(), one.choice()
    report = write(store, [start, choice._replace(data={**choice.data, **change}), one.end()])
    assert report.refused == {"malformed": 1}
    assert report.ended[0].choices == ()
