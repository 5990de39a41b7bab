"""One toy agent in three frameworks, against the fake server: its spans are the same frames.

pydantic-ai runs here, in this process; spans of the others are recorded by
``tests/traces/record_rollouts.py``.
"""

import os
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from support import ROOT
from support.fake_model import Body, FakeModel, Reply
from support.span_recorder import ANSWER, QUESTION
from support.toy_agents import AGENTS
from support.toy_model import weather_model

from pytest_tfgrpo import run
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.harness.actors.span_frames import frames_of_spans
from pytest_tfgrpo.traces.otlp_lines import read_otlp_lines

RECORDED = ROOT / "tests" / "traces" / "recorded" / "rollouts"
EXPECTED = [
    ("model", "toy-model", QUESTION, "", None),
    ("tool", "weather", {"city": "Atlantis"}, "no such city: Atlantis", None),
    ("model", "toy-model", QUESTION, "", None),
    ("tool", "weather", {"city": "Paris"}, "sunny", None),
    ("model", "toy-model", QUESTION, ANSWER, None),
]


def told(frames: tuple[Frame, ...]) -> list[tuple[Any, ...]]:
    return [(frame.kind, frame.name, frame.input, frame.output, frame.error) for frame in frames]


@pytest.mark.parametrize("name", AGENTS)
def test_each_framework_gives_the_same_frames(name: str) -> None:
    refused = Counter[str]()
    with (RECORDED / f"{name}.jsonl").open("rb") as file:
        spans = read_otlp_lines(file, name)
        frames = frames_of_spans(spans, max_bytes=8000, count=lambda reason: refused.update([reason]))
    assert told(frames) == EXPECTED
    assert all(frame.tokens > 0 for frame in frames if frame.kind == "model")
    assert all(frame.latency_ms > 0 and frame.started_at for frame in frames)
    assert refused == {}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    if find_spec("pydantic_ai") is None:
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail("NOT TESTED: pydantic-ai is not installed, and CI_REQUIRE_TOOLS=1 demands it")
        pytest.skip("NOT TESTED: pydantic-ai is not installed")
    import_module("pydantic_ai.models.openai")  # which takes longer than a rollout should
    made = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made)
    yield made
    made.shutdown()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_framework_that_runs_here_learns_from_its_spans(
    provider: TracerProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts that look the weather up are right, those that guess are wrong."""

    def model(request: Body, attempt: int) -> Reply | str:
        looks = attempt % 2 or "use weather" in str(request["messages"][0]) or len(request["messages"]) > 2
        return weather_model(request, attempt) if looks else "It is rainy."

    (tmp_path / "toy.scenarios.yaml").write_text(
        "".join(
            f"- {{id: {split}, split: {split}, prompt: '{prompt}', "
            f"checks: [{{kind: exact, value: '{ANSWER}'}}]}}\n"
            for split, prompt in (("train", QUESTION), ("eval", f"Tell me: {QUESTION}"))
        )
    )
    with FakeModel(model) as server:
        monkeypatch.setenv("TOY_MODEL_URL", server.base_url)
        done = run(
            tmp_path, ".", actor="python:support.toy_agents:pydantic_ai", group_size=4, acceptance="off",
            allow_paid=True,
        )  # fmt: skip
    frames = {told(r.frames) == EXPECTED for p in done.run.phases for g in p.groups for r in g.rollouts}
    assert not [warning for warning in done.run.warnings if "spans of the agent" in warning]
    assert True in frames
    assert "use weather" in " ".join(lesson.summary32 for lesson in done.run.library.experiences)
