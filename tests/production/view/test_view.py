"""The view: what the streams say, and nothing else."""

import json
import sqlite3
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from support.buses import BusPlace
from support.loop_events import LATER, feedback, judged, publish, rewarded, trajectory

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.core.events import REWARD, EventRefusal, derived_id
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.assembly.dropped_traces import PREFIX as DROPPED
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.protocol import DEDUPE_S, Bus
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT
from pytest_tfgrpo.production.view import queries, schema
from pytest_tfgrpo.production.view import view as view_module
from pytest_tfgrpo.production.view.queries import payload_at
from pytest_tfgrpo.production.view.removal import remove_before, remove_traces
from pytest_tfgrpo.production.view.rows import row_of
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE, BusEvent


@pytest.fixture
def view(tmp_path: Path):
    opened = LoopView(tmp_path / "view.db")
    yield opened
    opened.close()


def everything(view: LoopView) -> tuple:
    rows = list(queries.trajectories(view))
    places = [queries.places(view, row.id) for row in rows]
    return (
        rows,
        places,
        queries.stored(view),
        queries.redacted(view),
        queries.dead(view),
        queries.audited(view),
        queries.rewarded(view),
    )


def test_a_view_says_the_same_after_its_file_was_deleted(bus: Bus, tmp_path: Path):
    text = "mail [redacted:email:0a1b2c] and [redacted:email:0a1b2c], [redacted:card:ffffff]"
    publish(
        bus,
        [feedback("f", "rating", "a", rating=4), trajectory("a", text=text, turns=1)],
        [trajectory("b", user="u-1"), judged("j", "a", style=0.5), feedback("g", "thumbs_up", "a")],
    )
    view = LoopView(tmp_path / "view.db")
    assert view.catch_up(bus) == 5
    assert view.catch_up(bus) == 0
    found = everything(view)
    view.close()
    for path in tmp_path.glob("view.db*"):
        path.unlink()
    view = LoopView(tmp_path / "view.db")
    view.catch_up(bus)
    assert everything(view) == found
    assert queries.redacted(view) == {"card": 1, "email": 1}, "each value once in an event"
    assert [place.stream for place in queries.places(view, derived_id("a"))] == [
        "RL_TRAJECTORIES", "RL_FEEDBACK", "RL_FEEDBACK", "RL_REWARDS",
    ]  # fmt: skip
    payload = payload_at(bus, queries.places(view, derived_id("a"))[0])
    assert payload["turns"][0]["action"]["raw_response"] == text
    view.close()


def test_no_text_of_an_event_is_in_the_file(bus: Bus, view: LoopView):
    publish(
        bus,
        [
            trajectory("a", text="the secret of the house"),
            feedback("f", "correction", "a", text="the secret"),
        ],
    )
    view.catch_up(bus)
    assert b"the secret" not in view.path.read_bytes() + view.path.with_name("view.db-wal").read_bytes()


def test_a_file_of_another_bus_is_emptied(place: BusPlace, view: LoopView, tmp_path: Path):
    from support.buses import EmbeddedPlace

    bus = place.open()
    publish(bus, [trajectory("a"), trajectory("b")])
    view.catch_up(bus)
    (tmp_path / "other").mkdir()
    other = EmbeddedPlace(tmp_path / "other")
    again = LoopView(view.path)
    try:
        again.catch_up(other.open())
        assert queries.stored(again)["RL_TRAJECTORIES"] == 0
        files = [view.path, view.path.with_name("view.db-wal")]
        assert not any(b"chat-17" in path.read_bytes() for path in files), "whose they were is overwritten"
    finally:
        again.close()
        other.close()


def test_what_is_no_event_is_set_aside(bus: Bus, view: LoopView):
    good = trajectory("a")
    bad = [
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b'{"turns": 1}',
        good.data.replace(b'"coding"', b'"cooking"'),
        b"NaN",
    ]
    events = [replace(good, id=derived_id(str(n)), data=data) for n, data in enumerate(bad)]
    publish(
        bus,
        events,
        [good, replace(good, id=derived_id("once more"))],
        [replace(judged("j", "a", style=1), data=b"{}")],
    )
    view.catch_up(bus)
    assert queries.stored(view)["RL_TRAJECTORIES"] == 1
    assert len(view.rows("SELECT * FROM refused")) == len(bad) + 1


def test_no_event_of_another_publisher_stops_the_view(bus: Bus, view: LoopView):
    def odd(**more: Json) -> BusEvent:
        said = json.loads(judged("j", "a", style=0.5).data) | {"normalization": {"normalized_total": 0.0}}
        revision = more.pop("revision", 1)
        metadata = {"evaluator": "tfgrpo", "revision": revision, "ordinal": more.pop("ordinal", 1)}
        key = derived_id("reward", derived_id("a"), str(revision))
        payload = {**said, "reward_id": key, "metadata": metadata, **more}
        return BusEvent(id=str(uuid4()), subject=REWARD, time=LATER, data=json.dumps(payload).encode())

    part = {"score": 1.0, "source": "x"}
    rewards = [
        odd(revision=2**70),
        odd(ordinal=2**70),
        odd(revision="one"),
        odd(session_id="\ud800"),
        odd(session_id={}),
        odd(total_reward=10**400),
        odd(reward_components={}),
        odd(reward_components={"style": {**part, "weight": 0}}),
        odd(reward_components={"efficiency": {**part, "weight": 1}}, total_reward=1.0),
    ]
    audit = json.dumps({"action": "\ud800", "what": "x"}).encode()
    bus.publish(rewards)
    bus.publish([replace(rewards[0], id=str(uuid4()), subject=AUDIT_SUBJECT, data=audit)])
    bus.publish([trajectory("a")])
    view.catch_up(bus)
    assert queries.stored(view)["RL_TRAJECTORIES"] == 1
    assert len(view.rows("SELECT * FROM refused")) == len(rewards) + 1


def test_an_event_of_a_subject_that_no_schema_is_for_is_refused():
    event = replace(trajectory("a"), subject="agent.rl.training.cancel.v1")
    found = row_of(event, 0.0)
    assert isinstance(found, EventRefusal)
    assert found.fault == "unknown_subject"


def test_what_was_stored_again_after_the_window_of_the_bus_counts_once(view: LoopView, tmp_path: Path):
    now = [1_000_000.0]
    with closing(open_embedded(tmp_path / "bus.db", clock=lambda: now[0])) as bus:
        letter = dead_event(DeadLetter(code="schema", message="m"), LATER)
        said = b'{"action":"opt_out","ref":"r","what":"trace"}'
        audit = BusEvent(id=derived_id("opt_out"), subject=AUDIT_SUBJECT, time=LATER, data=said)
        for _ in range(2):
            bus.publish([trajectory("a"), feedback("f", "thumbs_up", "a"), letter, audit])
            now[0] += 2 * DEDUPE_S
        assert bus.last("RL_DEAD") == 2
        view.catch_up(bus)
    counts = dict.fromkeys(("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_DEAD", "RL_AUDIT"), 1)
    assert queries.stored(view) == {**counts, "RL_REWARDS": 0, "RL_TRAINING": 0, "RL_DEPLOYMENTS": 0}
    assert (queries.dead(view), queries.audited(view)) == ({"schema": 1}, {"opt_out": 1})


def test_what_components_said_goes_with_the_trajectory(bus: Bus, tmp_path: Path):
    """Their reasons may quote it, and the bus has let go of it."""
    publish(bus, [trajectory("a"), trajectory("b")])
    with closing(LoopView(tmp_path / "first.db")) as view:
        view.catch_up(bus)
        with view.transaction() as db:
            rows = [(derived_id(name), "{}") for name in "ab"]
            db.executemany("INSERT INTO further VALUES (?, ?)", rows)
    bus.delete("RL_TRAJECTORIES", [next(bus.replay("RL_TRAJECTORIES")).id])
    with closing(LoopView(tmp_path / "first.db")) as view:
        view.catch_up(bus)
        assert view.rows("SELECT id FROM further") == [(derived_id("b"),)]


@pytest.mark.parametrize(
    "made", ["CREATE TABLE mine (x)", "PRAGMA user_version = 1", "PRAGMA application_id = 7"]
)
def test_another_programs_database_is_left_as_it_is(made: str, tmp_path: Path):
    path = tmp_path / "mine.db"
    db = sqlite3.connect(path)
    db.execute(made)
    db.close()
    before = path.read_bytes()
    with pytest.raises(BusError, match="another program"):
        LoopView(path)
    assert path.read_bytes() == before


def test_a_file_that_somebody_deletes_while_it_is_opened_is_tried_again_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tries: list[int] = []
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_DELETE_NOENT"

    class Gone:
        def __init__(self, fails: int, cause: BaseException) -> None:
            self.fails, self.cause = fails, cause

        def open(self, path: Path) -> str:
            tries.append(1)
            if len(tries) <= self.fails:
                raise BusError("gone") from self.cause
            return "opened"

    monkeypatch.setattr(schema, "_AGAIN_S", 0.0)
    for fails, cause, opened, tried in (
        (3, error, True, 4),
        (4, error, False, 4),
        (1, ValueError(), False, 1),
    ):
        tries.clear()
        monkeypatch.setattr(schema, "VIEW", Gone(fails, cause))
        with nullcontext() if opened else pytest.raises(BusError, match="gone"):
            assert schema.open_view_file(tmp_path / "v.db") == "opened"
        assert len(tries) == tried


def test_a_full_disk_is_named_though_it_ended_the_transaction(view: LoopView):
    def fill() -> None:
        with view.transaction() as db:
            db.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")

    with pytest.raises(BusError, match="disk is full"):
        fill()
    view.set_meta("a", "b")
    assert view.meta("a") == "b"


def test_a_file_of_another_version_is_emptied_and_filled_again(bus: Bus, tmp_path: Path):
    publish(bus, [trajectory("a")])
    path = tmp_path / "view.db"
    with closing(LoopView(path)) as view:
        view.catch_up(bus)
        view.rows("PRAGMA user_version = 999")
    with closing(LoopView(path)) as view:
        assert queries.stored(view)["RL_TRAJECTORIES"] == 0
        assert view.catch_up(bus) == 1


def test_trajectories_are_found_by_the_start_of_their_id_and_listed_in_the_order_of_arrival(
    bus: Bus, view: LoopView
):
    publish(bus, [trajectory(str(n), session=f"chat-{n}") for n in range(40)])
    view.catch_up(bus)
    listed = list(queries.trajectories(view))
    assert [row.session for row in listed] == [f"chat-{n}" for n in range(40)]
    (one,) = queries.find(view, derived_id("7").upper())
    assert (one.id, one.session, one.sequence) == (derived_id("7"), "chat-7", 8)
    start = min(row.id for row in listed)[0]
    known = sorted(row.id for row in listed if row.id.startswith(start))
    assert [row.id for row in queries.find(view, start)] == known[:10]
    assert len(queries.find(view, "")) == 10
    assert queries.find(view, "no id") == []


def test_a_long_list_of_trajectories_has_each_once(view: LoopView):
    columns = (
        "id, seq, at, time, session, domain, ended, turns, slim, revision, silent, blocked, agent, started"
    )
    rows = [
        (f"id-{n}", n, 0.0, "", "s", "d", "", 1, "{}", 1 + (n == 7), 0, 0, "a", "") for n in range(1, 2002)
    ]
    with view.transaction() as db:
        db.executemany(f"INSERT INTO trajectories ({columns}) VALUES ({','.join('?' * 14)})", rows)
    assert [row.sequence for row in queries.trajectories(view)] == list(range(1, 2002))
    assert queries.revised(view) == 1


def test_earlier_revisions_go_with_what_they_are_of(bus: Bus, view: LoopView):
    for revision in (1, 2, 3):
        said = [
            trajectory(name, session=f"chat-{name}", metadata={"trace_id": name * 32, "revision": revision})
            for name in "abc"
        ]
        publish(bus, [replace(event, id=derived_id(event.id, str(revision))) for event in said])
    view.catch_up(bus)
    kept = "SELECT session, revision FROM superseded ORDER BY seq"
    assert view.rows(kept) == [(f"chat-{name}", revision) for revision in (1, 2) for name in "abc"]
    view.forget("session", "chat-a", [], {})
    with view.transaction() as db:
        remove_traces(db, ["b" * 32])
        remove_before(db, "RL_TRAJECTORIES", "trajectories", 5)
    assert view.rows(kept) == [("chat-c", 2)]


def test_what_the_bus_has_let_go_of_goes_after_ten_minutes(bus: Bus, tmp_path: Path):
    publish(bus, [trajectory(name) for name in "abc"], [feedback("f", "thumbs_up", "a")])
    bus.publish([replace(trajectory("a"), id=derived_id("bad"), data=b"{}")])
    now = 0.0
    with closing(LoopView(tmp_path / "first.db", lambda: now)) as view:
        view.catch_up(bus)
        for gone, later_s, left in (
            ("a", 599.0, (3, 1)),
            ("", 600.0, (2, 1)),
            ("bc", 1199.0, (2, 1)),
            ("", 1200.0, (0, 1)),
        ):
            bus.delete("RL_TRAJECTORIES", [trajectory(name).id for name in gone])
            now = later_s
            view.catch_up(bus)
            assert (queries.stored(view)["RL_TRAJECTORIES"], queries.stored(view)["RL_FEEDBACK"]) == left
        assert len(view.rows("SELECT * FROM refused")) == 1
        bus.delete("RL_TRAJECTORIES", [derived_id("bad")])
        now = 1800.0
        view.catch_up(bus)
        assert view.rows("SELECT * FROM refused") == []
        assert view.position("RL_TRAJECTORIES") == 4


def test_a_stream_is_read_whole_however_many_events_a_transaction_takes(
    bus: Bus, view: LoopView, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(view_module, "_AT_ONCE", 2)
    publish(bus, [trajectory(name) for name in "abcde"])
    assert view.catch_up(bus) == 5
    assert (queries.stored(view)["RL_TRAJECTORIES"], view.position("RL_TRAJECTORIES")) == (5, 5)


def test_only_a_reward_that_was_computed_here_is_that_of_a_trajectory(bus: Bus, view: LoopView):
    publish(
        bus, [trajectory("a"), trajectory("b")], [judged("j", "a", style=0.9), judged("k", "b", style=0.9)]
    )
    publish(bus, [rewarded("b", 0.25), rewarded("b", 0.5, revision=2)])
    view.catch_up(bus)
    assert [row.total for row in queries.trajectories(view)] == [None, 0.5]


def test_what_was_taken_out_of_dead_letters_counts_too(bus: Bus, view: LoopView):
    data = b"write to [redacted:email:0a1b2c]"
    bus.publish([dead_event(DeadLetter(code="schema", message="m", data=data), LATER)])
    view.catch_up(bus)
    assert queries.redacted(view) == {"email": 1}


def test_what_was_taken_out_of_feedback_and_rewards_counts_too(bus: Bus, view: LoopView):
    said = json.loads(judged("j", "a", style=0.5).data)
    said["reward_components"]["style"]["reasoning"] = "of [redacted:card:0a1b2c]"
    publish(
        bus,
        [feedback("f", "correction", "a", text="[redacted:email:0a1b2c] or [redacted:email:ffffff]")],
        [replace(judged("j", "a", style=0.5), data=json.dumps(said).encode())],
    )
    view.catch_up(bus)
    assert queries.redacted(view) == {"card": 1, "email": 2}


def test_first_rewards_and_later_revisions_are_counted_apart(bus: Bus, view: LoopView):
    publish(bus, [rewarded("a", 0.25), rewarded("b", 0.25)], [judged("j", "a", style=0.5)])
    publish(bus, [rewarded("b", 0.5, revision=2)])
    view.catch_up(bus)
    assert queries.rewarded(view) == (2, 1)


def test_what_is_no_json_on_the_bus_is_named_by_its_place(bus: Bus):
    publish(bus, [trajectory("a"), replace(trajectory("b"), data=b"{")])
    place = queries.ViewPlace(stream="RL_TRAJECTORIES", sequence=2, id="x")
    with pytest.raises(BusError, match="event 2 of RL_TRAJECTORIES is no JSON"):
        payload_at(bus, place)
    assert payload_at(bus, replace(place, sequence=3)) is None


def test_what_is_said_of_a_trajectory_waits_until_it_comes_unless_it_was_given_up(bus: Bus, view: LoopView):
    early, given_up = [feedback("f", "thumbs_up", "a"), judged("j", "a", style=0.5)], []
    for event in (feedback("g", "thumbs_up", "b"), judged("k", "b", style=0.5)):
        letter = DeadLetter(code="no_trajectory", message="m", id=event.id, subject=event.subject)
        given_up.append(dead_event(letter, LATER))
        early.append(event)
    publish(bus, early)
    bus.publish(given_up)
    view.catch_up(bus)
    counts = [f"SELECT sum(orphan), sum(dead) FROM {table}" for table in ("feedback", "rewards")]
    assert [view.rows(query) for query in counts] == [[(2, 1)]] * 2
    publish(bus, [trajectory("a")])
    view.catch_up(bus)
    assert [view.rows(query) for query in counts] == [[(1, 1)]] * 2


def test_a_bus_that_was_put_back_from_an_older_copy_is_read_again(bus: Bus, view: LoopView):
    publish(bus, [trajectory("a")])
    view.catch_up(bus)
    with view.transaction() as db:
        db.execute("UPDATE streams SET seq = 7")
    with closing(LoopView(view.path)) as again:
        assert again.catch_up(bus) == 1
        assert again.position("RL_TRAJECTORIES") == 1


def test_to_forget_voids_what_was_concluded_only_where_something_was_known(bus: Bus, view: LoopView):
    publish(bus, [trajectory("a", session="one"), judged("j", "a", style=0.5)])
    view.catch_up(bus)
    with view.transaction() as db:
        db.execute("INSERT INTO further VALUES (?, '{}')", (derived_id("a"),))
    view.set_meta("history", "{}")
    before = view.generation
    view.forget("session", "of nobody", [], {})
    assert (view.generation, view.meta("history")) == (before, "{}")
    view.forget("session", "one", [], {})
    assert (view.generation, view.meta("history")) == (before + 1, "")
    assert view.rows("SELECT id FROM further") == []
    assert queries.stored(view)["RL_REWARDS"] == 0


def test_what_is_said_of_a_trace_that_opted_out_goes_with_it(bus: Bus, view: LoopView):
    said = [feedback("f", "thumbs_up", "a"), judged("j", "a", style=0.5), judged("k", "b", style=0.5)]
    publish(bus, [trajectory("a", metadata={"trace_id": "a" * 32}), trajectory("b")], said)
    view.catch_up(bus)
    with view.transaction() as db:
        assert remove_traces(db, ["a" * 32]) == 1
    stored = queries.stored(view)
    assert [stored[name] for name in ("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS")] == [1, 0, 1]


def test_what_one_stream_has_let_go_of_is_of_no_other(bus: Bus, view: LoopView):
    bad = [trajectory("a"), feedback("f", "thumbs_up", "a")]
    publish(bus, [replace(one, data=b"{}") for one in bad])
    view.catch_up(bus)
    with view.transaction() as db:
        remove_before(db, "RL_TRAJECTORIES", "trajectories", 2)
    assert view.rows("SELECT stream, seq FROM refused") == [("RL_FEEDBACK", 1)]


def test_to_forget_takes_out_what_was_no_event_by_its_place(bus: Bus, view: LoopView):
    bad = [replace(trajectory("a"), id=derived_id(f"bad {n}"), data=b"{}") for n in range(2)]
    publish(bus, [*bad, trajectory("b")])
    view.catch_up(bus)
    view.forget("session", "of nobody", [], {"RL_TRAJECTORIES": [1, 3]})
    assert view.rows("SELECT seq FROM refused") == [(2,)]
    assert queries.stored(view)["RL_TRAJECTORIES"] == 0


def test_a_trace_that_opted_out_is_looked_for_again_after_ten_minutes(bus: Bus, tmp_path: Path):
    """What came late of it, after its rows were taken out, goes too."""
    metadata = {"trace_id": "a" * 32}
    bus.table(STATE).put(DROPPED + "a" * 32, b"1.0", 0)
    now = 0.0
    with closing(LoopView(tmp_path / "first.db", lambda: now)) as view:
        view.catch_up(bus)
        publish(bus, [trajectory("late", metadata=metadata), trajectory("other")])
        for later_s, left in ((599.0, 2), (605.0, 1)):
            now = later_s
            view.catch_up(bus)
            assert queries.stored(view)["RL_TRAJECTORIES"] == left


def test_a_file_that_was_emptied_is_small_again(bus: Bus, view: LoopView):
    publish(bus, [trajectory(str(n), turns=9) for n in range(200)])
    view.catch_up(bus)
    view.shrink()
    full = view.path.stat().st_size
    view.reset()
    assert view.path.stat().st_size < full
