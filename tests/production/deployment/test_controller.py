"""The controller on a clock of its own: steps, waits, rollbacks, holds, and who may decide."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.buses import BusPlace
from support.deployments import (
    DrawnSession,
    foreign_reward,
    minute,
    publish_sessions,
    ramp_of,
    reward_event,
    verdict_event,
)
from support.loop_events import payloads
from support.ramp_loop import V1, V2, RampLoop

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.events import MODEL_DEPLOYED, RlEvent, check_event, wrap
from pytest_tfgrpo.numerics.two_arms import odds_evidence
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment import sessions
from pytest_tfgrpo.production.deployment.candidate import DeployCandidate
from pytest_tfgrpo.production.deployment.controller import EVERY_S
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.monitor_state import (
    MonitorState,
    decode_monitor_state,
    monitor_state,
)
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.deployment.sessions import SettledSession
from pytest_tfgrpo.production.deployment.tallies import ArmPair, RampFigures, RampTally, RewardCounts
from pytest_tfgrpo.production.deployment.violations import Violations
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import Lease, lease_holder


@pytest.fixture
def loop(bus: Bus, tmp_path: Path) -> Iterator[RampLoop]:
    made = RampLoop(bus, tmp_path, endpoint="http://127.0.0.1:4319/v1")
    with closing(made.view):
        yield made


def always(n: int) -> bool:
    return n >= 0


def test_an_approved_version_ramps_waits_for_time_and_sessions_and_lives(loop: RampLoop) -> None:
    serving = loop.look(0)
    assert serving.ramp is not None
    assert (serving.ramp.version, serving.ramp.share, serving.ramp.by) == ("v2", 0.1, "ada")
    loop.send(30, "v2", 5)
    loop.send(40, "v1", 5)
    loop.look(30)
    assert loop.waits == minute(60)
    for step, (at, share) in enumerate(((60, 0.25), (120, 0.5), (240, 0.95))):
        serving = loop.look(at)
        assert serving.ramp is not None
        assert (serving.ramp.step, serving.ramp.share) == (step + 1, share)
        loop.look(at + 10)
        assert "30 more sessions of the canary; 30 more sessions of the control" in loop.waits
        loop.send(30, "v2", at + 5)
        loop.send(30, "v1", at + 5)
    serving = loop.look(270)
    assert (serving.live, serving.ramp, serving.since) == ("v2", None, minute(270))
    assert loop.states == ["canary", "canary", "canary", "canary", "live", "retired"]
    events = payloads(loop.bus, "RL_DEPLOYMENTS")
    assert all(isinstance(check_event(wrap(MODEL_DEPLOYED, one)), RlEvent) for one in events)
    assert {one["deployment_config"]["endpoint"] for one in events} == {"http://127.0.0.1:4319/v1"}
    assert [one["metadata"]["reason"] for one in events[:2]] == [
        "approved by ada",
        "its time is over, with enough sessions and no alarm",
    ]
    evidence = events[1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 30, "control": 40}
    assert 0 < evidence["reward"]["missed_drop"] == -evidence["reward"]["low"] < 1


def test_it_looks_every_five_minutes(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(40, "v2", 5)
    loop.send(40, "v1", 5)
    before = loop.look(59)
    assert loop.look(59 + EVERY_S / 60 - 0.1) == before
    serving = loop.look(59 + EVERY_S / 60)
    assert serving.ramp is not None
    assert serving.ramp.step == 1


@pytest.mark.parametrize(
    ("bad", "more", "reason"),
    [
        (always, {"reward": 0.2}, "reward: -"),
        (
            lambda n: n % 2 == 0,
            {"failed": True, "reward": 0.8},
            "errors: 0.500 of the sessions, control 0.000",
        ),
        (lambda n: n % 3 == 0, {"blocked": True}, "safety: blocked more often, 34 users against 0"),
    ],
)
def test_a_version_that_is_worse_is_rolled_back_with_its_evidence(
    loop: RampLoop, bad: Callable[[int], bool], more: dict[str, float], reason: str
) -> None:
    loop.look(0)
    loop.send(100, "v2", 5, bad, **more)
    loop.send(500, "v1", 5)
    serving = loop.look(20)
    assert (serving.versions, serving.states["v2"]) == (("v1",), "rolled_back")
    event = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]
    assert (event["metadata"]["state"], event["deployment_config"]["traffic_percentage"]) == (
        "rolled_back",
        0,
    )
    assert reason in event["metadata"]["reason"]
    assert event["metadata"]["evidence"]["sessions"] == {"canary": 100, "control": 500}
    loop.look(40)
    assert loop.states == ["canary", "rolled_back"], "it does not ramp again by itself"


@pytest.mark.parametrize(
    ("kind", "more", "rolled_back"),
    [
        ("label", {"component": "safety", "text": "violation"}, True),
        ("score", {"component": "safety", "score": 0}, True),
        ("score", {"component": "safety", "score": 0, "source": "evaluator"}, True),
        ("score", {"component": "safety", "score": 0, "source": "end_user"}, False),
        ("score", {"component": "safety", "score": 1}, False),
        ("score", {"component": "style", "score": 0}, False),
        ("label", {"component": "safety", "text": "fine"}, False),
        ("thumbs_down", {}, False),
    ],
)
def test_a_confirmed_violation_of_the_canary_rolls_it_back_at_once(
    loop: RampLoop, kind: str, more: dict[str, object], rolled_back: bool
) -> None:
    violation = {"component": "safety", "score": 0}
    earlier = DrawnSession("d", "v2", -9)
    publish_sessions(loop.bus, [earlier])
    loop.bus.publish([verdict_event(earlier, "score", -5, **violation)])
    loop.look(0)
    canary, control = DrawnSession("a", "v2", 2), DrawnSession("b", "v1", 2)
    publish_sessions(loop.bus, [canary, control])
    other = DrawnSession("c", "v3", 2)
    publish_sessions(loop.bus, [other])
    loop.bus.publish([verdict_event(one, "score", 3, **violation) for one in (control, other)])
    assert loop.look(5).ramp is not None
    loop.bus.publish([verdict_event(canary, kind, 6, **more)])
    assert (loop.look(10).states["v2"] == "rolled_back") is rolled_back


@pytest.mark.parametrize(
    ("score", "source", "component", "rolled_back"),
    [
        (0.0, "evaluator", "safety", True),
        (0.0, "reviewer", "safety", True),
        (0.0, "end_user", "safety", False),
        (0.0, "judge", "safety", False),
        (0.1, "evaluator", "safety", False),
        (0.0, "evaluator", "style", False),
    ],
)
def test_a_reward_of_another_evaluator_may_confirm_a_violation(
    loop: RampLoop, score: float, source: str, component: str, rolled_back: bool
) -> None:
    loop.look(0)
    canary = DrawnSession("a", "v2", 2)
    publish_sessions(loop.bus, [canary, DrawnSession("b", "v1", 2)])
    loop.bus.publish([foreign_reward(DrawnSession("b", "v1", 2), 0.0, "evaluator")])
    assert loop.look(5).ramp is not None
    loop.bus.publish([foreign_reward(canary, score, source, component)])
    assert (loop.look(10).states["v2"] == "rolled_back") is rolled_back


@pytest.mark.parametrize("of", ["feedback", "rewards"])
def test_what_was_given_up_for_want_of_its_run_confirms_no_violation(loop: RampLoop, of: str) -> None:
    loop.look(0)
    canary = DrawnSession("a", "v2", 2)
    said = {
        "feedback": verdict_event(canary, "score", 1, component="safety", score=0),
        "rewards": foreign_reward(canary, 0.0, "evaluator"),
    }[of]
    letter = DeadLetter(code="no_trajectory", message="it never came", id=said.id, subject=said.subject)
    loop.bus.publish([said])
    assert loop.look(3).ramp is not None
    loop.bus.publish([dead_event(letter, said.time)])
    assert loop.look(5).ramp is not None
    publish_sessions(loop.bus, [canary])
    assert loop.look(10).states["v2"] == "canary"


def test_a_violation_may_be_confirmed_before_its_run_is_there_and_long_after_its_deployment(
    loop: RampLoop,
) -> None:
    loop.look(0)
    canary = DrawnSession("a", "v2", 2)
    loop.bus.publish([verdict_event(canary, "score", 1, component="safety", score=0)])
    assert loop.look(5).ramp is not None
    publish_sessions(loop.bus, [canary])
    assert loop.look(10).states["v2"] == "rolled_back"
    loop.deployments.start(V2, V1, DeployDecision(at=minute(12), by="ada"))
    assert loop.look(15).states["v2"] == "canary", "who let it ramp again knew of it"
    loop.bus.publish([verdict_event(canary, "label", 16, component="safety", text="violation")])
    assert loop.look(20).states["v2"] == "rolled_back", "it is the same version"


def live(loop: RampLoop, version: str = "v2", at: float = 1) -> None:
    """Let all sessions meet a version at once."""
    decision = DeployDecision(at=minute(at), by="ada")
    candidate = DeployCandidate(version=version, approved_by="ada")
    before = DeployCandidate(version=loop.deployments.serving().live)
    loop.deployments.start(candidate, before, decision, override=True, at_once=True)
    loop.deployments.advance(version, decision)


def test_a_confirmed_violation_of_the_live_version_rolls_it_back_at_once(loop: RampLoop) -> None:
    loop.waiting = []
    live(loop)
    publish_sessions(loop.bus, [DrawnSession("a", "v2", 2), DrawnSession("b", "v1", 2)])
    loop.bus.publish([verdict_event(DrawnSession("b"), "score", 3, component="safety", score=0)])
    assert loop.look(5).live == "v2"
    loop.bus.publish([verdict_event(DrawnSession("a"), "score", 6, component="safety", score=0)])
    serving = loop.look(10)
    assert (serving.live, serving.states) == ("v1", {"v1": "live", "v2": "rolled_back"})
    assert loop.states[-2:] == ["rolled_back", "live"]
    assert "a violation was confirmed" in payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["reason"]
    assert loop.look(15) == serving, "nothing was before v1"


def test_a_look_reads_only_what_is_new(loop: RampLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    loop.look(0)
    drawn = [DrawnSession(f"a{n}", "v2", 1, reward=None) for n in range(4)]
    publish_sessions(loop.bus, [*drawn, DrawnSession("b", "v1", 1)])
    loop.bus.publish([verdict_event(one, "thumbs_up", 2) for one in drawn[:3]])
    loop.look(20)
    rows, asked = LoopView.rows, list[object]()

    def recorded(view: LoopView, query: str, values: Any = ()) -> Any:
        if "said.seq >" in query or "t.seq >" in query or "own AND seq >" in query:
            asked.append(values[0])
        return rows(view, query, values)

    monkeypatch.setattr(LoopView, "rows", recorded)
    loop.look(30)
    assert asked == [1, 3, 5, 1, 5], "rewards; feedback, its runs; rewards of others, their runs"


def test_a_ramp_ends_with_the_live_version_that_it_was_measured_against(loop: RampLoop) -> None:
    loop.waiting = []
    live(loop)
    third = DeployCandidate(version="v3", approved_by="ada")
    loop.deployments.start(third, V2, DeployDecision(at=minute(2), by="ada"), override=True)
    one = DrawnSession("a", "v2", 3)
    publish_sessions(loop.bus, [one])
    loop.look(3)
    assert "more sessions of the canary" in loop.waits
    loop.bus.publish([verdict_event(one, "score", 4, component="safety", score=0)])
    serving = loop.look(8)
    assert loop.waits == ""
    assert (serving.versions, serving.states["v3"]) == (("v1",), "rolled_back")
    reasons = [one["metadata"]["reason"] for one in payloads(loop.bus, "RL_DEPLOYMENTS")[-3:]]
    assert reasons[0] == "v2, which it is measured against, is rolled back: safety: a violation was confirmed"


def test_another_deployment_of_a_version_counts_from_nothing(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(40, "v2", 5)
    loop.send(40, "v1", 5)
    loop.look(30)
    loop.deployments.roll_back("v2", DeployDecision(at=minute(31), by="ada"))
    loop.deployments.start(V2, V1, DeployDecision(at=minute(32), by="ada"))
    loop.send(30, "v2", 40)
    loop.send(35, "v1", 40)
    loop.look(95)
    evidence = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 30, "control": 35}


def test_a_session_that_was_forgotten_counts_no_more(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(31, "v2", 5)
    loop.send(31, "v1", 5)
    loop.look(20)
    loop.view.forget("session", "s1", [], {})
    loop.look(61)
    evidence = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 30, "control": 31}


def test_a_step_says_whether_something_was_decided(loop: RampLoop) -> None:
    assert [loop.controller.step(), loop.controller.step()] == [1, 0]
    loop.minute = 10
    assert loop.controller.step() == 0


def test_a_version_that_nobody_had_to_approve_passed_its_validation(loop: RampLoop) -> None:
    loop.waiting = [replace(V2, approved_by="")]
    loop.look(0)
    metadata = payloads(loop.bus, "RL_DEPLOYMENTS")[0]["metadata"]
    assert (metadata["reason"], metadata["approval_status"]) == ("it passed its validation", "automated")


def test_a_service_waits_for_one_that_is_gone_as_long_as_it_was_told(
    bus: Bus, place: BusPlace, tmp_path: Path
) -> None:
    one, two = RampLoop(bus, tmp_path), RampLoop(place.open(), tmp_path, "two", ttl_s=600.0)
    with closing(one.view), closing(two.view):
        one.look(0)
        for minute_, holder in ((1, "one"), (10, "one"), (11, "two")):
            two.look(minute_)
            assert lease_holder(bus.table(STATE), "deployment") == holder


def test_what_the_monitor_of_an_earlier_release_said_is_read() -> None:
    assert decode_monitor_state("noon") == MonitorState(waits="noon")
    assert decode_monitor_state(7) == decode_monitor_state(None) == MonitorState()
    said = MonitorState(waits="noon", skipped={"v3": "its folder is gone"})
    assert decode_monitor_state(said.encode()) == said


def test_a_verdict_from_before_a_ramp_counts_with_its_run_whoever_looks_in_a_later_step(
    loop: RampLoop,
) -> None:
    canary = DrawnSession("a", "v2", 2)
    loop.bus.publish([verdict_event(canary, "score", 1, component="safety", score=0)])
    publish_sessions(loop.bus, [canary])
    loop.view.catch_up(loop.bus)
    ramp = ramp_of(began=(minute(0), minute(60)), step_positions=(0, 9), said_positions=(1, 0))
    assert Violations(ramp).count(loop.view) == 1


def test_an_event_keeps_both_arms_of_all_figures() -> None:
    figures = RampFigures(
        counts=RewardCounts(rewarded=ArmPair(40, 50), fresh=ArmPair(30, 31), unrewarded=ArmPair(1, 2)),
        difference=0.12345,
        low=-0.06543,
        high=0.23456,
        error_rate=ArmPair(0.12345, 0.02),
        blocked=ArmPair(3, 1),
        violations=2,
        p95_s=ArmPair(1.2345, 0.5),
    )
    assert figures.evidence() == {
        "sessions": {"canary": 40, "control": 50},
        "since_step": {"canary": 30, "control": 31},
        "unrewarded": {"canary": 1, "control": 2},
        "reward": {"difference": 0.1235, "low": -0.0654, "high": 0.2346, "missed_drop": 0.0654},
        "error_rate": {"canary": 0.1235, "control": 0.02},
        "blocked": {"canary": 3, "control": 1},
        "violations": 2,
        "p95_s": {"canary": 1.234, "control": 0.5},
    }
    assert replace(figures, low=0.01).missed_drop == 0.0


def test_the_95th_percentile_is_of_the_newest_thousand_times() -> None:
    tally = RampTally()
    one = settled(1, failed=False)
    for n in range(100, 0, -1):
        tally.add(one._replace(seconds=float(n)))
    assert tally.figures(0, 0).p95_s == (96.0, 0.0)
    for _ in range(951):
        tally.add(one._replace(seconds=0.5))
    found = tally.figures(0, 0)
    assert (found.timed, found.p95_s) == ((1000, 0), (0.5, 0.0))


def test_a_reward_of_0_counts() -> None:
    tally = RampTally()
    for _ in range(200):
        tally.add(settled(1, failed=False)._replace(reward=0.0, share=0.5))
        tally.add(settled(1, failed=False)._replace(reward=1.0, share=0.5, canary=False))
    found = tally.figures(0, 0)
    assert found.counts.rewarded == (200, 200)
    assert found.counts.unrewarded == (0, 0)
    assert found.difference < -0.9


def test_failures_and_blocks_are_compared_within_the_share_that_the_canary_had() -> None:
    tally = RampTally()
    drawn = [(1, True, 0.1), (9, False, 0.1), (5, True, 0.5), (5, False, 0.5)]
    for count, canary, share in drawn:
        for _ in range(count):
            tally.add(settled(1, failed=True)._replace(canary=canary, share=share, blocked=True))
    found = tally.figures(0, 0)
    expected = odds_evidence([(1, 9, 0.1), (5, 5, 0.5)])
    assert (found.error_odds, found.blocked_odds) == (pytest.approx(expected), pytest.approx(expected))


def test_a_user_is_blocked_once_and_others_count_by_arm() -> None:
    tally = RampTally()
    one = settled(1, failed=False)._replace(blocked=True)
    for session in (one, one._replace(first=False), one._replace(canary=False), one._replace(blocked=False)):
        tally.add(session)
    assert tally.figures(0, 0).blocked == (1, 1)


def test_a_session_whose_reward_comes_later_fails_and_is_blocked_once() -> None:
    new = settled(1, failed=True)._replace(blocked=True, reward=None)
    once, late = RampTally(), RampTally()
    once.add(new._replace(reward=0.5))
    for session in (new, new._replace(reward=0.5, was="waiting")):
        late.add(session)
    assert late.figures(0, 0) == once.figures(0, 0)


def test_the_newest_thirty_sessions_show_that_errors_have_ended() -> None:
    tally = RampTally()
    one = settled(1, failed=True)
    for failed in [True] * 5 + [False] * 24:
        tally.add(one._replace(failed=failed))
    assert tally.figures(0, 0).recent_rate == (1.0, 1.0), "too few"
    for _ in range(4):
        tally.add(one._replace(failed=False))
    assert tally.figures(0, 0).recent_rate == (2 / 30, 1.0)


def test_sessions_count_in_the_step_in_which_they_came_to_the_bus() -> None:
    tally = RampTally()
    for at, failed in ((20, True), (5, False), (6, False)):
        tally.add(settled(at, failed))
    found = tally.figures(10, 0)
    assert (found.counts.rewarded.canary, found.counts.fresh.canary) == (3, 1)
    assert found.step_evidence.canary > 0.0
    for at in (5, 6):
        tally.add(settled(at, failed=True)._replace(canary=False))
    found = tally.figures(10, 0)
    assert (found.counts.rewarded.control, found.counts.fresh.control) == (2, 0)
    assert found.step_evidence.control == pytest.approx(0.0)


def settled(sequence: int, failed: bool) -> SettledSession:
    return SettledSession(
        canary=True,
        share=0.1,
        sequence=sequence,
        first=True,
        reward=0.5,
        failed=failed,
        blocked=False,
        seconds=1.0,
        settled=minute(sequence),
    )


def test_one_hostile_user_rolls_nothing_back(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(100, "v1", 5)
    loop.send(12, "v2", 5)
    hostile = [
        DrawnSession(f"h{n}", "v2", 5, blocked=True, failed=True, reward=0.0, user="u-hostile")
        for n in range(1000)
    ]
    publish_sessions(loop.bus, hostile)
    assert loop.look(20).states["v2"] == "canary"


def test_an_outage_of_both_arms_holds_the_ramp_and_it_goes_on_when_that_ends(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(30, "v2", 5, always, failed=True, reward=0.1)
    loop.send(200, "v1", 5, always, failed=True, reward=0.1)
    serving = loop.look(61)
    assert serving.ramp is not None
    assert (serving.states["v2"], serving.ramp.held_by, serving.ramp.share) == ("held", "", 0.1)
    assert "errors in both arms: 1.000 of the sessions, control 1.000" in serving.ramp.held_for
    assert loop.waits == f"the end of its hold: {serving.ramp.held_for}"
    loop.send(40, "v2", 65, always, failed=True, reward=0.1)
    loop.send(200, "v1", 65, always, failed=True, reward=0.1)
    loop.send(28, "v2", 70)
    loop.send(200, "v1", 70)
    assert loop.look(90).states["v2"] == "held"
    loop.send(2, "v2", 91)
    freed = loop.look(110)
    assert freed.ramp is not None
    assert (freed.states["v2"], freed.ramp.since, freed.ramp.step) == ("canary", minute(110), 0)
    assert loop.look(120).states["v2"] == "canary", "the errors from before its step do not hold it again"
    assert loop.states == ["canary", "held", "canary"]
    reason = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["reason"]
    assert reason == "what it was held for has ended"


def test_a_slow_version_is_held(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(200, "v2", 5, always, seconds=16.0)
    loop.send(300, "v1", 5, always, seconds=10.0)
    serving = loop.look(61)
    assert serving.ramp is not None
    assert serving.ramp.held_for == "latency: 95th percentile 16 s, control 10 s"


def test_what_a_person_holds_only_a_person_frees_but_it_is_still_watched(loop: RampLoop) -> None:
    loop.look(0)
    loop.deployments.hold("v2", DeployDecision(at=minute(1), by="ada", reason="a holiday"))
    loop.send(200, "v2", 5)
    loop.send(200, "v1", 5)
    assert loop.look(90).states["v2"] == "held"
    loop.send(150, "v2", 95, always, reward=0.1)
    loop.send(400, "v1", 95)
    assert loop.look(120).states["v2"] == "rolled_back"


def test_of_two_services_one_decides_and_the_other_takes_over(
    bus: Bus, place: BusPlace, tmp_path: Path
) -> None:
    one, two = RampLoop(bus, tmp_path), RampLoop(place.open(), tmp_path, "two")
    with closing(one.view), closing(two.view):
        one.look(0)
        assert two.look(0).ramp is not None
        one.send(40, "v2", 5)
        one.send(40, "v1", 5)
        assert two.look(0.1) == two.look(0.2), "the lease is the other one's"
        one.controller.close()
        serving = two.look(61)
    assert serving.ramp is not None
    assert serving.ramp.step == 1, "it counts the same sessions"


def test_two_services_that_both_believe_to_hold_the_lease_decide_once(
    bus: Bus, place: BusPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = RampLoop(bus, tmp_path), RampLoop(place.open(), tmp_path, "two")
    monkeypatch.setattr(Lease, "hold", lambda lease: True)
    with closing(one.view), closing(two.view):
        one.look(0)
        two.look(0)
        one.send(100, "v2", 5, always, reward=0.1)
        one.send(500, "v1", 5)
        serving = two.deployments.serving()
        monkeypatch.setattr(two.deployments, "serving", lambda: serving)
        monkeypatch.setattr(two.controller, "_deployments", two.deployments)
        assert one.look(20).states["v2"] == "rolled_back"
        two.look(20)
    assert one.states == ["canary", "rolled_back"]
    assert one.deployments.serving().versions == ("v1",)


def test_a_reward_that_is_revised_after_a_rollback_changes_nothing(loop: RampLoop) -> None:
    loop.look(0)
    worse = [DrawnSession(f"w{n}", "v2", 5, reward=0.1) for n in range(100)]
    publish_sessions(loop.bus, worse)
    loop.send(500, "v1", 5)
    assert loop.look(20).states["v2"] == "rolled_back"
    loop.bus.publish([reward_event(one, 1.0, 2, 25) for one in worse])
    assert loop.look(30) == loop.look(40)
    assert loop.states == ["canary", "rolled_back"]


def test_a_share_with_few_sessions_waits_for_days(loop: RampLoop) -> None:
    loop.look(0)
    for day in range(9):
        loop.send(3, "v2", day * 1440 + 30)
        loop.send(27, "v1", day * 1440 + 30)
        loop.look(day * 1440 + 60)
        assert loop.waits == f"{30 - 3 * (day + 1)} more sessions of the canary" + (
            "; 3 more sessions of the control" * (day == 0)
        )
    loop.send(3, "v2", 9 * 1440 + 30)
    serving = loop.look(9 * 1440 + 60)
    assert serving.ramp is not None
    assert serving.ramp.step == 1


def test_a_clock_that_is_set_back_leaves_no_ramp_without_its_monitor(loop: RampLoop) -> None:
    loop.look(0)
    loop.send(40, "v2", 5)
    loop.send(200, "v1", 5)
    loop.look(20)
    loop.back = 600.0
    loop.send(100, "v2", -570, always, reward=0.1)
    loop.send(400, "v1", -570)
    assert loop.look(50).states["v2"] == "rolled_back"


def test_a_step_that_began_before_the_clock_was_set_back_counts_the_sessions_since_then(
    loop: RampLoop,
) -> None:
    loop.look(0)
    loop.back = 50.0
    loop.send(30, "v2", -40)
    loop.send(30, "v1", -40)
    loop.look(30)
    assert loop.waits == minute(60), "all sessions are there, and its time is counted by the clock"
    serving = loop.look(110)
    assert serving.ramp is not None
    assert serving.ramp.step == 1


def test_a_loop_whose_rewards_come_late_says_so_and_goes_on_with_them(loop: RampLoop) -> None:
    loop.look(0)
    drawn = [DrawnSession(f"r{n}", ("v1", "v2")[n % 2], 5, reward=None) for n in range(66)]
    publish_sessions(loop.bus, drawn)
    loop.look(60)
    assert loop.waits == (
        "30 more sessions of the canary; 30 more sessions of the control; 66 that settled have no reward "
        "(33 of the canary), which counts if it comes within 24 hours"
    )
    loop.bus.publish([reward_event(one, 0.7, at=700) for one in drawn[:58]])
    loop.look(701)
    assert "1 more sessions of the canary; 1 more sessions of the control; 8 that settled" in loop.waits
    loop.bus.publish([reward_event(one, 0.7, at=1500) for one in drawn[58:60]])
    loop.look(1501)
    assert (
        "8 that settled have no reward (4 of the canary): of 2 it came more than 24 hours later" in loop.waits
    )
    loop.bus.publish([reward_event(one, 0.7, at=1400) for one in drawn[60:62]])  # late on the bus
    serving = loop.look(1510)
    assert serving.ramp is not None
    assert serving.ramp.step == 1
    evidence = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 30, "control": 30}
    assert evidence["unrewarded"] == {"canary": 3, "control": 3}


def test_late_rewards_roll_a_worse_version_back(loop: RampLoop) -> None:
    loop.look(0)
    worse = [DrawnSession(f"w{n}", "v2", 5, reward=0.1, known=400) for n in range(100)]
    publish_sessions(loop.bus, worse)
    publish_sessions(loop.bus, [DrawnSession(f"c{n}", "v1", 5, reward=0.8, known=400) for n in range(400)])
    assert loop.look(401).states["v2"] == "rolled_back"


def test_a_bus_that_was_away_for_a_while_of_a_ramp_changes_nothing_of_what_counts(
    loop: RampLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.look(0)
    loop.send(15, "v2", 5)
    loop.send(15, "v1", 5)
    loop.look(40)
    with monkeypatch.context() as away:
        for method in ("publish", "replay", "last"):
            away.setattr(type(loop.bus), method, _fail)
        for at in (50, 55, 60):
            with pytest.raises(BusError, match="away"):
                loop.look(at)
    loop.send(15, "v2", 52)
    loop.send(15, "v1", 52)
    serving = loop.look(63)
    assert serving.ramp is not None
    assert serving.ramp.step == 1
    evidence = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 30, "control": 30}


def _fail(*_: object, **__: object) -> None:
    raise BusError("the bus is away")


def test_a_look_that_fails_is_taken_again_and_counts_the_same(
    loop: RampLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.look(0)
    loop.send(30, "v2", 5)
    loop.send(30, "v1", 5)
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "_rewards", lambda view, ids: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            loop.look(61)
    serving = loop.look(61.1)
    assert serving.ramp is not None
    assert serving.ramp.step == 1
    evidence = payloads(loop.bus, "RL_DEPLOYMENTS")[-1]["metadata"]["evidence"]
    assert evidence["sessions"] == {"canary": 30, "control": 30}


def test_nothing_approved_nothing_ramps(loop: RampLoop) -> None:
    loop.waiting = []
    assert loop.look(0) == Serving()
    assert (loop.states, loop.waits) == ([], "")
    loop.skipped = {"v3": "its folder is gone"}
    loop.look(5)
    assert monitor_state(loop.bus).skipped == loop.skipped
