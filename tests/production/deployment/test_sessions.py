"""Sessions as a ramp counts them: once, settled, by what was known, and of one version alone."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.deployments import (
    DrawnSession,
    foreign_reward,
    minute,
    publish_sessions,
    ramp_of,
    reward_event,
    run_event,
)

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment import sessions as sessions_module
from pytest_tfgrpo.production.deployment.serving import Ramp
from pytest_tfgrpo.production.deployment.sessions import SettledSession, SettledSessions, located
from pytest_tfgrpo.production.view.view import LoopView


@pytest.fixture
def sessions() -> SettledSessions:
    return SettledSessions(ramp_of(), "v1")


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LoopView]:
    with closing(LoopView(tmp_path / "view.db")) as view:
        yield view


def read(
    sessions: SettledSessions, bus: Bus, view: LoopView, now: float, second: int = 10_000
) -> list[SettledSession]:
    """Return what settled; the second step began when the bus had a number of runs."""
    view.catch_up(bus)
    ramp = ramp_of(began=(minute(0), minute(60)), step_positions=(0, second))
    return list(sessions.read(view, ramp, minute(now)))


def test_a_session_settles_after_ten_idle_minutes_and_counts_once(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    first = DrawnSession("a", "v2", 1, reward=0.4)
    publish_sessions(bus, [first, first._replace(at=9, reward=0.8, run="second", seconds=7.0)])
    assert read(sessions, bus, view, 18.9) == []
    (found,) = read(sessions, bus, view, 19)
    assert found == SettledSession(
        canary=True,
        share=0.1,
        sequence=1,
        first=True,
        reward=pytest.approx(0.6),
        failed=False,
        blocked=False,
        seconds=7.0,
        settled=minute(19),
    )
    publish_sessions(bus, [first._replace(at=40, run="third")])
    assert read(sessions, bus, view, 60) == []


def test_sessions_of_two_versions_of_others_or_from_before_are_of_no_arm(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    both = DrawnSession("both", "v1", 1)
    before = DrawnSession("before", "v1", -30)
    publish_sessions(
        bus,
        [
            *(both, both._replace(version="v2", run="other")),
            DrawnSession("unnamed", None),
            DrawnSession("third", "v7"),
            *(before, before._replace(at=2, run="later")),
            DrawnSession("across", "v1", 1, seconds=90.0),
            DrawnSession("good", "v1", 2),
        ],
    )
    assert [one.settled for one in read(sessions, bus, view, 30)] == [minute(12)]


def test_runs_may_come_in_any_order(bus: Bus, view: LoopView, sessions: SettledSessions) -> None:
    last = DrawnSession("a", "v1", 65)
    publish_sessions(bus, [last, last._replace(at=58, run="first")])
    assert read(sessions, bus, view, 70) == []
    (one,) = read(sessions, bus, view, 75, 1)
    assert (one.settled, one.share) == (minute(75), 0.1)


def test_a_session_is_valued_by_what_was_known_when_it_settled(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    revised = DrawnSession("b", "v1", 2, reward=0.3)
    publish_sessions(bus, [revised, DrawnSession("c", at=3, reward=None)])
    bus.publish([reward_event(revised, 0.6, 2, 8), reward_event(revised, 0.9, 3, 30)])
    assert [one.reward for one in read(sessions, bus, view, 60)] == [0.6, None]
    bus.publish([reward_event(revised, 0.1, 4, 90)])
    assert read(sessions, bus, view, 99) == []


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize(("known", "was"), [(12, "waiting"), (1451, "waiting"), (1452, "too late")])
def test_the_first_reward_counts_once_if_it_comes_within_a_day_whoever_looks_when(
    bus: Bus, view: LoopView, sessions: SettledSessions, known: float, was: str, version: str
) -> None:
    one = DrawnSession("a", version, 1, reward=None)
    second = one._replace(run="second")
    publish_sessions(bus, [one, second])
    (new,) = read(sessions, bus, view, 11)
    assert (new.was, new.reward, new.settled) == ("new", None, minute(11))
    assert read(sessions, bus, view, 1400) == []
    bus.publish([reward_event(one, 0.2, 1, known), reward_event(one, 0.9, 2, known + 1)])
    bus.publish([reward_event(second, 0.4, 1, known), reward_event(second, 0.1, 2, known + 1)])
    (late,) = read(sessions, bus, view, 1500)
    counts = was == "waiting"
    assert late == new._replace(was=was, reward=pytest.approx(0.3) if counts else None)
    bus.publish([reward_event(second, 0.6, 3, 1501)])
    assert read(sessions, bus, view, 1600) == []
    assert read(SettledSessions(ramp_of(), "v1"), bus, view, 1600) == [new, late]


def test_a_reward_of_before_that_reaches_the_bus_late_counts(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    one = DrawnSession("a", "v1", 1, reward=None)
    publish_sessions(bus, [one])
    assert [one.reward for one in read(sessions, bus, view, 30)] == [None]
    bus.publish([reward_event(one, 0.5, 1, 2)])
    assert [(one.reward, one.was) for one in read(sessions, bus, view, 40)] == [(0.5, "waiting")]


def test_sessions_are_counted_in_the_order_in_which_they_were_rewarded(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    late = DrawnSession("a", "v1", 1, known=40, reward=0.1)
    publish_sessions(bus, [late, DrawnSession("b", "v1", 20, reward=0.2)])
    found = read(sessions, bus, view, 60)
    assert [(one.reward, one.was) for one in found] == [(None, "new"), (0.2, "new"), (0.1, "waiting")]


def test_no_clock_that_is_set_back_keeps_runs_of_the_ramp_from_counting(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    publish_sessions(bus, [DrawnSession("a", "v2", 5)])
    assert read(sessions, bus, view, 6) == []
    publish_sessions(bus, [DrawnSession("b", "v2", -120), DrawnSession("c", "v1", -119)])
    found = read(sessions, bus, view, -110)
    assert [(one.canary, one.sequence) for one in found] == [(True, 2)]
    found = read(sessions, bus, view, -100)
    assert [(one.canary, one.sequence) for one in found if one.reward] == [(False, 3), (True, 1)]
    ramp = ramp_of(began=(minute(0), minute(60)), step_positions=(0, 2))
    assert [one.share for one in SettledSessions(ramp, "v1").read(view, ramp, minute(900))] == [
        0.1,
        0.25,
        0.1,
    ]


def test_what_came_to_the_bus_before_the_ramp_is_none_of_it_whatever_its_clock_says(
    bus: Bus, view: LoopView
) -> None:
    early, revised = DrawnSession("a", "v1", 5), DrawnSession("b", "v1", 5)
    last = DrawnSession("last", "v1", 5)
    publish_sessions(bus, [early, revised, last])
    bus.publish([run_event(one._replace(run="next", at=6)) for one in (early, last)])
    bus.publish([run_event(revised, revision=2)])
    publish_sessions(bus, [DrawnSession("c", "v1", 7)])
    ramp = ramp_of(step_positions=(3,))
    assert [one.sequence for one in read_ramp(ramp, bus, view, 60)] == [7]


def test_a_run_that_is_published_again_counts_where_it_came_first(bus: Bus, view: LoopView) -> None:
    one = DrawnSession("a", "v1", 5)
    publish_sessions(bus, [one, DrawnSession("b", "v1", 5)])
    bus.publish([run_event(one, revision=2), run_event(one, revision=3)])
    ramp = ramp_of(began=(minute(0), minute(60)), step_positions=(0, 2))
    assert [(one.sequence, one.share) for one in read_ramp(ramp, bus, view, 60)] == [(1, 0.1), (2, 0.1)]


def test_a_row_of_an_earlier_release_has_its_positions_by_when_runs_arrived(bus: Bus, view: LoopView) -> None:
    publish_sessions(bus, [DrawnSession("a", "v1", 5)])
    view.catch_up(bus)
    before = ramp_of(step_positions=())
    assert located(view, before) == replace(before, step_positions=(0,))
    both = ramp_of(began=(minute(0), "2099-01-01T00:00:00.000Z"), step_positions=())
    assert located(view, both).step_positions == (0, 1)
    after = ramp_of(began=("2099-01-01T00:00:00.000Z",), since="2099-01-01T00:00:00.000Z", step_positions=())
    assert located(view, after) == replace(
        after, step_positions=(1,), since_position=1, said_positions=(0, 1)
    )


def read_ramp(ramp: Ramp, bus: Bus, view: LoopView, now: float) -> list[SettledSession]:
    view.catch_up(bus)
    return [*SettledSessions(ramp, "v1").read(view, ramp, minute(now))]


@pytest.mark.parametrize(("total", "counts"), [(1.0, 1.0 + 9e-7), (0.0, -9e-7)])
def test_a_reward_that_was_rounded_beyond_its_range_counts_as_its_end(
    bus: Bus, view: LoopView, sessions: SettledSessions, total: float, counts: float
) -> None:
    one = DrawnSession("a", "v1", 1, reward=None)
    event = reward_event(one, total)
    publish_sessions(bus, [one])
    bus.publish(
        [replace(event, data=json.dumps({**json.loads(event.data), "total_reward": counts}).encode())]
    )
    assert [one.reward for one in read(sessions, bus, view, 30)] == [total]


def test_a_session_whose_runs_from_before_were_forgotten_is_of_no_arm(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    publish_sessions(bus, [DrawnSession("a", "v1", 1, seconds=300.0)])
    assert read(sessions, bus, view, 5) == []
    view.rows("DELETE FROM trajectories RETURNING 1", ())
    assert read(sessions, bus, view, 30) == []


def test_what_a_run_of_it_met_is_the_sessions(bus: Bus, view: LoopView, sessions: SettledSessions) -> None:
    first = DrawnSession("a", "v1", 1)
    publish_sessions(
        bus, [first, first._replace(run="bad", failed=True), first._replace(run="x", blocked=True)]
    )
    publish_sessions(bus, [DrawnSession("b", "v2", 2, failed=True)])
    found = read(sessions, bus, view, 30)
    assert [(one.failed, one.blocked, one.canary) for one in found] == [
        (True, True, False),
        (True, False, True),
    ]


def test_of_one_user_two_sessions_a_day_count_in_both_arms_together(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    drawn = [DrawnSession(f"s{n}", ("v1", "v2")[n % 2], 1 + n / 10, user="u-hostile") for n in range(40)]
    publish_sessions(
        bus, [*drawn, *(one._replace(name=f"{one.name}-next", at=one.at + 1440) for one in drawn)]
    )
    found = read(sessions, bus, view, 3000)
    assert [one.first for one in found] == [True, False, False, False]
    assert [one.canary for one in found] == [False, True, False, True]


def test_sessions_of_unknown_users_are_of_no_further_user(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    publish_sessions(bus, [DrawnSession(f"s{n}", "v2", 2, user=None) for n in range(5)])
    assert [one.first for one in read(sessions, bus, view, 99)] == [False] * 5


def test_the_share_is_that_of_the_step_in_which_a_session_came_first(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    publish_sessions(bus, [DrawnSession("a", "v2", 59.5), DrawnSession("b", "v2", 61)])
    assert [one.share for one in read(sessions, bus, view, 99, 1)] == [0.1, 0.25]


def test_whoever_looks_later_counts_the_same(bus: Bus, view: LoopView, sessions: SettledSessions) -> None:
    drawn = [DrawnSession(f"s{n}", ("v1", "v2")[n % 3 == 0], n / 7, reward=n / 100) for n in range(1, 90)]
    step_by_step = []
    for start in range(0, 90, 10):
        publish_sessions(bus, drawn[start : start + 10])
        step_by_step += read(sessions, bus, view, drawn[min(start + 9, 88)].at)
    step_by_step += read(sessions, bus, view, 60)
    assert step_by_step == read(SettledSessions(ramp_of(), "v1"), bus, view, 60)
    assert len(step_by_step) == 89


@pytest.mark.parametrize("first", [0, 1])
def test_a_session_with_a_run_from_before_the_ramp_is_of_no_arm_whichever_run_comes_first(
    bus: Bus, view: LoopView, sessions: SettledSessions, first: int
) -> None:
    runs = [DrawnSession("a", "v1", 1), DrawnSession("a", "v1", 2, seconds=300.0, run="long")]
    publish_sessions(bus, [runs[first], runs[1 - first]])
    assert read(sessions, bus, view, 30) == []


def test_a_session_is_that_of_the_user_who_was_named_first(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    one = DrawnSession("a", "v2", 1, user="u")
    further = [one._replace(run="next", user="w"), one._replace(run="last", user=None)]
    publish_sessions(bus, [one, *further, DrawnSession("b", "v2", 2, user="u")])
    assert [found.first for found in read(sessions, bus, view, 30)] == [True, False]


def test_rewards_of_other_evaluators_value_no_session(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    judged, both = DrawnSession("a", "v1", 1, reward=None), DrawnSession("b", "v1", 2, reward=0.8)
    publish_sessions(bus, [judged, both])
    bus.publish([foreign_reward(one, 0.0, "judge") for one in (judged, both)])
    assert [one.reward for one in read(sessions, bus, view, 30)] == [None, 0.8]


def test_the_newest_revision_counts_though_an_older_one_comes_later(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    one = DrawnSession("a", "v1", 1, reward=None)
    publish_sessions(bus, [one])
    bus.publish([reward_event(one, 0.9, 2, 3)])
    bus.publish([reward_event(one, 0.3, 1, 2)])
    assert [found.reward for found in read(sessions, bus, view, 30)] == [0.9]


def test_all_sessions_are_valued_however_many_a_query_takes(
    bus: Bus, view: LoopView, sessions: SettledSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "_AT_ONCE", 2)
    drawn = [DrawnSession(f"s{n}", "v1", 1 + n, reward=n / 10) for n in range(5)]
    publish_sessions(
        bus, [*drawn, *(one._replace(run="next", reward=0.1 + n / 10) for n, one in enumerate(drawn))]
    )
    found = read(sessions, bus, view, 60)
    assert [one.reward for one in found] == [pytest.approx(0.05 + n / 10) for n in range(5)]
