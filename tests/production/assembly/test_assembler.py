"""Trajectories of what is in RL_SPANS."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from support.assemblers import IDLE_S, agents, assembler, drain, rest, state
from support.buses import BusPlace, Clock
from support.job_states import NOON
from support.loop_spans import (
    AGENT,
    ROOT,
    TOOL,
    TURN,
    a_span,
    agent_trace,
    evaluation,
    letters,
    opt_out_event,
    payloads,
    publish,
    span_id,
    spans_event,
    trace_id,
)

from pytest_tfgrpo.production.assembly import open_traces, trace_events
from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.protocol import DEDUPE_S, Bus
from pytest_tfgrpo.storage.event_store import STATE

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


LATE = (
    a_span(1, 7, "chat", parent=AGENT),
    a_span(1, 8, "execute_tool", parent=AGENT),
    a_span(1, 9, "invoke_agent", parent=8),
)


def revisions(bus: Bus) -> list[tuple[str, int, int]]:
    """Return agent's span, revision and number of turns of each trajectory."""
    return [
        (one["metadata"]["span_id"][-1], one["metadata"].get("revision", 1), len(one["turns"]))
        for one in payloads(bus)
    ]


@pytest.mark.parametrize("takes_over", [False, True], ids=["the same process", "another one"])
def test_spans_that_come_late_are_a_revision_and_an_agent_a_trajectory_of_its_own(
    local: Bus, clock: Clock, takes_over: bool
) -> None:
    worker = assembler(local, clock, settle_s=1.0)
    publish(local, *agent_trace(1), *agent_trace(2))
    rest(worker, clock)
    if takes_over:
        worker.close()
        worker = assembler(local, clock, "two", settle_s=1.0)
        worker.step()
    publish(local, *LATE)
    rest(worker, clock)
    assert revisions(local) == [("2", 1, 2), ("2", 1, 2), ("2", 2, 3), ("9", 1, 1)]
    first, _, again, inner = payloads(local)
    assert first["trajectory_id"] == again["trajectory_id"] == inner["metadata"]["parent_trajectory_id"]
    assert again["turns"][-1]["action"]["type"] == "subordinate_call"
    assert (state(local)["late"], letters(local)) == (3, [])
    publish(local, *LATE, *agent_trace(1))
    rest(worker, clock)
    assert len(payloads(local)) == 4, "what came before changes nothing"
    publish(local, a_span(2, 9, "chat", parent=AGENT))
    rest(worker, clock)
    assert (revisions(local)[4:], state(local)["late"]) == ([("2", 2, 3)], 4)


def test_a_trajectory_has_so_many_revisions_at_most(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_events, "MOST_REVISIONS", 3)
    worker = assembler(local, clock)
    publish(local, *agent_trace(1))
    for number in range(10, 15):
        publish(local, a_span(1, number, "chat", parent=AGENT))
        rest(worker, clock)
    assert [one for _, one, _ in revisions(local)] == [1, 2, 3]


def test_of_too_many_traces_that_are_open_again_the_first_is_published(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_LATE", 2)
    worker = assembler(local, clock, settle_s=10.0)
    for trace in (1, 2, 3):
        publish(local, *agent_trace(trace))
    rest(worker, clock, 10.0)
    for trace in (1, 2, 3):
        publish(local, a_span(trace, 9, "chat", parent=AGENT))
    drain(worker)
    assert [one["metadata"]["trace_id"] for one in payloads(local)[3:]] == [trace_id(1)]
    rest(worker, clock, 10.0)
    assert [one["metadata"]["trace_id"] for one in payloads(local)[3:]] == [*map(trace_id, (1, 2, 3))]


def test_an_event_of_the_trace_that_cannot_be_read_does_not_keep_late_spans_out(
    local: Bus, clock: Clock
) -> None:
    event = spans_event(*agent_trace(1))
    bad = b'{"resource":{},"spans":[1],"trace":"%s"}' % trace_id(1).encode()
    local.publish([replace(event, id=trace_uuid(9), data=bad), event])
    drain(worker := assembler(local, clock))
    worker.close()
    publish(local, *LATE)
    drain(assembler(local, clock, "two"))
    assert ("2", 2, 3) in revisions(local)
    assert [one.code for one in letters(local)] == ["malformed"]


def test_late_spans_that_were_read_before_a_takeover_are_published_once(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock, settle_s=10.0)
    publish(local, *agent_trace(1))
    rest(worker, clock, 10.0)
    publish(local, *LATE[:2])
    worker.step()
    clock.now += 3.0  # so that the place in the stream is saved
    worker.step()
    assert state(local)["again"] == [trace_id(1)]
    worker.close()
    worker = assembler(local, clock, "two", settle_s=10.0)
    drain(worker)
    rest(worker, clock, 20.0)
    worker.step()
    assert revisions(local) == [("2", 1, 2), ("2", 2, 3)]
    assert state(local)["again"] == []


@pytest.mark.parametrize("swap", [False, True])
def test_services_that_export_one_trace_one_after_the_other_give_the_same_in_any_order(
    local: Bus, clock: Clock, swap: bool
) -> None:
    worker = assembler(local, clock, settle_s=10.0)
    outer = [a_span(1, AGENT, "invoke_agent", lasts=20), a_span(1, 3, "execute_tool", parent=AGENT, lasts=9),
             a_span(1, 14, "chat", parent=AGENT)]  # fmt: skip
    inner = [a_span(1, 5, "invoke_agent", parent=3, lasts=3), a_span(1, 6, "chat", parent=5)]
    for spans in (inner, outer) if swap else (outer, inner):
        publish(local, *spans)
        rest(worker, clock, 2.0)
    assert payloads(local) == []
    rest(worker, clock, 10.0)
    assert revisions(local) == [("2", 1, 2), ("5", 1, 1)]


def test_more_spans_than_a_trace_may_have_are_read_in_parts(
    local: Bus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_traces, "MAX_SPANS", 8)
    worker = assembler(local, clock)
    for number in range(10, 80, 10):
        agents_turn = a_span(1, number + 1, "chat", parent=number)
        publish(local, a_span(1, number, "invoke_agent", parent=ROOT), agents_turn)
        publish(local, a_span(1, number + 5, "chat", parent=ROOT))
        drain(worker)
    publish(local, a_span(1, ROOT, lasts=100))
    rest(worker, clock)
    assert sorted(one for one in agents(local) if one[1]) == [
        (trace_id(1), span_id(number), 1) for number in range(10, 80, 10)
    ]
    assert {one.code for one in letters(local)} == {"no_run"}


def test_an_optout_takes_back_all_revisions(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock, settle_s=1.0)
    publish(local, *agent_trace(1))
    rest(worker, clock)
    publish(local, *LATE)
    rest(worker, clock)
    assert len(payloads(local)) == 3
    local.publish([opt_out_event(1)])
    rest(worker, clock)
    worker.close()
    assert payloads(local) == []


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
    bad += [b'{"opt_out":true,"trace":"not a key"}', b'{"opt_out":true,"trace":""}']
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
    assert [one.get("session_id") for one in found] == ["session 1", None, None]
    assert letters(local) == []


def test_an_evaluation_that_comes_late_is_of_the_run_that_it_names_or_of_the_only_one(
    local: Bus, clock: Clock
) -> None:
    worker = assembler(local, clock)
    publish(local, *agent_trace(1), *agent_trace(2)[:4])
    publish(local, a_span(2, 12, "invoke_agent", parent=ROOT, at=3), agent_trace(2)[4])
    rest(worker, clock)
    for trace, number, parent in ((1, 20, TOOL), (2, 21, 12), (2, 22, TOOL)):
        publish(local, a_span(trace, number, parent=parent, at=500, events=(evaluation(1, at=500),)))
    rest(worker, clock)
    assert [one["trajectory_id"] for one in payloads(local, "RL_FEEDBACK")] == [
        trajectory_id(trace_id(1), span_id(AGENT)),
        trajectory_id(trace_id(2), span_id(12)),
        trajectory_id(trace_id(2), span_id(TOOL)),
    ]


def test_an_evaluation_is_feedback_once_though_its_trace_is_opened_again(local: Bus, clock: Clock) -> None:
    worker = assembler(local, clock)
    graded = a_span(1, 20, parent=AGENT, events=(evaluation(0.25),))
    publish(local, graded, *agent_trace(1))
    drain(worker)
    for later in LATE[:2]:
        clock.now += 0.6 * DEDUPE_S  # the second time, an equal id would be stored once more
        publish(local, later)
        rest(worker, clock)
    assert revisions(local) == [("2", 1, 2), ("2", 2, 3), ("2", 3, 3)]
    assert len(payloads(local, "RL_FEEDBACK")) == 1


def test_a_dead_letter_of_spans_names_the_first_twenty_in_order() -> None:
    event = trace_events.dead(trace_id(1), "loop", "no", [span_id(n) for n in range(30, 0, -1)], NOON)
    letter = dead_letter_of(event)
    assert (letter.stream, letter.consumer, letter.time) == ("RL_SPANS", "assembler", NOON)
    shown = json.loads(letter.data)
    assert shown == {"trace_id": trace_id(1), "span_ids": [span_id(n) for n in range(1, 21)]}


def test_a_label_is_feedback_and_a_score_out_of_range_is_a_dead_letter(local: Bus, clock: Clock) -> None:
    label = evaluation(None, name="task_completion", label="failed")
    events = (label, evaluation(7), evaluation("high", at=31))
    publish(local, a_span(1, 20, parent=AGENT, events=events), *agent_trace(1))
    drain(assembler(local, clock))
    (said,) = payloads(local, "RL_FEEDBACK")
    assert (said["type"], said["component"], said["text"]) == ("label", "task_completion", "failed")
    assert sorted(one.code for one in letters(local)) == ["outcome_not_a_number", "outcome_out_of_range"]
