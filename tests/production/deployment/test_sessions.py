"""Sessions as a ramp counts them: once, settled, by what was known, and of one version alone."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.deployments import DrawnSession, minute, publish_sessions, ramp_of, reward_event

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.sessions import SettledSession, SettledSessions
from pytest_tfgrpo.production.view.view import LoopView


@pytest.fixture
def sessions() -> SettledSessions:
    return SettledSessions(ramp_of(), "v1")


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LoopView]:
    with closing(LoopView(tmp_path / "view.db")) as view:
        yield view


def read(sessions: SettledSessions, bus: Bus, view: LoopView, now: float) -> list[SettledSession]:
    view.catch_up(bus)
    return list(sessions.read(view, ramp_of(began=(minute(0), minute(60))), minute(now)))


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
        settled=minute(19),
        first=True,
        reward=pytest.approx(0.6),
        failed=False,
        blocked=False,
        seconds=7.0,
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
    assert [(one.settled, one.share) for one in read(sessions, bus, view, 75)] == [(minute(75), 0.1)]


def test_a_session_is_valued_by_what_was_known_when_it_settled(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    late, revised = DrawnSession("a", "v1", 1, known=12), DrawnSession("b", "v1", 2, reward=0.3)
    publish_sessions(bus, [late, revised, DrawnSession("c", at=3, reward=None)])
    bus.publish([reward_event(revised, 0.6, 2, 8), reward_event(revised, 0.9, 3, 30)])
    assert [one.reward for one in read(sessions, bus, view, 60)] == [None, 0.6, None]


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
    publish_sessions(bus, [DrawnSession("a", "v2", 1, seconds=300.0)])
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


def test_the_share_is_that_of_when_a_session_began(
    bus: Bus, view: LoopView, sessions: SettledSessions
) -> None:
    publish_sessions(bus, [DrawnSession("a", "v2", 59.5), DrawnSession("b", "v2", 61)])
    assert [one.share for one in read(sessions, bus, view, 99)] == [0.1, 0.25]


def test_whoever_looks_later_counts_the_same(bus: Bus, view: LoopView, sessions: SettledSessions) -> None:
    drawn = [DrawnSession(f"s{n}", ("v1", "v2")[n % 3 == 0], n / 7, reward=n / 100) for n in range(1, 90)]
    step_by_step = []
    for start in range(0, 90, 10):
        publish_sessions(bus, drawn[start : start + 10])
        step_by_step += read(sessions, bus, view, drawn[min(start + 9, 88)].at)
    step_by_step += read(sessions, bus, view, 60)
    assert step_by_step == read(SettledSessions(ramp_of(), "v1"), bus, view, 60)
    assert len(step_by_step) == 89
