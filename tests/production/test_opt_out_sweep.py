"""What came before it was known whose it is goes within a minute, and nobody else's."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.buses import BusPlace, Clock
from support.feedback.orders import USER, WholeLoop
from support.intake import span
from support.loop_events import feedback, judged, trajectory

from pytest_tfgrpo.core.events import FEEDBACK, REWARD, TRAJECTORY
from pytest_tfgrpo.production.door.opt_outs import LEFT, SWEEP
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.opt_out_sweep import EVERY_S
from pytest_tfgrpo.production.sinks.removal import removal_of
from pytest_tfgrpo.storage.event_store import STATE

SESSION = "chat-of-both"


@pytest.fixture
def loop(embedded: BusPlace, scrubber: LoopScrubber, clock: Clock, tmp_path: Path) -> Iterator[WholeLoop]:
    with closing(WholeLoop(embedded.open(), scrubber, tmp_path, clock)) as opened:
        yield opened


def named(number: int, user: str):
    return [replace(span(number, f"{number:032x}"), attributes={"session.id": SESSION, "user.id": user})]


def said(loop: WholeLoop, name: str) -> int:
    """Bring feedback that names the session alone; return whether it was taken."""
    value = json.loads(feedback(name, "thumbs_up", name, session_id=SESSION).data)
    return loop.intake.payloads(FEEDBACK, [value]).accepted


def test_a_session_in_which_somebody_else_was_before_is_shared(loop: WholeLoop) -> None:
    value = json.loads(trajectory("of bob", session=SESSION, user="bob-8").data)
    loop.intake.payloads(TRAJECTORY, [value])
    loop.opt_outs.add(user=USER)
    said(loop, "before")
    loop.intake.spans(named(1, USER))
    assert said(loop, "between") == 0
    loop.sweep.step()
    assert said(loop, "after") == 1
    assert len(list(loop.bus.replay("RL_FEEDBACK"))) == 2


def test_rewards_that_go_are_named_for_those_who_keep_copies(loop: WholeLoop) -> None:
    loop.opt_outs.add(user=USER)
    reward = {**json.loads(judged("x", "x", style=0.5).data), "session_id": SESSION}
    loop.intake.payloads(REWARD, [reward])
    (kept,) = loop.bus.replay("RL_REWARDS")
    loop.intake.spans(named(1, USER))
    loop.sweep.step()
    assert list(loop.bus.replay("RL_REWARDS")) == []
    swept = [event for event in loop.bus.replay("RL_AUDIT") if b'"action":"sweep"' in event.data]
    assert [removal_of([event]).events for event in swept] == [{kept.id}]


def test_what_was_stored_before_the_user_opted_out_stays(loop: WholeLoop) -> None:
    loop.clock.now = 1e9  # the bus stamps what arrives; the row has the machine's time
    said(loop, "long ago")
    loop.opt_outs.add(user=USER)
    loop.intake.spans(named(1, USER))
    assert loop.sweep.step() == 0
    assert len(list(loop.bus.replay("RL_FEEDBACK"))) == 1


def test_it_sweeps_when_that_is_due_and_once_a_minute(loop: WholeLoop) -> None:
    table = loop.bus.table(STATE)
    assert (loop.sweep.step(), table.get(SWEEP)[0]) == (0, None)
    loop.opt_outs.add(user=USER)
    for number, waits in ((1, 1.0), (2, EVERY_S)):
        loop.intake.spans(named(number, USER))
        assert table.get(SWEEP)[0] == b"due"
        loop.sweep.step()
        assert table.get(SWEEP)[0] == b"due"
        loop.clock.now += waits
        loop.sweep.step()
        assert table.get(SWEEP)[0] is None


def test_whose_a_session_is_is_known_as_long_as_there_may_be_something_of_it(loop: WholeLoop) -> None:
    table = loop.bus.table(STATE)
    old = json.dumps({"at": "2020-01-01T00:00:00.000Z", "users": [], "shared": False}).encode()
    table.put(LEFT + "s-old", old, 0)
    table.put(LEFT + "s-odd", b"no JSON", 0)
    loop.opt_outs.add(user=USER)
    loop.intake.spans(named(1, USER))
    loop.sweep.step()
    assert list(table.list(LEFT)) == [LEFT + loop.scrubber.session_ref(SESSION)]
