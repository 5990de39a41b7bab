"""Which trajectories the spans of a dropped trace may become."""

from __future__ import annotations

from support.loop_spans import AGENT, ROOT, agent_trace, span_id, trace_id

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.door.dropped_runs import trajectories_of


def test_a_trace_may_become_itself_and_runs_of_its_root_and_agents() -> None:
    trace = trace_id(1)
    wanted = {derived_id("trajectory", trace, span) for span in ("", span_id(ROOT), span_id(AGENT))}
    assert set(trajectories_of(trace, agent_trace(1))) == wanted
