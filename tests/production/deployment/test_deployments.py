"""Transitions of what is served, the events that they owe, and what no transition allows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from support.buses import BusPlace
from support.deployments import minute, ramp_of
from support.loop_events import payloads

from pytest_tfgrpo.core.errors import BusError, RevisionConflict, StoreError
from pytest_tfgrpo.core.events import MODEL_DEPLOYED, RlEvent, check_event, wrap
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.candidate import NO_JOB, DeployCandidate
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision, ramp_schedule
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.plan import BLUE_GREEN, CANARY, CAREFUL, ramp_plan
from pytest_tfgrpo.production.deployment.serving import ROW, Serving, serving_of
from pytest_tfgrpo.storage.event_store import STATE, BusEvent, Table, TablePut

V1 = DeployCandidate(version="v1")
JOB = "3f2504e0-4f89-41d3-9a0c-0305e82c3305"


def good(version: str = "v2", **changes: Any) -> DeployCandidate:
    """Return a version that passed its validation, a little better than the live one."""
    fields: dict[str, Any] = {
        "version": version,
        "validated": True,
        "benchmark_passed": True,
        "safety_checks_passed": True,
        "improvement": 0.08,
        "improvement_low": 0.01,
        "job": JOB,
        "model_info": {"base_model": "small", "final_reward": 0.8},
    }
    return DeployCandidate(**(fields | changes))


def said(minute: int, by: str = "", reason: str = "", **evidence: object) -> DeployDecision:
    at = f"2026-01-01T{12 + minute // 60:02}:{minute % 60:02}:00.000Z"
    return DeployDecision(at=at, by=by, reason=reason, evidence=evidence)


@pytest.fixture
def deployments(bus: Bus) -> Deployments:
    return Deployments(bus)


def live(deployments: Deployments, version: str = "v2", minute: int = 0) -> Serving:
    """Take a version to all users."""
    deployments.start(good(version), V1, said(minute, "ada"))
    for n in range(1, 4):
        deployments.advance(version, said(minute + n))
    return deployments.advance(version, said(minute + 4))


def states(bus: Bus) -> list[tuple[str, str, float]]:
    """Return version, state and share of each event."""
    return [
        (
            one["model_info"]["model_id"],
            one["metadata"]["state"],
            one["deployment_config"]["traffic_percentage"],
        )
        for one in payloads(bus, "RL_DEPLOYMENTS")
    ]


def test_a_ramp_goes_from_step_to_step_until_its_version_is_live(bus: Bus, deployments: Deployments) -> None:
    after = live(deployments)
    assert (after.live, after.previous, after.ramp, after.since) == ("v2", "v1", None, said(4).at)
    assert after.states == {"v1": "retired", "v2": "live"}
    assert states(bus) == [
        *(("v2", "canary", share) for share in (10.0, 25.0, 50.0, 95.0)),
        ("v2", "live", 100.0),
        ("v1", "retired", 0.0),
    ]
    assert deployments.serving() == after
    assert set(after.payloads) == {"v1", "v2"}, "of those that are served or ready"
    audit = payloads(bus, "RL_AUDIT")
    assert [(one["action"], one["what"], one["was"]) for one in audit[:2]] == [
        ("deployment_start", "v2", "validated"),
        ("deployment_advance", "v2", "canary"),
    ]
    assert audit[0]["actor"] == "ada"
    assert audit[0]["validation"] == good().payload()["validation_results"]
    assert not any("validation" in one for one in audit[1:])


def test_an_event_names_the_endpoint_where_users_meet_the_version(bus: Bus) -> None:
    url = "http://127.0.0.1:4319/v1"
    Deployments(bus, url).start(good(), V1, said(0))
    (found,) = payloads(bus, "RL_DEPLOYMENTS")
    assert found["deployment_config"]["endpoint"] == url
    assert isinstance(check_event(wrap(MODEL_DEPLOYED, found)), RlEvent)


def test_events_fit_their_schema_and_have_the_fields_of_the_source(
    bus: Bus, deployments: Deployments
) -> None:
    deployments.start(good(), V1, said(0, "ada", "it is better"))
    deployments.advance("v2", said(70, n_canary=40))
    deployments.hold("v2", said(80, reason="both arms err"))
    deployments.roll_back("v2", said(90))
    found = payloads(bus, "RL_DEPLOYMENTS")
    assert all(isinstance(check_event(wrap(MODEL_DEPLOYED, one)), RlEvent) for one in found)
    first, second, held, back = found
    assert len({one["deployment_id"] for one in found}) == 1
    assert first["training_job_id"] == JOB
    assert first["model_info"] == {"model_id": "v2", "base_model": "small", "final_reward": 0.8}
    assert first["deployment_config"] == {
        "serving_platform": "tfgrpo",
        "model_name": "v2",
        "rollout_strategy": "canary",
        "traffic_percentage": 10.0,
        "ramp_schedule": [
            {"timestamp": said(minute).at, "percentage": share}
            for minute, share in ((0, 10.0), (60, 25.0), (120, 50.0), (240, 95.0), (270, 100.0))
        ],
    }
    assert first["metadata"] == {
        "deployed_by": "ada",
        "approval_status": "manual_approved",
        "previous_model": "v1",
        "state": "canary",
        "reason": "it is better",
        "evidence": {},
    }
    assert second["deployment_config"]["ramp_schedule"][1:3] == [
        {"timestamp": said(70).at, "percentage": 25.0},
        {"timestamp": said(130).at, "percentage": 50.0},
    ]
    assert (second["metadata"]["evidence"], second["metadata"]["deployed_by"]) == ({"n_canary": 40}, "tfgrpo")
    assert second["metadata"]["approval_status"] == "manual_approved", "of the whole ramp"
    assert [one["evidence"] for one in payloads(bus, "RL_AUDIT")] == [{}, {"n_canary": 40}, {}, {}]
    assert (held["metadata"]["state"], held["deployment_config"]["traffic_percentage"]) == ("held", 25.0)
    assert "ramp_schedule" not in back["deployment_config"]


def test_a_version_made_by_hand_says_so(bus: Bus, deployments: Deployments) -> None:
    deployments.start(good(job=NO_JOB), V1, said(0, "ada"))
    found = payloads(bus, "RL_DEPLOYMENTS")[0]
    assert (found["training_job_id"], found["metadata"]["made_by_hand"]) == (NO_JOB, True)


def test_a_rollback_is_immediate_idempotent_and_final_but_for_a_person(
    bus: Bus, deployments: Deployments
) -> None:
    deployments.start(good(), V1, said(0))
    first = deployments.roll_back("v2", said(5))
    assert (first.versions, first.states["v2"]) == (("v1",), "rolled_back")
    assert deployments.roll_back("v2", said(6)) == first
    assert [state for _, state, _ in states(bus)] == ["canary", "rolled_back"]
    with pytest.raises(StoreError, match="v2 was rolled back; only a person lets it ramp again"):
        deployments.start(good(), V1, said(7))
    again = deployments.start(good(), V1, said(7, "ada"))
    assert again.states["v2"] == "canary"
    assert [one["was"] for one in payloads(bus, "RL_AUDIT")] == ["validated", "canary", "rolled_back"]
    ids = [one["deployment_id"] for one in payloads(bus, "RL_DEPLOYMENTS")]
    assert ids[0] == ids[1] != ids[2], "another deployment draws other sessions"


def test_a_live_version_is_rolled_back_to_the_one_before(bus: Bus, deployments: Deployments) -> None:
    live(deployments)
    after = deployments.roll_back("v2", said(9, "ada", "rude"))
    assert (after.live, after.previous, after.states) == ("v1", "", {"v1": "live", "v2": "rolled_back"})
    assert (after.since, after.deployed, set(after.payloads)) == (said(9).at, None, {"v1"})
    assert states(bus)[-2:] == [("v2", "rolled_back", 0.0), ("v1", "live", 100.0)]


def test_events_name_the_version_that_was_replaced_or_came_back(bus: Bus, deployments: Deployments) -> None:
    live(deployments)
    deployments.start(good("v3"), good(), said(10, "ada"))
    deployments.roll_back("v3", said(11))
    deployments.roll_back("v2", said(12, "ada"))
    found = [
        (one["model_info"]["model_id"], one["metadata"]["state"], one["metadata"]["previous_model"])
        for one in payloads(bus, "RL_DEPLOYMENTS")
    ]
    assert found[4:] == [
        ("v2", "live", "v1"),
        ("v1", "retired", None),
        ("v3", "canary", "v2"),
        ("v3", "rolled_back", "v2"),
        ("v2", "rolled_back", "v1"),
        ("v1", "live", None),
    ]


def test_what_is_live_is_not_rolled_back_under_a_ramp(deployments: Deployments) -> None:
    live(deployments)
    deployments.start(good("v3"), good(), said(10))
    with pytest.raises(StoreError, match="v3 ramps against v2; roll that back first"):
        deployments.roll_back("v2", said(11))


@pytest.mark.parametrize("version", ["v1", "v7"])
def test_what_nothing_came_before_is_not_rolled_back(deployments: Deployments, version: str) -> None:
    with pytest.raises(
        StoreError, match=f"{version} is not one that can be rolled back: live is v1, and none"
    ):
        deployments.roll_back(version, said(0))


def test_a_hold_keeps_the_share_until_it_ends_and_its_step_begins_again(deployments: Deployments) -> None:
    deployments.start(good(), V1, said(0))
    held = deployments.hold("v2", said(50, "ada", "a holiday"))
    assert held.states["v2"] == "held"
    assert held.ramp is not None
    assert (held.ramp.share, held.ramp.held_by, held.ramp.held_for) == (0.1, "ada", "a holiday")
    assert held.ramp.since == said(50).at
    freed = deployments.advance("v2", said(90, "ada"))
    assert freed.ramp is not None
    assert (freed.ramp.step, freed.ramp.since) == (0, said(90).at)
    assert (freed.ramp.held_by, freed.ramp.held_for) == ("", "")
    assert freed.states["v2"] == "canary"


def test_one_ramp_at_a_time_and_none_of_what_is_live(deployments: Deployments) -> None:
    deployments.start(good(), V1, said(0))
    with pytest.raises(StoreError, match="version v2 ramps; nothing is changed"):
        deployments.start(good("v3"), V1, said(1))
    with pytest.raises(StoreError, match="v3 was never deployed; the ramp is that of v2"):
        deployments.advance("v3", said(1))
    deployments.roll_back("v2", said(1))
    with pytest.raises(StoreError, match="version v1 is live already"):
        deployments.start(good("v1"), V1, said(1))
    with pytest.raises(StoreError, match="v3 was never deployed; no version ramps now"):
        deployments.advance("v3", said(2))
    with pytest.raises(StoreError, match="v2 is rolled back; no version ramps now"):
        deployments.hold("v2", said(2))


@pytest.mark.parametrize(
    "changes",
    [{"benchmark_passed": False}, {"safety_checks_passed": False}, {"performance_regression": True}],
)
def test_what_decision_35_forbids_takes_a_persons_override(
    bus: Bus, deployments: Deployments, changes: dict[str, bool]
) -> None:
    bad = good(**changes)
    with pytest.raises(StoreError, match="v2 has not passed its validation; only a person's emergency"):
        deployments.start(bad, V1, said(0, "ada"))
    assert states(bus) == []
    after = deployments.start(bad, V1, said(0, "ada", "a fire"), override=True, at_once=True)
    assert after.ramp is not None
    assert (after.ramp.strategy, after.ramp.share) == ("immediate", 0.95)
    assert payloads(bus, "RL_AUDIT")[0] == {
        "action": "deployment_override",
        "what": "v2",
        "actor": "ada",
        "reason": "a fire",
        "was": "rejected",
        "evidence": {},
        "validation": bad.payload()["validation_results"],
        "previous": "0" * 64,
    }


def test_of_two_who_take_the_same_step_one_does(bus: Bus, place: BusPlace, deployments: Deployments) -> None:
    seen = deployments.start(good(), V1, said(0)).ramp
    first = deployments.advance("v2", said(60), seen)
    other = Deployments(place.open())
    assert other.advance("v2", said(61), seen) == first == other.hold("v2", said(61), seen)
    assert len(states(bus)) == 2


def test_a_clock_that_goes_back_does_not_take_time_back(deployments: Deployments) -> None:
    deployments.start(good(), V1, said(60))
    after = deployments.advance("v2", said(10))
    assert after.ramp is not None
    assert after.ramp.began == (said(60).at, said(60).at)


def test_a_clock_that_goes_back_does_not_roll_back_before_a_version_was_live(
    deployments: Deployments,
) -> None:
    since = live(deployments, minute=60).since
    assert deployments.roll_back("v2", said(10)).since == since == said(64).at


def test_who_approved_a_version_is_named_unless_somebody_else_starts_it(deployments: Deployments) -> None:
    for version, by, expected in (("v2", "ada", "ada"), ("v3", "", "bob")):
        ramp = deployments.start(good(version, approved_by="bob"), V1, said(0, by)).ramp
        assert ramp is not None
        assert ramp.by == expected
        deployments.roll_back(version, said(1))


def test_what_a_process_left_behind_hides_no_other_decision_at_the_same_place(
    bus: Bus, deployments: Deployments
) -> None:
    with pytest.raises(BusError, match="killed after 2 events"):
        Killed(bus, 2).start(good(), V1, said(0))
    deployments.start(good(), V1, said(1, "ada"), override=True)
    said_of = [one["action"] for one in payloads(bus, "RL_AUDIT")]
    assert said_of == ["deployment_start", "deployment_override"]


def test_a_row_of_an_earlier_release_has_no_positions_of_later_steps_alone(
    bus: Bus, deployments: Deployments
) -> None:
    ramp = deployments.start(good(), V1, said(0)).ramp
    assert ramp is not None
    table = bus.table(STATE)
    value, revision = table.get(ROW)
    before = replace(serving_of(value), ramp=replace(ramp, step_positions=()))
    table.put(ROW, before.encode(), revision)
    after = deployments.advance("v2", said(60)).ramp
    assert after is not None
    assert (after.step, after.step_positions) == (1, ())


def test_a_version_that_was_retired_may_ramp_again(bus: Bus, deployments: Deployments) -> None:
    for number, override in enumerate((False, True)):
        live(deployments, "v2" if not number else "v3", minute=10 * number)
        retired = "v1" if not number else "v2"
        after = deployments.start(good(retired), good(), said(30 * number + 8, "ada"), override=override)
        assert after.states[retired] == "canary"
        assert payloads(bus, "RL_AUDIT")[-1]["was"] == "retired"
        deployments.roll_back(retired, said(30 * number + 9))


def test_a_hold_of_the_monitor_may_become_that_of_a_person(deployments: Deployments) -> None:
    deployments.start(good(), V1, said(0))
    deployments.hold("v2", said(5, reason="both arms err"))
    held = deployments.hold("v2", said(6, "ada", "a holiday"))
    assert held.ramp is not None
    assert (held.states["v2"], held.ramp.held_by, held.ramp.held_for) == ("held", "ada", "a holiday")


class Killed(Deployments):
    """Of a process that a bus that is not atomic outlives: so many events and rows are stored."""

    def __init__(self, bus: Bus, events: int, rows: int = 0) -> None:
        super().__init__(bus)
        self._bus = self  # type: ignore[assignment]
        self.publish_to, self.events, self.puts = bus, events, rows

    atomic = False

    def publish(self, events: Sequence[BusEvent], puts: Sequence[TablePut] = ()) -> list[int]:
        self.publish_to.publish(events[: self.events])
        for put in puts[: self.puts]:
            self.table(STATE).put(put.key, put.value, put.revision)
        raise BusError(f"killed after {self.events} events")

    def table(self, name: str) -> Table:
        return self.publish_to.table(name)

    def last(self, stream: str) -> int:
        return self.publish_to.last(stream)


def test_a_process_that_dies_within_a_transition_leaves_it_to_be_taken_again(
    bus: Bus, deployments: Deployments
) -> None:
    with pytest.raises(BusError, match="killed after 2 events"):
        Killed(bus, 2).start(good(), V1, said(0))
    assert deployments.serving() == Serving()
    after = deployments.start(good(), V1, said(1)).ramp
    assert after is not None
    found = payloads(bus, "RL_DEPLOYMENTS")
    assert [one["deployment_id"] for one in found] == [after.deployment]
    with pytest.raises(BusError, match="killed"):
        Killed(bus, 2).advance("v2", said(60), after)
    deployments.advance("v2", said(61), after)
    assert [share for _, _, share in states(bus)] == [10.0, 25.0]


Act: TypeAlias = Callable[[Deployments], Serving]
STEPS: Sequence[Act] = (
    lambda found: found.start(good(), V1, said(0, "ada")),
    lambda found: found.advance("v2", said(60)),
    lambda found: found.hold("v2", said(70)),
    lambda found: found.advance("v2", said(80)),
    lambda found: found.roll_back("v2", said(90)),
    lambda found: found.start(good(), V1, said(100, "ada"), override=True, at_once=True),
    lambda found: found.advance("v2", said(130)),
    lambda found: found.withdraw("v2", said(140)),
)


@pytest.mark.parametrize("killed", range(5))
def test_a_kill_between_any_two_steps_of_any_transition_loses_and_doubles_nothing(
    bus: Bus, deployments: Deployments, killed: int
) -> None:
    counts = []
    for take in STEPS:
        if not bus.atomic or not killed:  # else all of it is one transaction
            with pytest.raises(BusError, match="killed"):
                take(Killed(bus, killed))
        take(deployments)
        counts.append(len(payloads(bus, "RL_DEPLOYMENTS")))
    told = [
        "canary",
        "canary",
        "held",
        "canary",
        "rolled_back",
        "canary",
        "live",
        "retired",
        "rolled_back",
        "live",
    ]
    assert [state for _, state, _ in states(bus)] == told
    assert counts == [1, 2, 3, 4, 5, 6, 8, 10]
    assert [one["what"] for one in payloads(bus, "RL_AUDIT")] == [name for name, _, _ in states(bus)]
    assert deployments.serving().states == {"v1": "live", "v2": "rolled_back"}


def put(bus: Bus, text: str = "approved") -> TablePut:
    """Write the row that says that v2 may start, as it is then."""
    table = bus.table(STATE)
    table.put("policy.v2", text.encode(), table.get("policy.v2")[1])
    value, revision = table.get("policy.v2")
    return TablePut(key="policy.v2", value=value or b"", revision=revision)


def test_a_version_of_which_somebody_decided_meanwhile_does_not_start(
    bus: Bus, deployments: Deployments
) -> None:
    candidate = good(row=put(bus))
    put(bus, "rejected")
    with pytest.raises(StoreError, match="somebody decided of v2 meanwhile; nothing is changed: look at"):
        deployments.start(candidate, V1, said(0, "ada"))
    assert (deployments.serving(), states(bus)) == (Serving(), [])
    after = deployments.start(good(row=put(bus)), V1, said(1, "ada"))
    assert after.versions == ("v1", "v2")


def test_who_rejects_a_version_fails_where_it_starts_meanwhile(bus: Bus, deployments: Deployments) -> None:
    decided = put(bus)
    _, unchanged = deployments.unchanged()
    deployments.start(good(row=decided), V1, said(0, "ada"))
    rejected = replace(decided, value=b"rejected")
    for puts in ([unchanged, rejected], [rejected]):
        with pytest.raises(RevisionConflict):
            bus.publish([], puts)
    assert bus.table(STATE).get("policy.v2")[0] == b"approved"
    serving, unchanged = deployments.unchanged()
    bus.publish([], [unchanged])
    assert deployments.serving() == serving


def test_a_start_that_dies_between_its_rows_is_taken_again(bus: Bus, deployments: Deployments) -> None:
    candidate = good(row=put(bus))
    with pytest.raises(BusError, match="killed"):
        Killed(bus, 0, rows=1).start(candidate, V1, said(0, "ada"))
    assert deployments.serving() == Serving()
    with pytest.raises(StoreError, match="somebody decided of v2 meanwhile"):
        deployments.start(candidate, V1, said(1, "ada"))
    deployments.start(good(row=put(bus)), V1, said(2, "ada"))
    assert states(bus) == [("v2", "canary", 10.0)]


def test_the_live_version_is_withdrawn_with_the_ramp_against_it(bus: Bus, deployments: Deployments) -> None:
    live(deployments)
    deployments.start(good("v3"), good(), said(10))
    assert deployments.withdraw("v4", said(11)).versions == ("v2", "v3")
    after = deployments.withdraw("v2", said(12, "ada", "unsafe", violations=1))
    assert (after.versions, after.states) == (
        ("v1",),
        {"v1": "live", "v2": "rolled_back", "v3": "rolled_back"},
    )
    assert [(name, state) for name, state, _ in states(bus)[-3:]] == [
        ("v3", "rolled_back"),
        ("v2", "rolled_back"),
        ("v1", "live"),
    ]
    evidence = [one["metadata"]["evidence"] for one in payloads(bus, "RL_DEPLOYMENTS")[-3:]]
    assert evidence == [{}, {"violations": 1}, {"violations": 1}]
    assert deployments.withdraw("v1", said(13)) == after, "nothing was before it"


def test_a_version_that_ramps_is_withdrawn_alone(deployments: Deployments) -> None:
    live(deployments)
    deployments.start(good("v3"), good(), said(10))
    after = deployments.withdraw("v3", said(11))
    assert (after.versions, after.states["v3"]) == (("v2",), "rolled_back")


def test_what_is_known_of_a_live_version_stays_where_its_files_cannot_be_read(
    bus: Bus, deployments: Deployments
) -> None:
    live(deployments)
    deployments.start(good("v3"), DeployCandidate(version="v2"), said(10, "ada"))
    assert deployments.serving().payloads["v2"]["model_info"]["base_model"] == "small"
    deployments.roll_back("v3", said(11))
    deployments.start(good("v4"), good(model_info={"base_model": "large"}), said(12, "ada"))
    assert deployments.serving().payloads["v2"]["model_info"]["base_model"] == "large"


@pytest.mark.parametrize("score", [0.87, 0.0])
def test_a_human_score_is_in_the_events(bus: Bus, deployments: Deployments, score: float) -> None:
    deployments.start(good(human_eval_score=score), V1, said(0, "ada"))
    (event,) = payloads(bus, "RL_DEPLOYMENTS")
    assert event["validation_results"]["human_eval_score"] == score
    assert isinstance(check_event(wrap(MODEL_DEPLOYED, event)), RlEvent)


@pytest.mark.parametrize(
    ("gain", "low", "by", "plan"),
    [
        (0.15, 0.01, "ada", BLUE_GREEN),
        (0.15, 0.01, "", CANARY),
        (0.15, 0.0, "ada", CANARY),
        (0.15, None, "ada", CANARY),
        (0.1499, 0.1, "ada", CANARY),
        (0.05, -0.1, "", CANARY),
        (0.0499, 0.01, "ada", CAREFUL),
        (-0.02, -0.1, "ada", CAREFUL),
        (None, None, "ada", CAREFUL),
    ],
)
def test_the_steps_follow_from_the_improvement(
    gain: float | None, low: float | None, by: str, plan: object
) -> None:
    assert ramp_plan(good(improvement=gain, improvement_low=low, approved_by=by)) == plan


def test_ramps_are_as_long_as_decision_34_says() -> None:
    assert CANARY.waits_min == (60.0, 60.0, 120.0, 30.0)
    assert CAREFUL.shares == (0.05, *CANARY.shares)
    assert len(CAREFUL.waits_min) == len(CAREFUL.shares)


def test_the_schedule_of_a_later_step_is_counted_from_it() -> None:
    ramp = ramp_of(began=(minute(0), minute(60), minute(125)), since=minute(125))
    assert [(one["timestamp"], one["percentage"]) for one in ramp_schedule(ramp)] == [
        (minute(0), 10.0),
        (minute(60), 25.0),
        (minute(125), 50.0),
        (minute(245), 95.0),
        (minute(275), 100.0),
    ]
