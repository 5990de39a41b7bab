"""Forgetting: nothing of a session or user is on any disk after it, while the services go on."""

import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.assemblers import assembler, drain, rest
from support.buses import Clock
from support.feedback.forget import DONE, GONE, KEPT, WORDS, settled
from support.loop_events import feedback, payloads, publish, trajectory
from support.loop_spans import AGENT, agent_trace, span_id, trace_id
from support.loop_spans import publish as publish_spans

from pytest_tfgrpo.core.events import FEEDBACK, TRAJECTORY, derived_id
from pytest_tfgrpo.production import forget as forgetting
from pytest_tfgrpo.production.assembly.trajectories import trajectory_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.forget import forget
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.telemetry.traces.turns import TraceSpan


@pytest.mark.parametrize(
    ("identity", "text", "found"),
    [
        ("ada-42", "of ada-42.", True),
        ("ada42", "of ada42.", False),
        ("ada.lovelace", "of ada.lovelace!", True),
        ("adalovelace", "of adalovelace!", False),
        ("ada-42", "of ada-421", False),
        ("ada-42", "of xada-42", False),
        ("ada-42", "of ada-42_", False),
        ("zo\u00eb-42", '"zo\\u00eb-42"', True),
        ("zo\u00eb-42", '"{\\"user\\": \\"zo\\\\u00eb-42\\"}"', True),
    ],
)
def test_an_identity_is_found_where_it_is_long_enough_and_no_part_of_another(
    identity: str, text: str, found: bool
) -> None:
    assert (forgetting._standing(identity).search(text.encode()) is not None) is found


@pytest.fixture
def scrubber() -> LoopScrubber:
    return LoopScrubber(b"k" * 32)


@pytest.fixture
def view(tmp_path: Path) -> Iterator[LoopView]:
    (tmp_path / "views").mkdir()
    with closing(LoopView(tmp_path / "views" / "view.db")) as opened:
        yield opened


class Late:
    """Has something happen once, before events are published."""

    def __init__(self, bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: Callable[[], object] | None = None
        self._publish = bus.publish
        monkeypatch.setattr(bus, "publish", self)

    def __call__(self, *args: Any) -> list[int]:
        before, self.before = self.before, None
        if before is not None:
            before()
        return self._publish(*args)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_no_evaluator_that_goes_on_keeps_a_history_with_what_was_forgotten(
    bus: Bus, view: LoopView, scrubber: LoopScrubber, tmp_path: Path, elsewhere: bool
):
    publish(bus, [trajectory(f"t{n}", session=GONE if n % 2 else KEPT, **DONE) for n in range(6)])
    with closing(LoopView(tmp_path / "elsewhere.db")) as other:
        evaluator = Evaluator(bus, other if elsewhere else view, "one", settle_s=0.0)
        settled(evaluator)
        numbers = itertools.count()

        def go_on(_: float = 0.0) -> None:
            publish(bus, [trajectory(f"new{next(numbers)}", session=KEPT, **DONE)])
            settled(evaluator)

        forget(bus, view, scrubber=scrubber, actor="ada", session=GONE, sleep=go_on)
        go_on()
        evaluator.close()
        value, _ = bus.table("state").get("history")
        assert value is not None
        kept = [zlib.decompress(value).decode(), view.meta("history"), other.meta("history")]
        assert any(derived_id("t0") in one for one in kept)
        assert not any(derived_id("t1") in one for one in kept)


@pytest.mark.parametrize("spanned", [True, False])
def test_what_the_door_had_in_hand_while_all_else_was_forgotten_goes_too(
    bus: Bus, view: LoopView, scrubber: LoopScrubber, monkeypatch: pytest.MonkeyPatch, spanned: bool
):
    """A request whose events are stored after the last pass, as those of a slow disk are."""
    intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
    spans = [replace(one, attributes={**one.attributes, "session.id": GONE}) for one in agent_trace(1)]
    direct = json.loads(trajectory("direct", session=GONE, text=WORDS, **DONE).data)
    kept = json.loads(trajectory("kept", session=KEPT, **DONE).data)
    late = Late(bus, monkeypatch)
    late.before = lambda: forget(
        bus, view, scrubber=scrubber, actor="ada", session=GONE, sleep=lambda _: None
    )
    found = intake.spans(spans) if spanned else intake.payloads(TRAJECTORY, [kept, direct])
    assert late.before is None
    assert (found.accepted, found.opted_out) == ((0, len(spans)) if spanned else (1, 1))
    assert [one["session_id"] for one in payloads(bus, "RL_TRAJECTORIES")] == [KEPT] * (not spanned)
    assert [list(one) for one in payloads(bus, "RL_SPANS")] == [["opt_out", "trace"]] * spanned


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_an_evaluator_had_in_hand_while_all_else_was_forgotten_goes_too(
    bus: Bus,
    view: LoopView,
    scrubber: LoopScrubber,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    elsewhere: bool,
):
    publish(bus, [trajectory("a", session=GONE, **DONE), trajectory("b", session=KEPT, **DONE)])
    with closing(LoopView(tmp_path / "elsewhere.db")) as other:
        seen = other if elsewhere else view
        evaluator = Evaluator(bus, seen, "one", settle_s=0.0)
        late = Late(bus, monkeypatch)
        late.before = lambda: forget(
            bus, view, scrubber=scrubber, actor="ada", session=GONE, sleep=lambda _: None
        )
        settled(evaluator)
        settled(evaluator)
        assert late.before is None
        assert [one["session_id"] for one in payloads(bus)] == [KEPT]
        assert queries.rewarded(seen) == (1, 0)


def test_a_second_attempt_finds_what_the_first_left(
    bus: Bus, view: LoopView, scrubber: LoopScrubber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Deletions fail one after the other, as if the process was killed in between."""
    publish(
        bus,
        [trajectory("a", session=GONE, text=WORDS, metadata={"trace_id": trace_id(7)}, **DONE)],
        [feedback("f", "correction", "a", text=WORDS)],
    )
    settled(Evaluator(bus, view, "one", settle_s=0.0))
    really = bus.delete
    fails = {0, 2, 4}
    calls = itertools.count()

    def delete(stream: str, ids: list[str]) -> int:
        if next(calls) in fails:
            raise KeyboardInterrupt
        return really(stream, ids)

    monkeypatch.setattr(bus, "delete", delete)
    for _ in fails:
        with pytest.raises(KeyboardInterrupt):
            forget(bus, view, scrubber=scrubber, actor="ada", session=GONE, sleep=lambda _: None)
    forget(bus, view, scrubber=scrubber, actor="ada", session=GONE, sleep=lambda _: None)
    assert all(not list(bus.replay(stream)) for stream in ("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS"))
    assert {stream: count for stream, count in queries.stored(view).items() if count} == {"RL_AUDIT": 2}
    assert queries.audited(view) == {"forget": 1, "left_out": 1}


def test_a_trace_that_is_still_open_does_not_come_back(
    local: Bus, clock: Clock, view: LoopView, scrubber: LoopScrubber
):
    """What names the session is forgotten; the rest of the trace comes later and names nobody."""
    worker = assembler(local, clock)
    for number, session in ((1, GONE), (2, KEPT)):
        early, *_ = agent_trace(number)
        publish_spans(local, replace(early, attributes={**early.attributes, "session.id": session}))
    drain(worker)
    forget(local, view, scrubber=scrubber, actor="ada", session=GONE, sleep=lambda _: None)
    for number in (1, 2):
        _, *rest_of_it = agent_trace(number)
        publish_spans(local, *rest_of_it)
    rest(worker, clock)
    assert [one["metadata"]["trace_id"] for one in payloads(local, "RL_TRAJECTORIES")] == [trace_id(2)]


def in_session(number: int, session: str | int, user: str, text: str) -> list[TraceSpan]:
    """Return the spans of a run: the first names the session, the last the user."""
    first, *between, last = agent_trace(number)
    said = {**first.attributes, "session.id": session, "note": text}
    return [replace(first, attributes=said), *between, replace(last, attributes={"llm.user": user})]


def test_a_session_with_somebody_else_in_it_stays_but_for_what_names_the_user(
    bus: Bus, view: LoopView, scrubber: LoopScrubber
):
    """The other one's trace is not assembled yet, and names session and user in different spans."""
    intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
    intake.spans(in_session(1, GONE, "ann-7", WORDS))
    for span in in_session(2, GONE, "bob-8", "of bob"):
        intake.spans([span])
    intake.payloads(FEEDBACK, [json.loads(feedback("f", "thumbs_up", "f", session_id=GONE).data)])
    found = forget(bus, view, scrubber=scrubber, actor="ada", user="ann-7", sleep=lambda _: None)
    assert found.shared == 1
    spans = b"".join(event.data for event in bus.replay("RL_SPANS"))
    assert (WORDS.encode() in spans, b"of bob" in spans) == (False, True)
    assert len(payloads(bus, "RL_FEEDBACK")) == 1
    forget(bus, view, scrubber=scrubber, actor="ada", session=GONE, sleep=lambda _: None)
    assert payloads(bus, "RL_FEEDBACK") == []
    assert b"of bob" not in b"".join(event.data for event in bus.replay("RL_SPANS"))


def test_what_is_said_of_a_run_that_is_not_assembled_yet_goes_with_it(
    bus: Bus, view: LoopView, scrubber: LoopScrubber
):
    intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
    said = json.loads(feedback("f", "correction", "f", text=WORDS).data)
    intake.payloads(FEEDBACK, [{**said, "trajectory_id": trajectory_id(trace_id(1), span_id(AGENT))}])
    intake.spans(in_session(1, GONE, "ann-7", WORDS)[2:])
    forget(bus, view, scrubber=scrubber, actor="ada", user="ann-7", sleep=lambda _: None)
    assert payloads(bus, "RL_FEEDBACK") == []


def test_what_comes_later_of_a_session_or_run_that_was_forgotten_is_not_taken(
    bus: Bus, view: LoopView, scrubber: LoopScrubber
):
    intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
    intake.spans(in_session(1, GONE, "ann-7", WORDS))
    forget(bus, view, scrubber=scrubber, actor="ada", user="ann-7", sleep=lambda _: None)
    late = json.loads(feedback("f", "correction", "f", session_id=GONE, text=WORDS).data)
    of_run = {**late, "session_id": KEPT, "trajectory_id": trajectory_id(trace_id(1), span_id(AGENT))}
    new = {**late, "timestamp": "2999-01-01T00:00:00Z"}
    assert intake.payloads(FEEDBACK, [late, of_run]).opted_out == 2
    assert intake.payloads(FEEDBACK, [new]).accepted == 1


@pytest.mark.parametrize(
    "session", ["s1", 4711, 'a"b', "a\\b", "zoë/1", "s\n7", "mail ann@example.org", "x" * 300]
)
def test_no_name_of_a_session_keeps_it_from_going_with_its_user(
    bus: Bus, view: LoopView, scrubber: LoopScrubber, session: str | int
):
    intake = Intake(bus, scrubber, OptOuts(bus, scrubber))
    said = json.loads(feedback("f", "correction", "f", session_id=str(session), text=WORDS).data)
    raw = f'{{"session_id": {json.dumps(str(session))}, "text": "{WORDS}", cut'.encode()
    intake.payloads(FEEDBACK, [said, {**said, "type": "x"}, raw])
    intake.spans(in_session(1, session, "ann-7", WORDS))
    forget(bus, view, scrubber=scrubber, actor="ada", user="ann-7", sleep=lambda _: None)
    streams = ("RL_DEAD", "RL_FEEDBACK", "RL_SPANS")
    assert not [event for stream in streams for event in bus.replay(stream) if WORDS.encode() in event.data]


def test_one_session_or_one_user_is_named(bus: Bus, view: LoopView, scrubber: LoopScrubber):
    for given in ({}, {"session": "a", "user": "b"}, {"session": " "}, {"user": " "}):
        with pytest.raises(ValueError, match="one session or one user"):
            forget(bus, view, scrubber=scrubber, actor="ada", **given)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"trajectory_id": "a", "metadata": {"trace_id": "t"}}', [("a", "t")]),
        (b'{"trajectory_id": "a", "metadata": {"trace_id": 7}}', [("a", None)]),
        (b'{"trajectory_id": 7}', [("7", None)]),
        (b'{"metadata": {"trace_id": "t"}}', []),
        (b'{"trajectory_id": "a", "metadata": []}', []),
        (b"[]", []),
        (b"no json", []),
        (b"[" * 9000, []),
    ],
)
def test_what_is_no_trajectory_names_no_run(data: bytes, found: list[tuple[str, str | None]]) -> None:
    assert list(forgetting._run_of(data)) == found
    assert forgetting._spans_of(data) == []
