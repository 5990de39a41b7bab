"""Which trajectories the spans of a dropped trace may become."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.buses import Clock, EmbeddedPlace
from support.loop_spans import AGENT, ROOT, agent_trace, span_id, trace_id

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.streams import DAY_S
from pytest_tfgrpo.production.door import dropped_runs
from pytest_tfgrpo.production.door.dropped_runs import DroppedRuns, trajectories_of
from pytest_tfgrpo.production.door.opt_outs import SWEEP
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.storage.event_store import STATE


def test_what_says_nothing_of_a_run_drops_none_and_the_oldest_are_no_longer_remembered(
    embedded: EmbeddedPlace, scrubber: LoopScrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = embedded.open()
    runs = DroppedRuns(bus, scrubber)
    ref = scrubber.ref("trajectory", "gone")
    odd = [b'{"refs": ["x"]}', b'{"action": "left_out"}', b'{"action": "left_out", "refs": 7}']
    odd.append(json.dumps({"action": "opt_out", "what": "session", "ref": ref}).encode())
    event = runs.event(["a"], "2026-01-01T00:00:00Z")
    bus.publish([replace(event, id=derived_id("odd", str(n)), data=data) for n, data in enumerate(odd)])
    runs.refresh()
    assert "gone" not in runs
    said = json.dumps({"action": "opt_out", "what": "trajectory", "ref": ref}).encode()
    bus.publish([replace(event, id=derived_id("said"), data=said)])
    runs.refresh()
    assert "GONE" in runs
    monkeypatch.setattr(dropped_runs, "_MOST", 2)
    runs.forgo(["b", "c"])
    runs.refresh()
    assert [name in runs for name in ("gone", "b", "c")] == [False, True, True]
    assert 7 not in runs


def test_all_runs_of_many_are_left_out_and_a_sweep_is_due(
    embedded: EmbeddedPlace, scrubber: LoopScrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropped_runs, "_AT_ONCE", 2)
    bus = embedded.open()
    runs = DroppedRuns(bus, scrubber)
    runs.forgo([])
    assert (bus.last("RL_AUDIT"), bus.table(STATE).get(SWEEP)) == (0, (None, 0))
    runs.forgo(["a", "B", "c", "d", "e"])
    assert bus.table(STATE).get(SWEEP)[0] == b"due"
    assert bus.last("RL_AUDIT") == 3
    runs.refresh()
    assert all(name in runs for name in "abcde")


def test_runs_that_were_left_out_by_the_name_of_before_or_while_others_looked_are_known(
    embedded: EmbeddedPlace, scrubber: LoopScrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.clock = clock = Clock()
    later = SimpleNamespace(time=lambda: clock.now + 29 * DAY_S)
    monkeypatch.setattr(dropped_runs, "time", later)
    bus = embedded.open()
    runs, event = DroppedRuns(bus, scrubber), DroppedRuns(bus, scrubber).event(["a"], "2026-01-01T00:00:00Z")
    before = json.dumps({"action": "drop_claims", "refs": [scrubber.ref("trajectory", "old")]}).encode()
    bus.publish([replace(event, id=derived_id("before"), data=before)])
    runs.refresh()
    for name in ("b", "c"):
        DroppedRuns(bus, scrubber).forgo([name])
        runs.refresh()
        assert name in runs
    new = DroppedRuns(bus, scrubber)
    new.refresh()
    assert [name in new for name in ("old", "b", "c", "d")] == [True, True, True, False]


def test_a_span_that_cannot_be_read_may_be_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(dropped_runs, "read_span", unreadable)
    spans = agent_trace(1)
    found = set(trajectories_of(trace_id(1), spans))
    assert found >= {derived_id("trajectory", trace_id(1), span.key[1]) for span in spans}


def test_a_trace_may_become_itself_and_runs_of_its_root_and_agents() -> None:
    trace = trace_id(1)
    wanted = {derived_id("trajectory", trace, span) for span in ("", span_id(ROOT), span_id(AGENT))}
    assert set(trajectories_of(trace, agent_trace(1))) == wanted
