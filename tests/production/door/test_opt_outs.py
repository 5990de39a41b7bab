"""Whoever opted out, or was forgotten, is not in the bus; nor is what is private of others."""

import json
import math
from datetime import UTC, datetime

import pytest
from support.intake import KEY, NOW, TRACE, audits, payload, span, stored

from pytest_tfgrpo.core.events import (
    FEEDBACK,
    TRAJECTORY,
    derived_id,
)
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import (
    SWEEP,
    OptOuts,
    forgotten_key,
    opt_out_key,
    put_left,
    row_since,
    says_opt_out,
)
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.telemetry.traces.turns import SpanEvent, TraceSpan


@pytest.mark.parametrize("where", ["span", "resource"])
def test_a_trace_of_which_a_span_opts_out_is_not_there_and_counts_once(intake, bus, where):
    secret = {"input.value": "private words"}
    mark = {"tfgrpo__opt_out": True} if where == "span" else {"resource": {"tfgrpo.opt_out": "true"}}
    assert intake.spans([span(1, **secret)]).accepted == 1
    assert intake.spans([span(2, **secret), span(3, **mark), span(4, "2" * 32)]).opted_out == 2
    assert intake.spans([span(5, **secret)]).opted_out == 1
    assert [(trace, spans is None) for trace, spans in stored(bus)] == [
        (TRACE, False),
        (TRACE, True),
        ("2" * 32, False),
    ]
    assert audits(bus) == [("trace", "attribute")]


def test_a_blank_name_opts_nobody_out(opt_outs):
    opt_outs.add(session="chat-17", user=" ")
    opt_outs.add(session=" ", user="ann")
    assert [one.whose for one in opt_outs.listed()] == ["session", "user"]


def test_sessions_and_users_that_opted_out_are_dropped_by_every_process_until_they_return(
    intake, opt_outs, bus, place, scrubber
):
    other = place.open()
    elsewhere = OptOuts(other, scrubber)
    elsewhere.add(session="chat-17", user="ann")
    assert [(one.whose, one.ref) for one in opt_outs.listed()] == [
        ("session", scrubber.session_ref("chat-17")),
        ("user", scrubber.user_ref("ann")),
    ]
    assert intake.spans([span(1, session__id="chat-17"), span(2, "2" * 32, enduser__id="ann")]).opted_out == 2
    assert intake.payloads(TRAJECTORY, [payload(TRAJECTORY)]).opted_out == 1
    by_user = payload(TRAJECTORY, session_id="other", metadata={"user_id": "ann"})
    assert intake.payloads(TRAJECTORY, [by_user, {**by_user, "turns": "broken"}]).opted_out == 2
    broken = json.dumps(payload(FEEDBACK)).encode()[:-1]
    assert intake.payloads(FEEDBACK, [payload(FEEDBACK), broken]).opted_out == 2
    assert audits(bus) == [
        ("trace", "session"),
        ("trace", "user"),
        ("trajectory", "session"),
        ("feedback", "session"),
        ("feedback", "session"),
    ]
    assert not list(bus.replay("RL_TRAJECTORIES"))
    assert not list(bus.replay("RL_DEAD"))
    assert elsewhere.remove(session="chat-17")
    assert intake.payloads(FEEDBACK, [payload(FEEDBACK, trajectory_id=derived_id("other"))]).accepted == 1
    assert elsewhere.remove(session="chat-17", user="ann"), "one of both was there"
    assert not elsewhere.remove(session="chat-17", user="ann")
    elsewhere.add(session="chat-17")
    assert elsewhere.remove(session="chat-17", user="ann")


def test_who_opts_out_once_more_has_opted_out_since_the_first_time(bus, opt_outs, scrubber):
    ref = scrubber.user_ref("ann")
    bus.table(STATE).put(opt_out_key("user", ref), row_since("2025-12-08T13:00:00Z"), 0)
    opt_outs.add(user="ann")
    assert opt_outs.listed() == [("user", ref, "2025-12-08T13:00:00.000Z")]


def test_each_session_and_each_user_may_be_why_data_is_not_taken(bus, opt_outs, scrubber):
    opt_outs.add(session="left", user="ann")
    forgotten = forgotten_key("session", scrubber.session_ref("gone"))
    bus.table(STATE).put(forgotten, row_since("2025-12-08T13:00:00Z"), 0)
    opt_outs.refresh()
    given = [(["here", "left"], []), (["here", "gone"], []), ([], ["bob", "ann"]), (["here"], ["bob"])]
    assert [opt_outs.reason(*one, math.inf) for one in given] == ["session", "forgotten", "user", ""]
    written = [f'"{scrubber.user_ref(user)}"'.encode() for user in ("bob", "ann")]
    assert opt_outs.reason_of_refs(written, 0.0) == "user"
    longer = scrubber.user_ref("ann").encode() + b"f"
    assert opt_outs.reason_of_refs([longer, b"x" + longer[:-1]], 0.0) == "", "it is part of another word"


def test_a_row_that_does_not_say_since_when_counts_for_good_and_one_of_a_session_for_nobody(bus, scrubber):
    table = bus.table(STATE)
    table.put(forgotten_key("user", scrubber.user_ref("ann")), b"no json", 0)
    table.put(f"left.{scrubber.session_ref('talk')}", b"no json", 0)
    opt_outs = OptOuts(bus, scrubber)
    assert opt_outs.reason([], ["ann"], 9e9) == "forgotten"
    assert opt_outs.reason(["talk"], [], 0.0) == ""
    assert opt_outs.since(scrubber.session_ref("talk")) == math.inf
    assert opt_outs.has_left


def test_what_was_withdrawn_by_another_process_just_now_is_known(bus, place, opt_outs, scrubber):
    elsewhere = OptOuts(place.open(), scrubber)
    assert not opt_outs.has_left
    assert not opt_outs.withdrawn("talk", "ann", 0.0)
    elsewhere.add(user="ann")
    assert opt_outs.withdrawn("talk", "ann", 0.0)
    assert not opt_outs.has_left, "nobody said whose a session is"
    assert not opt_outs.withdrawn("talk", "", 0.0)
    elsewhere.add(session="talk")
    assert opt_outs.withdrawn("talk", "", 0.0)


def test_a_session_goes_with_all_of_its_users_and_the_row_of_it_with_the_session(bus, opt_outs, scrubber):
    session, table = scrubber.session_ref("talk"), bus.table(STATE)
    for user in ("ann", "bob"):
        assert opt_outs.reason(["talk"], [], 0.0) == ""
        opt_outs.add(user=user)
        put_left(table, session, frozenset({scrubber.user_ref("ann"), scrubber.user_ref("bob")}))
        opt_outs.refresh()
    assert opt_outs.reason(["talk"], [], 0.0) == "user"
    row = f"left.{session}"
    table.remove(row, table.get(row)[1])
    opt_outs.refresh()
    assert (opt_outs.reason(["talk"], [], 0.0), opt_outs.has_left) == ("", False)


def test_a_session_that_was_shared_once_stays_shared(bus, scrubber):
    table = bus.table(STATE)
    for users, shared in (({"u-1"}, True), ({"u-2"}, False)):
        put_left(table, "talk", frozenset(users), shared=shared)
    found = json.loads(table.get("left.talk")[0])
    assert (found["users"], found["shared"]) == (["u-1", "u-2"], True)


def test_every_session_that_a_user_is_in_is_that_user_s(intake, opt_outs):
    opt_outs.add(user="ann")
    mine = {"session__id": "talk", "gen_ai__conversation__id": "chat-17"}
    intake.spans([span(1, user__id="ann", **mine)])
    said = [payload(FEEDBACK, session_id=session) for session in ("talk", "chat-17", "other")]
    result = intake.payloads(
        FEEDBACK, [{**one, "feedback_id": derived_id(one["session_id"])} for one in said]
    )
    assert (result.opted_out, result.accepted) == (2, 1)


def test_a_trace_may_name_its_session_in_one_call_and_its_user_in_the_next(intake, opt_outs):
    opt_outs.add(user="ann")
    assert intake.spans([span(1, session__id="chat-17")]).accepted == 1
    assert intake.spans([span(2, user__id="ann")]).opted_out == 1
    assert intake.payloads(FEEDBACK, [payload(FEEDBACK, session_id="chat-17")]).opted_out == 1
    assert intake.spans([span(3)]).opted_out == 1, "the whole trace is theirs"


def test_a_sweep_is_due_once_something_was_left_out(intake, bus, opt_outs):
    opt_outs.add(session="chat-17")
    intake.spans([span(1)])
    assert bus.table(STATE).get(SWEEP)[0] is None
    intake.payloads(FEEDBACK, [payload(FEEDBACK, session_id="chat-17")])
    assert bus.table(STATE).get(SWEEP)[0] == b"due"


def test_what_was_stored_while_somebody_opted_out_goes_again_whoever_is_next(
    intake, bus, place, scrubber, monkeypatch
):
    elsewhere, store, users = OptOuts(place.open(), scrubber), bus.publish, iter(["ann", "bob"])

    def publish(events, puts=()):
        found = store(events, puts)
        if user := next(users, ""):
            elsewhere.add(user=user)
        return found

    monkeypatch.setattr(bus, "publish", publish)
    mine = [span(1, n * 32, user__id=user) for n, user in (("1", "ann"), ("2", "ann"), ("3", "bob"))]
    result = intake.spans([*mine, span(1, "4" * 32)])
    assert (result.accepted, result.opted_out) == (1, 3)
    assert [trace for trace, spans in stored(bus) if spans is not None] == ["4" * 32]


def test_a_refused_payload_that_was_kept_while_its_user_opted_out_goes_again(
    intake, bus, place, scrubber, monkeypatch
):
    elsewhere, store = OptOuts(place.open(), scrubber), bus.publish

    def publish(events, puts=()):
        found = store(events, puts)
        elsewhere.add(user="ann")
        return found

    monkeypatch.setattr(bus, "publish", publish)
    said = payload(FEEDBACK, metadata={"user_id": "ann"})
    for values in ([said, {**said, "type": "odd"}], [{**said, "type": "odder"}, said]):
        assert intake.payloads(FEEDBACK, values).opted_out == 2
        assert list(bus.replay("RL_FEEDBACK")) == list(bus.replay("RL_DEAD")) == []
        elsewhere.remove(user="ann")


def test_an_opt_out_is_no_longer_watched_once_that_is_closed(bus, scrubber, monkeypatch):
    table, closed = bus.table(STATE), []
    watch = table.watch

    def watched(prefix):
        found = watch(prefix)
        monkeypatch.setattr(found, "close", lambda: closed.append(prefix))
        return found

    monkeypatch.setattr(bus, "table", lambda _: table)
    monkeypatch.setattr(table, "watch", watched)
    OptOuts(bus, scrubber).close()
    assert closed == ["optout.", "forgotten.", "left."]


def test_what_is_said_later_of_a_run_that_opted_out_is_not_taken_after_a_restart_either(
    intake, bus, place, scrubber
):
    gone = payload(TRAJECTORY, trajectory_id=derived_id("gone"), metadata={"opt_out": True})
    intake.payloads(TRAJECTORY, [gone])
    agent = {"gen_ai__operation__name": "invoke_agent", "tfgrpo__opt_out": True}
    intake.spans([span(1, **agent), span(2), span(1, "2" * 32, **agent)])
    again = place.open()
    restarted = Intake(again, scrubber, OptOuts(again, scrubber))
    said = [
        payload(FEEDBACK, trajectory_id=one, feedback_id=derived_id(one))
        for one in (
            derived_id("gone").upper(),
            derived_id("trajectory", TRACE, f"{1:016x}"),
            derived_id("trajectory", "2" * 32, f"{1:016x}"),
            derived_id("kept"),
        )
    ]
    for door in (intake, restarted):
        result = door.payloads(FEEDBACK, said)
        assert (result.accepted, result.opted_out) == (1, 3)
    assert audits(bus)[3:] == [("feedback", "trajectory")] * 3


def test_a_payload_opts_out_by_its_metadata(intake, bus):
    values = [
        payload(TRAJECTORY, metadata={"opt_out": 1}),
        payload(TRAJECTORY, metadata={"opt_out": False}),
        payload(TRAJECTORY, metadata={"tfgrpo.opt_out": "yes"}),
    ]
    result = intake.payloads(TRAJECTORY, values)
    assert (result.accepted, result.opted_out) == (1, 2)


@pytest.mark.parametrize(
    "given",
    [
        {"metadata": {"session_id": " chat-99 "}},
        {"session_id": "chat-99"},
        {"metadata": {"user": "ann-7"}},
        {"metadata": {"user_ref": "ann-7"}},
        {"metadata": {"user_id": 4711}},
        {"user_id": "ann-7"},
    ],
)
def test_a_payload_names_its_session_and_user_in_its_metadata_or_itself(intake, opt_outs, given):
    for user in ("ann-7", "4711"):
        opt_outs.add(user=user)
    opt_outs.add(session="chat-99")
    other = payload(FEEDBACK, session_id="other", metadata={})
    assert intake.payloads(FEEDBACK, [other]).accepted == 1
    assert intake.payloads(FEEDBACK, [{**other, **given}]).opted_out == 1


def test_a_run_that_ended_after_its_user_was_forgotten_is_taken(intake, bus, scrubber):
    at = row_since("2025-12-08T13:00:00Z")
    bus.table(STATE).put(forgotten_key("user", scrubber.user_ref("ann")), at, 0)
    begun = payload(
        TRAJECTORY,
        metadata={"user_id": "ann"},
        start_timestamp="2025-12-08T12:59:00Z",
        end_timestamp="2025-12-08T13:01:00Z",
    )
    assert intake.payloads(TRAJECTORY, [begun]).accepted == 1


def test_what_was_forgotten_does_not_come_back_and_a_user_may_start_anew(intake, bus, scrubber):
    table = bus.table(STATE)
    at = row_since("2025-12-08T13:00:00Z")
    table.put(forgotten_key("session", scrubber.session_ref("gone")), at, 0)
    table.put(forgotten_key("user", scrubber.user_ref("ann")), at, 0)
    later = {"start_timestamp": "2025-12-09T12:00:00Z", "end_timestamp": "2025-12-09T12:01:00Z"}
    values = [
        payload(TRAJECTORY, session_id="gone", **later),
        payload(TRAJECTORY, metadata={"user_id": "ann"}),
        payload(TRAJECTORY, metadata={"user_id": "ann"}, **later),
    ]
    result = intake.payloads(TRAJECTORY, values)
    assert (result.accepted, result.opted_out) == (1, 2)
    assert intake.spans([span(1, user__id="ann")]).opted_out == 1


def test_what_happened_when_a_user_was_forgotten_is_forgotten_too(bus, scrubber):
    ref = scrubber.user_ref("ann")
    bus.table(STATE).put(forgotten_key("user", ref), row_since("2025-12-08T13:00:00Z"), 0)
    at = datetime(2025, 12, 8, 13, tzinfo=UTC).timestamp()
    opt_outs = OptOuts(bus, scrubber)
    assert [opt_outs.reason((), ["ann"], at + late) for late in (-1, 0, 1)] == ["forgotten", "forgotten", ""]


def test_a_session_is_kept_until_the_last_of_its_users_opts_out(bus, scrubber):
    table = bus.table(STATE)
    refs = [scrubber.user_ref(user) for user in ("ann", "bob")]
    put_left(table, "talk", frozenset(refs))
    put_left(table, "together", frozenset(refs), shared=True)
    for hour, ref in enumerate(refs, 12):
        assert OptOuts(bus, scrubber).since("talk") == math.inf
        table.put(opt_out_key("user", ref), row_since(f"2025-12-08T{hour}:00:00Z"), 0)
    known = OptOuts(bus, scrubber)
    assert known.since("talk") == datetime(2025, 12, 8, 13, tzinfo=UTC).timestamp()
    assert known.since("together") == known.since("unknown") == math.inf


def test_nothing_private_is_found_in_the_bus_s_files(intake, bus, place):
    user, mail, number = "cust-993812", "ann.smith@example.com", 48213377
    messages = json.dumps([{"role": "user", "content": f"I am {user}, {mail}; {KEY}"}] * 2)
    intake.spans(
        [
            span(
                1,
                user__id=user,
                user__name="Ann Smith",
                user__email=mail,
                gen_ai__input__messages=messages,
                metadata=json.dumps({"user_id": number, "note": KEY}),
                resource={"host.owner": mail, "note": user},
            ),
            TraceSpan(
                key=(TRACE, "2" * 16),
                parent="1" * 16,
                name=f"hello {mail}",
                start_ns=NOW,
                end_ns=NOW,
                attributes={mail: KEY},
                events=(SpanEvent(KEY, NOW, {"exception.message": f"no {user} at {mail}"}),),
                message=f"failed for {user} with {KEY}",
            ),
        ]
    )
    metadata = {
        "user_ref": "Ann Smith",
        "user": f"{user}",
        "user_id": number,
        "mail": mail,
        mail: user + "@example.com",
    }
    intake.payloads(TRAJECTORY, [payload(TRAJECTORY, session_id=mail, metadata=metadata)])
    raw = json.dumps(payload(FEEDBACK, text=KEY, metadata={"user_id": "Ann Smith", "n": mail})).encode()
    intake.payloads(FEEDBACK, [raw, raw[:-3], raw.replace(b"thumbs", b"tums").replace(b"rating", b"rate")])
    found = b"".join(path.read_bytes() for path in place.folder.rglob("*") if path.is_file())
    assert len(found) > 5000
    for plain in (user, mail, str(number), KEY, "Ann Smith"):
        assert plain.encode() not in found, plain
        assert json.dumps(plain).encode()[1:-1] not in found


@pytest.mark.parametrize(
    ("value", "says"),
    [(True, True), (1, True), (" True\n", True), ("YES", True), ("1", True)]
    + [(one, False) for one in (False, 0, 2, 1.0, "", "no", "truee", None, ["true"])],
)
def test_an_attribute_says_yes_in_few_words(value: object, says: bool) -> None:
    assert says_opt_out(value) is says
