"""Trajectories of what is in RL_SPANS."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from support.buses import BusPlace, Clock, EmbeddedPlace, bytes_in
from support.loop_spans import (
    AGENT,
    ROOT,
    TURN,
    a_span,
    agent_trace,
    evaluation,
    letters,
    message,
    opt_out_event,
    payloads,
    publish,
    published,
    span_id,
    spans_event,
    trace_id,
)

from pytest_tfgrpo.bus.protocol import STATE, Bus
from pytest_tfgrpo.feedback import open_traces
from pytest_tfgrpo.feedback.assembler import Assembler
from pytest_tfgrpo.feedback.intake import Intake
from pytest_tfgrpo.feedback.opt_outs import OptOuts, forgotten_key, row_since
from pytest_tfgrpo.feedback.scrubber import LoopScrubber
from pytest_tfgrpo.feedback.trajectories import trajectory_id

IDLE_S = 60.0


@pytest.fixture
def clock(embedded: EmbeddedPlace) -> Clock:
    embedded.clock = clock = Clock()
    return clock


@pytest.fixture
def local(embedded: EmbeddedPlace, clock: Clock) -> Bus:
    """Return an embedded bus whose time a test moves."""
    return embedded.open()


def assembler(bus: Bus, clock: Callable[[], float], owner: str = "one", **given: Any) -> Assembler:
    return Assembler(bus, owner, idle_s=IDLE_S, clock=clock, **given)


def drain(worker: Assembler) -> None:
    """Take steps until there is nothing to read."""
    while worker.step():
        pass


def rest(worker: Assembler, clock: Clock, seconds: float = IDLE_S) -> None:
    """Let time pass in which nothing comes."""
    drain(worker)
    clock.now += seconds
    worker.step()


def agents(bus: Bus) -> list[tuple[str, str, int]]:
    """Return trace, agent's span and number of turns of each trajectory."""
    return [
        (one["metadata"]["trace_id"], one["metadata"]["span_id"], len(one["turns"])) for one in payloads(bus)
    ]


def state(bus: Bus) -> dict[str, Any]:
    value, _ = bus.table(STATE).get("lease.assembler")
    assert value is not None
    kept: dict[str, Any] = json.loads(value)["state"]
    return kept


# when a trace is whole


def test_a_trace_is_published_once_its_root_is_here(place: BusPlace) -> None:
    bus = place.open()
    worker = assembler(bus, Clock())
    *inner, root = agent_trace(1)
    publish(bus, *inner)
    drain(worker)
    assert payloads(bus) == []
    publish(bus, root)
    drain(worker)
    (found,) = payloads(bus)
    assert (found["session_id"], found["agent_id"], len(found["turns"])) == ("session 1", "toy", 2)
    assert found["trajectory_id"] == trajectory_id(trace_id(1), span_id(AGENT))


def test_a_trace_without_its_root_waits_until_nothing_comes(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    *inner, _ = agent_trace(1)
    publish(local, *inner[1:])
    rest(worker, clock, IDLE_S - 1)
    publish(local, inner[0])
    rest(worker, clock, IDLE_S - 1)
    assert payloads(local) == []
    rest(worker, clock, 1)
    assert agents(local) == [(trace_id(1), span_id(AGENT), 2)]


def test_a_child_that_comes_after_the_root_is_waited_for(local: Bus, clock: Clock) -> None:
    turn, *others, agent, root = agent_trace(1)
    worker = assembler(local, clock)
    publish(local, turn, *others, root)
    drain(worker)
    assert payloads(local) == []
    publish(local, agent)
    drain(worker)
    assert agents(local) == [(trace_id(1), span_id(AGENT), 2)]


def test_a_trace_without_an_agent_is_one_trajectory(local: Bus, clock: Clock) -> None:
    publish(local, a_span(1, TURN, "chat", parent=ROOT), a_span(1, ROOT))
    publish(local, a_span(2, TURN, "chat", parent=ROOT))
    publish(local, a_span(3, TURN, parent=ROOT), a_span(3, ROOT))
    rest(assembler(local, clock), clock)
    assert agents(local) == [(trace_id(1), "", 1), (trace_id(2), "", 1)]
    assert letters(local) == []


def test_runs_one_after_the_other_in_one_trace_are_trajectories_of_their_own(
    local: Bus, clock: Clock
) -> None:
    worker = assembler(local, clock)
    for start in (10, 1000):
        publish(local, a_span(1, start + 1, "chat", parent=start))
        publish(local, a_span(1, start, "invoke_agent", parent=ROOT, lasts=5))
        rest(worker, clock)
    publish(local, a_span(1, ROOT, lasts=2000))
    rest(worker, clock)
    assert agents(local) == [(trace_id(1), span_id(10), 1), (trace_id(1), span_id(1000), 1)]


# what goes wrong with spans


def test_any_order_and_any_repeats_before_the_root_give_the_same_trajectory(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    *inner, root = agent_trace(1)
    publish(local, *inner, root)
    drain(worker)
    (first,) = payloads(local)
    chance = random.Random(7)
    for trace in range(2, 8):
        *inner, root = agent_trace(trace)
        mixed = chance.sample(inner, len(inner))
        local.publish([spans_event(*mixed[:2]), *(spans_event(one) for one in (*mixed, root, *mixed))])
    drain(worker)
    same = ["agent_id", "start_timestamp", "end_timestamp", "outcome"]
    assert all([one[name] for name in same] == [first[name] for name in same] for one in payloads(local))
    assert [len(one["turns"]) for one in payloads(local)] == [2] * 7
    assert [one["turns"][-1]["action"]["raw_response"] for one in payloads(local)] == [
        f"answer {trace}" for trace in range(1, 8)
    ]


def test_a_late_span_changes_nothing_and_is_counted(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    publish(local, *agent_trace(1))
    drain(worker)
    before = published(local)
    publish(local, a_span(1, 9, "execute_tool", parent=AGENT), a_span(1, 8, "invoke_agent", parent=AGENT))
    rest(worker, clock)
    assert published(local) == before
    assert state(local)["late"] == 2


def test_orphans_and_loops_become_dead_letters_without_texts(local: Bus, clock: Clock) -> None:
    secret = {"gen_ai.tool.call.arguments": '{"text": "what nobody should read"}'}
    publish(local, a_span(1, 7, "execute_tool", parent=6, attributes=secret))
    publish(local, a_span(2, 7, "chat", parent=6), a_span(2, 6, "chat", parent=7))
    publish(local, *agent_trace(3), a_span(4, 3, "chat", parent=3))
    rest(assembler(local, clock), clock)
    assert [(one.code, json.loads(one.data)["trace_id"]) for one in letters(local)] == [
        ("no_run", trace_id(1)),
        ("loop", trace_id(2)),
        ("loop", trace_id(4)),
    ]
    assert not any(b"nobody" in one.data for one in letters(local))
    assert len(payloads(local)) == 1


def test_an_event_that_holds_no_spans_is_a_dead_letter(local: Bus, clock: Clock) -> None:
    event = spans_event(*agent_trace(1))
    bad = [b"[]", b'{"trace": 1}', b"{", b'{"trace":"x","resource":{},"spans":[1]}']
    local.publish([replace(event, id=trace_uuid(n), data=data) for n, data in enumerate(bad)])
    local.publish([event])
    drain(assembler(local, clock))
    assert [one.code for one in letters(local)] == ["malformed"] * len(bad)
    assert len(payloads(local)) == 1


def test_spans_with_values_of_any_type_stop_nothing(local: Bus, clock: Clock) -> None:
    chance = random.Random(11)
    worker = assembler(local, clock)
    values: list[Any] = [None, 1, -(10**400), 1.5, "x", [], [[]], {}, {"a": 1}, True]
    for trace in range(1, 150):
        event = spans_event(*agent_trace(trace))
        found = json.loads(event.data)
        at: Any = found
        while isinstance(at, dict | list) and at:
            inside, key = at, chance.choice(list(at if isinstance(at, dict) else range(len(at))))
            at = at[key]
            if chance.random() < 0.2:
                break
        inside[key] = chance.choice(values)
        local.publish([replace(event, id=trace_uuid(trace), data=json.dumps(found).encode())])
    publish(local, *agent_trace(200))
    rest(worker, clock)
    worker.step()
    assert (trace_id(200), span_id(AGENT), 2) in agents(local)
    assert {one.code for one in letters(local)} <= {
        "malformed",
        "incomplete",
        "no_run",
        "loop",
        "schema",
        "not_finite",
    }
    assert len(payloads(local)) > 20


def test_streams_that_were_made_anew_are_read_from_their_beginning(local: Bus, clock: Clock) -> None:
    table = local.table(STATE)
    row = {"owner": "", "state": {"cursor": 900, "spans_from": 900, "trajectories_from": 70}}
    table.put("lease.assembler", json.dumps(row).encode(), 0)
    publish(local, *agent_trace(1))
    drain(assembler(local, clock))
    assert len(payloads(local)) == 1


def trace_uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


# evaluations


def test_an_evaluation_is_feedback_whenever_it_comes(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    early = a_span(1, 20, parent=AGENT, events=(evaluation(0.25, name="Tone of Voice!"),))
    publish(local, early, *agent_trace(1))
    drain(worker)
    late = a_span(1, 21, parent=AGENT, at=500, events=(evaluation(1, at=500),))
    publish(local, late)
    rest(worker, clock)
    clock.now += open_traces.DONE_S
    much_later = a_span(1, 22, parent=AGENT, at=9000, events=(evaluation(0.5, name="", at=9000),))
    publish(local, much_later)
    rest(worker, clock)
    found = payloads(local, "RL_FEEDBACK")
    assert {one["trajectory_id"] for one in found} == {payloads(local)[0]["trajectory_id"]}
    assert [(one["component"], one["score"]) for one in found] == [
        ("tone_of_voice", 0.25),
        ("helpfulness", 1.0),
        ("evaluation", 0.5),
    ]
    assert letters(local) == []


def test_a_label_is_feedback_and_a_score_out_of_range_is_a_dead_letter(local: Bus, clock: Clock) -> None:
    label = evaluation(None, name="task_completion", label="failed")
    events = (label, evaluation(7), evaluation("high", at=31))
    publish(local, a_span(1, 20, parent=AGENT, events=events), *agent_trace(1))
    drain(assembler(local, clock))
    (said,) = payloads(local, "RL_FEEDBACK")
    assert (said["type"], said["component"], said["text"]) == ("label", "task_completion", "failed")
    assert sorted(one.code for one in letters(local)) == ["outcome_not_a_number", "outcome_out_of_range"]


# what is withdrawn


def test_nothing_is_kept_of_a_trace_that_opts_out(embedded: EmbeddedPlace, clock: Clock) -> None:
    bus = embedded.open()
    worker = assembler(bus, clock)
    for trace in (1, 2, 3):
        publish(bus, *agent_trace(trace)[: 5 if trace == 2 else 4])
    publish(bus, a_span(2, 21, parent=AGENT, at=500, events=(evaluation(1, name="opted"),)))
    drain(worker)
    assert len(payloads(bus)) == len(payloads(bus, "RL_FEEDBACK")) == 1
    bus.publish([opt_out_event(1), opt_out_event(2)])
    drain(worker)
    worker.close()
    again = assembler(bus, clock, "two")
    publish(bus, agent_trace(1)[4], a_span(1, 9, "chat", parent=AGENT, at=800))
    publish(bus, agent_trace(3)[4])
    rest(again, clock, 6)
    again.step()
    assert agents(bus) == [(trace_id(3), span_id(AGENT), 2)]
    assert payloads(bus, "RL_FEEDBACK") == []
    again.close()
    assert bytes_in(embedded.folder, b"question 1") == bytes_in(embedded.folder, b"question 2") == []
    assert bytes_in(embedded.folder, b"question 3")


def test_a_run_whose_session_was_withdrawn_meanwhile_is_dropped(local: Bus, clock: Clock) -> None:
    asked = []

    def refuses(session: str, user: str, ended_s: float) -> bool:
        asked.append((session, user, ended_s))
        return session == "session 1"

    worker = assembler(local, clock, refuses=refuses)
    publish(local, *agent_trace(1), *agent_trace(2, policy_version="v1"))
    drain(worker)
    worker.close()
    assert agents(local) == [(trace_id(2), span_id(AGENT), 2)]
    assert asked[0] == ("session 1", "", 1_800_000_012.0)
    assert [trace_id(1) in event.data.decode() for event in local.replay("RL_SPANS")] == [False] * 5


@pytest.mark.parametrize("whose", ["session", "user"])
def test_what_is_forgotten_while_its_trace_is_open_is_never_published(
    embedded: EmbeddedPlace, clock: Clock, whose: Literal["session", "user"]
) -> None:
    bus, scrubber = embedded.open(), LoopScrubber(b"k" * 32)
    opt_outs = OptOuts(bus, scrubber)
    worker = assembler(bus, clock, refuses=opt_outs.withdrawn)
    intake = Intake(bus, scrubber, opt_outs)
    for trace in (1, 2):
        *inner, agent, _ = agent_trace(trace)
        intake.spans([*inner, replace(agent, attributes={**agent.attributes, "user.id": f"ann {trace}"})])
    drain(worker)
    ref = scrubber.session_ref("session 1") if whose == "session" else scrubber.user_ref("ann 1")
    bus.table(STATE).put(forgotten_key(whose, ref), row_since("2099-01-01T00:00:00Z"), 0)
    publish(bus, *(agent_trace(trace)[4] for trace in (1, 2)))
    drain(worker)
    worker.close()
    assert agents(bus) == [(trace_id(2), span_id(AGENT), 2)]
    assert bytes_in(embedded.folder, b"question 1") == []


# limits


def test_a_trace_that_is_too_large_or_never_rests_is_taken_as_it_stands(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_SPANS", 50)
    worker = assembler(local, clock)
    publish(local, a_span(1, 2, "invoke_agent", parent=1, lasts=500))
    publish(local, *(a_span(1, number, "execute_tool", parent=2) for number in range(10, 60)))
    drain(worker)
    assert agents(local) == [(trace_id(1), span_id(2), 50)]
    for number in range(10, 140):
        publish(local, a_span(2, 2 if number == 10 else number, "invoke_agent", parent=1, at=number))
        clock.now += IDLE_S / 2
        worker.step()
    assert {trace for trace, _, _ in agents(local)} == {trace_id(1), trace_id(2)}


def test_what_there_is_no_room_for_is_taken_as_it_stands(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_TRACES", 10)
    for trace in range(1, 31):
        publish(local, *agent_trace(trace)[:4])
    worker = assembler(local, clock)
    drain(worker)
    assert [trace for trace, _, _ in agents(local)] == [trace_id(trace) for trace in range(1, 21)]
    assert state(local)["spans_from"] == 81


def test_a_trajectory_of_many_long_texts_is_cut_until_it_is_allowed(local: Bus, clock: Clock) -> None:
    long = {"gen_ai.output.messages": message("assistant", "word " * 12_000)}
    publish(local, *(a_span(1, n, "chat", parent=2, attributes=long) for n in range(10, 60)))
    publish(local, a_span(1, 2, "invoke_agent", lasts=100))
    drain(assembler(local, clock))
    (event,) = local.replay("RL_TRAJECTORIES")
    assert 200_000 < len(event.data) <= 1_000_000
    assert agents(local) == [(trace_id(1), span_id(2), 50)]


# who takes over


def test_one_process_works_and_another_takes_over_where_it_was(place: BusPlace) -> None:
    bus, other, clock = place.open(), place.open(), Clock()
    one, two = assembler(bus, clock), assembler(other, clock, "two")
    publish(bus, *agent_trace(1), *agent_trace(2)[:3])
    drain(one)
    assert two.step() == 0
    publish(bus, *agent_trace(2)[3:])
    clock.now += 16
    assert two.step() > 0
    assert one.step() == 0
    one.close()
    drain(two)
    two.close()
    assert agents(bus) == [(trace_id(n), span_id(AGENT), 2) for n in (1, 2)]
    three = assembler(bus, clock, "three")
    assert three.step() == 0
    publish(bus, *agent_trace(3))
    assert three.step() == 5
    assert len(payloads(bus)) == 3


def test_a_restart_after_hours_publishes_what_was_open_and_nothing_twice(local: Bus, clock: Clock) -> None:
    def run(owner: str) -> None:
        worker = assembler(local, clock, owner)
        rest(worker, clock, 16)
        rest(worker, clock)

    publish(local, *agent_trace(1)[:4])
    drain(worker := assembler(local, clock))
    publish(local, *agent_trace(2))
    drain(worker)
    clock.now += 5 * 3600
    publish(local, agent_trace(3)[0])
    run("two")
    before = published(local)
    assert agents(local) == [
        (trace_id(2), span_id(AGENT), 2), (trace_id(1), span_id(AGENT), 2), (trace_id(3), "", 1)
    ]  # fmt: skip
    clock.now += 5 * 3600
    run("three")
    assert published(local) == before


@pytest.mark.parametrize("back_s", [30.0, 5 * 3600.0])
def test_a_clock_that_is_set_back_loses_and_repeats_nothing(
    embedded: EmbeddedPlace, clock: Clock, back_s: float
) -> None:
    bus, steady = embedded.open(), Clock()
    worker = assembler(bus, steady)
    publish(bus, *agent_trace(1)[:4])
    drain(worker)
    clock.now -= back_s
    publish(bus, *agent_trace(2)[:4])
    drain(worker)
    steady.now += 59
    publish(bus, agent_trace(1)[4], *agent_trace(3)[:3])
    drain(worker)
    steady.now += 2
    drain(worker)
    publish(bus, *agent_trace(3)[3:])
    again = assembler(bus, steady, "two")
    steady.now += 16
    again.step()
    rest(again, steady)
    assert sorted(agents(bus)) == [(trace_id(n), span_id(AGENT), 2) for n in (1, 2, 3)]


def test_what_a_bus_stored_without_the_place_is_not_published_again(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "atomic", False)
    both = a_span(1, 12, "invoke_agent", parent=ROOT, at=3, lasts=100)
    graded = a_span(1, 20, parent=12, events=(evaluation(1),))
    publish(local, *agent_trace(1)[:4], both, graded, agent_trace(1)[4])
    good = assembler(local, clock)
    drain(good)
    whole = published(local)
    assert len(whole) == 3
    good.close()
    # the same once more, stopped after the first trajectory, and long after ids are compared
    table = local.table(STATE)
    _, revision = table.get("lease.assembler")
    row = {"owner": "", "state": {"sure_to": 0}}
    table.put("lease.assembler", json.dumps(row).encode(), revision)
    local.delete("RL_TRAJECTORIES", [whole[1][0]])
    clock.now += 5 * 3600
    drain(assembler(local, clock, "two"))
    assert sorted(set(published(local))) == sorted(whole)
    assert [one["metadata"]["span_id"] for one in payloads(local)] == [span_id(AGENT), span_id(12)]


def test_texts_that_no_span_should_have_do_no_harm(local: Bus, clock: Clock) -> None:
    deep = "[" * 100 + "]" * 100
    hostile = ["\x00\ud800", "NaN", "[NaN, 1e999]", deep, "x" * 60_000, '{"a": 1' + "0" * 400 + "}"]
    for trace, text in enumerate(hostile, 1):
        given = {"gen_ai.tool.name": text, "gen_ai.tool.call.arguments": text, "session.id": text}
        notes = {"tfgrpo.domain": text, "tfgrpo.lessons": text, "tfgrpo.outcome.completion": text}
        publish(local, a_span(trace, 3, "execute_tool", parent=2, attributes=given))
        publish(local, a_span(trace, 2, "invoke_agent", attributes={**notes, **given, "user.id": text}))
    drain(assembler(local, clock))
    assert len(payloads(local)) == len(hostile)
    assert letters(local) == []


def test_the_place_in_the_stream_moves_on_without_anything_to_publish(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    publish(local, *(a_span(trace, ROOT) for trace in range(1, 100)))
    drain(worker)
    clock.now += 3
    publish(local, a_span(100, ROOT))
    worker.step()
    assert (state(local)["cursor"], state(local)["spans_from"]) == (100, 101)
    assert published(local) == []
