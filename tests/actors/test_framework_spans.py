"""One toy agent in three frameworks, against the fake server: its spans are the same frames.

They are recorded by ``tests/telemetry/traces/record_rollouts.py``.
"""

from collections import Counter

import pytest
from support import ROOT
from support.toy_agents import AGENTS
from support.toy_model import TOLD, told

from pytest_tfgrpo.actors.spans.span_frames import frames_of_spans
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines

RECORDED = ROOT / "tests" / "telemetry" / "traces" / "recorded" / "rollouts"


@pytest.mark.parametrize("name", AGENTS)
def test_each_framework_gives_the_same_frames(name: str) -> None:
    refused = Counter[str]()
    with (RECORDED / f"{name}.jsonl").open("rb") as file:
        spans = read_otlp_lines(file, name)
        frames = frames_of_spans(spans, max_bytes=8000, count=lambda reason: refused.update([reason]))
    assert told(frames) == TOLD
    assert all(frame.tokens > 0 for frame in frames if frame.kind == "model")
    assert all(frame.latency_ms > 0 and frame.started_at for frame in frames)
    assert refused == {}
