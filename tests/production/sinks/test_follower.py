"""The role that fills a sink: at least once, by one process, and without whom somebody forgot."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.buses import BusPlace, Clock
from support.loop_events import judged, publish, trajectory
from support.loop_sinks import (
    SCRUBBER,
    TODAY,
    MemorySink,
    audit,
    deployed,
    fill,
    follower,
    training_request,
)

from pytest_tfgrpo.core.errors import BusError, StoreError
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import STREAMS
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns
from pytest_tfgrpo.production.forget import forget
from pytest_tfgrpo.production.sinks import follower as following
from pytest_tfgrpo.production.sinks.archive import Archive
from pytest_tfgrpo.production.sinks.figures import sink_lines, sinks_status
from pytest_tfgrpo.production.sinks.removal import removal_of
from pytest_tfgrpo.production.sinks.state import SinkState
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

ADA = SCRUBBER.user_ref("ada")


@pytest.fixture
def bus(place: BusPlace) -> Bus:
    return place.open()


def names(sink: MemorySink) -> list[str]:
    return [row.id for row in sink.rows]


def test_a_new_sink_begins_with_the_oldest_event_and_goes_on_after_a_restart(bus: Bus) -> None:
    publish(bus, [trajectory("a"), judged("a", "a", style=0.5), training_request(), deployed()])
    sink, clock = MemorySink(), Clock()
    role = follower(bus, sink, clock=clock)
    fill(role)
    assert [row.table for row in sink.rows] == ["trajectories", "rewards", "training", "deployments"]
    role.close()
    publish(bus, [trajectory("b")])
    fill(follower(bus, sink, "b", clock))
    assert names(sink)[4:] == [trajectory("b").id]


def test_a_new_sink_removes_nobody_who_was_forgotten_before_it_came(bus: Bus) -> None:
    publish(bus, [audit("forget", what="user", ref=ADA, actor="me", removed={})], [trajectory("a")])
    sink = MemorySink()
    fill(follower(bus, sink))
    assert (names(sink), sink.removals) == ([trajectory("a").id], [])


def test_what_names_nobody_begins_with_what_is_new(bus: Bus) -> None:
    publish(bus, [trajectory("a")])
    sink = MemorySink(keeps=False)
    role = follower(bus, sink)
    fill(role)
    publish(bus, [trajectory("b")])
    fill(role)
    assert names(sink) == [trajectory("b").id]


def test_a_dead_sink_waits_says_so_and_goes_on(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(bus, [trajectory("a"), trajectory("b")])
    sink = MemorySink()
    sink.dead, role = True, follower(bus, sink)
    times = iter(["2025-12-09T00:00:00.000Z", "2025-12-09T00:00:30.000Z", "2025-12-09T00:01:00.000Z"])
    monkeypatch.setattr(following, "utc_now", lambda: next(times))
    for _ in range(3):
        with pytest.raises(StoreError):
            role.step()
    found = sinks_status(bus)["archive"]
    assert (found.behind, found.error) == (2, "StoreError: the sink is dead")
    assert found.since == "2025-12-09T00:00:00.000Z"
    said = " ".join(" ".join(sink_lines({"archive": found})).split())
    assert said.startswith("archive 2 events behind; lease of a waits since 20")
    assert said.endswith("StoreError: the sink is dead")

    sink.dead = False
    fill(role)
    assert names(sink) == [trajectory("a").id, trajectory("b").id]
    found = sinks_status(bus)["archive"]
    assert (found.behind, found.error, found.since, found.lost) == (0, "", "", 0)
    assert sink.again == [True]
    monkeypatch.undo()
    sink.dead = True
    publish(bus, [trajectory("c")])
    with pytest.raises(StoreError):
        role.step()
    sink.dead = False
    fill(role)
    publish(bus, [trajectory("d")])
    fill(role)
    assert sink.again == [True, True, False], "what failed may be there in part"


def test_a_batch_whose_position_was_not_noted_comes_again_and_says_so(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bus, [trajectory("a")])
    sink = MemorySink()
    role = follower(bus, sink)
    fill(role)
    publish(bus, [trajectory("b")])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(role._lease, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            role.step()
    clock = Clock()
    other = follower(bus, sink, "b", clock)
    assert other.step() == 0  # the lease has not run out
    clock.now += 100
    fill(other)
    assert [name for name in names(sink) if name == trajectory("b").id] == [trajectory("b").id] * 2
    assert sink.again == [True, False, True]


def test_two_services_take_each_event_once(bus: Bus) -> None:
    publish(bus, [trajectory("a")])
    first, second = MemorySink(), MemorySink()
    one, two = follower(bus, first, "a"), follower(bus, second, "b")
    fill(one)
    fill(two)
    one.close()
    publish(bus, [trajectory("b")])
    fill(two)
    assert (names(first), names(second)) == ([trajectory("a").id], [trajectory("b").id])


def test_who_has_the_lease_again_does_not_know_what_is_there(bus: Bus) -> None:
    sink, clock = MemorySink(), Clock()
    role, other = follower(bus, sink, clock=clock), follower(bus, MemorySink(), "b", clock)
    for name in "ab":
        publish(bus, [trajectory(name)])
        fill(role)
    fill(other)
    clock.now += 100
    fill(other)
    publish(bus, [trajectory("c")])
    assert role.step() == 0
    other.close()
    fill(role)
    assert sink.again == [True, False, True]


def test_a_role_that_ends_has_its_sink_let_go(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, closed = MemorySink(), []
    monkeypatch.setattr(sink, "close", lambda: closed.append(True))
    role = follower(bus, sink)
    fill(role)
    role.close()
    assert closed == [True]
    assert sinks_status(bus)["archive"].holder == ""


def test_what_was_deleted_while_another_process_took_over_is_taken_back(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bus, [trajectory("a"), trajectory("b")])
    sink = MemorySink()
    role = follower(bus, sink)
    write = sink.write

    def late(*args: object, **more: object) -> int:
        found = write(*args, **more)  # type: ignore[arg-type]
        clock = Clock()
        other = follower(bus, MemorySink(), "b", clock)
        other.step()
        clock.now += 100
        other.step()
        bus.delete("RL_TRAJECTORIES", [trajectory("a").id])
        return found

    monkeypatch.setattr(sink, "write", late)
    assert role.step() == 0
    assert [removal.events for removal in sink.removals] == [{trajectory("a").id}]


def test_events_that_the_stream_let_go_of_are_counted(tmp_path: Path) -> None:
    few = [replace(one, max_count=3) if one.name == "RL_REWARDS" else one for one in STREAMS]
    with closing(open_embedded(tmp_path / "bus.db", few)) as bus:
        sink = MemorySink()
        role = follower(bus, sink)
        publish(bus, [judged("0", "a", style=0.5)])
        fill(role)
        publish(bus, [judged(str(n), "a", style=0.5) for n in range(1, 9)])
        fill(role)
        assert names(sink) == [judged(str(n), "a", style=0.5).id for n in (0, 6, 7, 8)]
        found = sinks_status(bus)["archive"]
        assert (found.lost, found.behind) == (5, 0)
        assert "lost at most 5 events, older than the streams keep" in "\n".join(sink_lines({"x": found}))


def test_large_events_come_in_batches_of_so_many_bytes(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(trajectory("a").data)
    monkeypatch.setattr(following, "FETCH_BYTES", size + 1)
    publish(bus, [trajectory(name) for name in "abcde"])
    sink = MemorySink()
    fill(follower(bus, sink))
    assert names(sink) == [trajectory(name).id for name in "abcde"]
    assert len(sink.again) == 3


def test_after_a_full_batch_the_next_one_comes_at_once_and_after_fewer_events_later(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "AT_ONCE", 2)
    publish(bus, [trajectory(name) for name in "abcde"])
    sink, clock = MemorySink(), Clock()
    sink.every_s = 5.0
    role = follower(bus, sink, clock=clock)
    assert [role.step() for _ in range(4)] == [2, 2, 1, 0]
    publish(bus, [trajectory("f")])
    assert role.step() == 0
    clock.now += 5
    assert role.step() == 1


def test_a_long_error_of_a_sink_is_noted_as_one_short_line(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise StoreError("no room\n" * 1000)

    publish(bus, [trajectory("a")])
    sink = MemorySink()
    monkeypatch.setattr(sink, "write", refuse)
    role = follower(bus, sink)
    with pytest.raises(StoreError):
        role.step()
    noted = sinks_status(bus)["archive"].error
    assert noted.startswith("StoreError: no room no room")
    assert len(noted) <= 300


def test_deleted_events_in_between_are_not_lost_and_no_json_is_refused(bus: Bus) -> None:
    sink = MemorySink()
    role = follower(bus, sink)
    fill(role)
    event = trajectory("x")
    odd = [
        BusEvent(id=trajectory(name).id, subject=event.subject, time=event.time, data=data)
        for name, data in (("o", b"\xff no json"), ("p", b'{"a": NaN}'), ("q", b"[" * 9000), ("r", b"7"))
    ]
    publish(bus, [trajectory("a"), trajectory("b"), trajectory("c")], odd)
    bus.delete("RL_TRAJECTORIES", [trajectory("b").id])
    fill(role)
    found = sinks_status(bus)["archive"]
    assert (len(sink.rows), found.lost, found.refused, found.behind) == (2, 0, 4, 0)
    said = [" ".join(line.split()) for line in sink_lines({"archive": replace(found, old=1)})]
    assert said == [
        "archive up to date; lease of a",
        "refused 4 events",
        "left out 1 event of more than 90 days ago",
    ]


def test_a_stream_of_which_nothing_is_left_has_lost_all_that_was_not_taken(bus: Bus) -> None:
    sink = MemorySink()
    role = follower(bus, sink)
    fill(role)
    publish(bus, [trajectory("a"), trajectory("b")])
    bus.delete("RL_TRAJECTORIES", [trajectory("a").id, trajectory("b").id])
    fill(role)
    found = sinks_status(bus)["archive"]
    assert (found.lost, found.behind) == (2, 0)


def test_what_a_sink_refuses_is_counted_with_what_is_no_json(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = MemorySink()
    monkeypatch.setattr(sink, "write", lambda rows, **_: len(rows))
    odd = replace(trajectory("o"), data=b"no json")
    publish(bus, [trajectory("a"), odd, trajectory("b")])
    fill(follower(bus, sink))
    assert sinks_status(bus)["archive"].refused == 3


def test_each_sink_has_its_own_line_and_only_those_with_rows_of_people_forget(bus: Bus) -> None:
    roles = []
    for name in ("warehouse", "archive", "logs"):
        sink = MemorySink(keeps=name != "logs")
        sink.name = name
        roles.append(follower(bus, sink, name))
        fill(roles[-1])
    forgotten = [audit("forget", str(n), what="user", ref=ADA, actor="me", removed={}) for n in range(2)]
    publish(bus, [trajectory("a"), judged("a", "a", style=0.5), deployed()], forgotten)
    found = sinks_status(bus)
    assert [(name, one.behind, one.to_forget) for name, one in found.items()] == [
        ("warehouse", 3, 2),
        ("archive", 3, 2),
        ("logs", 3, 0),
    ]
    fill(roles[1])
    roles[1].close()
    said = [" ".join(line.split()) for line in sink_lines(sinks_status(bus))]
    assert said == [
        "warehouse 3 events behind; lease of warehouse",
        "still has rows of 2 that are to be forgotten",
        "archive up to date; nobody holds its lease",
        "logs 3 events behind; lease of logs",
    ]


def test_a_lease_that_keeps_no_state_of_a_sink_says_so(bus: Bus) -> None:
    assert SinkState.of(None) is None
    with pytest.raises(
        BusError, match=r"a lease of a sink keeps .*'other': 7.*; put the bus back from a copy"
    ):
        SinkState.of({"other": 7})


def test_a_sink_that_takes_events_again_waits_for_nothing() -> None:
    state = SinkState(positions={}).failing("the disk is full", "2026-01-01T00:00:00.000Z")
    assert state.failing("it is still full", "later").since == "2026-01-01T00:00:00.000Z"
    after = state.at("RL_REWARDS", 3, {"lost": 2})
    assert after == SinkState(positions={"RL_REWARDS": 3}, lost=2)
    more = after.at("RL_REWARDS", 4, {"lost": 1, "refused": 2, "old": 3})
    assert more.at("RL_AUDIT", 9, {"refused": 1, "old": 1}) == SinkState(
        positions={"RL_REWARDS": 4, "RL_AUDIT": 9}, lost=3, refused=3, old=4
    )


def test_what_is_older_than_90_days_is_left_out_and_counted(bus: Bus) -> None:
    publish(bus, [trajectory("a")])
    sink = MemorySink()
    fill(follower(bus, sink, wall=TODAY + 90 * 86400))
    assert (names(sink), sinks_status(bus)["archive"].old, sink.expired) == ([], 1, ["2025-12-09"])
    kept = MemorySink()
    kept.name = "warehouse"
    fill(follower(bus, kept, "b", wall=TODAY + 89 * 86400))
    assert names(kept) == [trajectory("a").id]
    lines = MemorySink(keeps=False)
    lines.name = "logs"
    role = follower(bus, lines, "c", wall=TODAY + 90 * 86400)
    fill(role)
    publish(bus, [trajectory("b")])
    fill(role)
    assert names(lines) == [trajectory("b").id], "what keeps nothing leaves nothing out"


def test_old_days_go_once_a_day(bus: Bus) -> None:
    now = [TODAY + 86399.0]
    sink = MemorySink()
    role = following.SinkFollower(bus, sink, SCRUBBER, "a", clock=Clock(), wall=lambda: now[0])
    role.step()
    role.step()
    now[0] += 1
    role.step()
    assert sink.expired == ["2025-09-10", "2025-09-11"]


def test_who_is_forgotten_goes_from_a_sink_that_was_dead_before_anything_new_comes(bus: Bus) -> None:
    publish(bus, [trajectory("a", user=ADA)])
    sink = MemorySink()
    role = follower(bus, sink)
    fill(role)
    sink.dead = True
    publish(bus, [audit("forget", what="user", ref=ADA, actor="me", removed={})], [trajectory("b")])
    with pytest.raises(StoreError):
        role.step()
    assert sinks_status(bus)["archive"].to_forget == 1
    said = "\n".join(sink_lines(sinks_status(bus)))
    assert "still has rows of 1 that are to be forgotten" in said
    sink.dead = False
    fill(role)
    assert [removal.users for removal in sink.removals] == [{ADA}]
    assert sinks_status(bus)["archive"].to_forget == 0
    assert names(sink)[1:] == [trajectory("b").id]


def test_runs_of_which_nothing_is_kept_go_within_an_hour_and_do_not_come(bus: Bus) -> None:
    sink, clock = MemorySink(), Clock()
    role = follower(bus, sink, clock=clock)
    fill(role)
    runs = DroppedRuns(bus, SCRUBBER)
    runs.forgo([json.loads(trajectory("a").data)["trajectory_id"]])
    publish(bus, [trajectory("a"), trajectory("b")])
    fill(role)
    runs.forgo([json.loads(trajectory("b").data)["trajectory_id"]])
    bus.publish([audit("sweep", what="reward", refs=[judged("c", "c", style=0.1).id])])
    clock.now += 3599
    fill(role)
    assert (names(sink), len(sink.removals)) == ([trajectory("b").id], 1)
    clock.now += 1
    fill(role)
    assert len(sink.removals[1].trajectories) == 1
    bus.publish([audit("forget", what="user", ref=ADA, actor="me", removed={})])
    fill(role)
    assert sink.removals[2].users == {ADA}  # nobody who is forgotten waits
    assert sink.removals[1].events == {judged("c", "c", style=0.1).id}


def test_all_who_were_forgotten_go_before_anything_new_comes(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_AUDIT_AT_ONCE", 1)
    sink = MemorySink()
    role = follower(bus, sink)
    fill(role)
    refs = [SCRUBBER.user_ref(user) for user in ("ada", "bob", "cy")]
    bus.publish([audit("forget", what="user", ref=ref, actor="me", removed={}) for ref in refs])
    role.step()
    assert [removal.users for removal in sink.removals] == [{ref} for ref in refs]


def test_what_several_records_name_goes_together() -> None:
    runs = [SCRUBBER.ref("trajectory", name) for name in "ab"]
    rewards = [judged(name, name, style=0.1).id for name in "ab"]
    records = [audit("left_out", refs=runs[:1]), audit("opt_out", what="trajectory", ref=runs[1])]
    records += [audit("sweep", what="reward", refs=[one]) for one in rewards]
    found = removal_of(records)
    assert (found.trajectories, found.events) == (set(runs), set(rewards))
    assert not found.of_people


@pytest.mark.parametrize("action", ["left_out", "drop_claims"])
def test_a_run_that_was_left_out_is_removed_by_either_name_of_the_action(action: str) -> None:
    ref = SCRUBBER.ref("trajectory", "t1")
    assert removal_of([audit(action, refs=[ref])]).trajectories == {ref}
    assert removal_of([audit("opt_out", what="trajectory", ref=ref)]).trajectories == {ref}


def test_what_others_write_to_the_audit_removes_nothing(bus: Bus) -> None:
    sink = MemorySink()
    role = follower(bus, sink)
    fill(role)
    odd = ["' OR 1 = 1 --", "", "u-" + "g" * 32, ADA + "\n", None]
    events = [audit("forget", str(n), what="user", ref=ref) for n, ref in enumerate(odd)]
    events += [audit("left_out", refs=["x", 7]), audit("opt_out", what="session", ref="s-" + "a" * 32)]
    bus.publish(events)
    fill(role)
    assert sink.removals == []
    raw = [replace(events[0], data=data) for data in (b"no json", b"[]", b"[" * 9000, b'{"action": 7}')]
    assert not removal_of(raw)


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LoopView]:
    with closing(LoopView(tmp_path / "view.db")) as opened:
        yield opened


def test_forget_reaches_what_the_streams_have_no_more(bus: Bus, view: LoopView, tmp_path: Path) -> None:
    archive, clock = Archive(tmp_path / "archive"), Clock()
    role = follower(bus, archive, clock=clock)
    publish(bus, [trajectory("a", user=ADA, session="hers"), trajectory("b", session="other")])
    fill(role)
    bus.delete("RL_TRAJECTORIES", [trajectory("a").id])  # as if its 30 days were over
    publish(bus, [trajectory("c", user=ADA, session="hers")])
    clock.now += 10
    fill(role)
    forget(bus, view, scrubber=SCRUBBER, actor="me", user="ada", sleep=lambda _: None)
    clock.now += 10
    fill(role)
    heads = {head.id.decode() for head in archive._heads()}
    assert heads == {trajectory("b").id}
