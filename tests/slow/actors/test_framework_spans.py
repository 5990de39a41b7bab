"""A toy agent of pydantic-ai, in this process, against the fake server."""

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from support.fake_model import Body, FakeModel, Reply
from support.span_recorder import ANSWER, QUESTION
from support.toy_model import TOLD, told, weather_model

from pytest_tfgrpo import run


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
    frames = {told(r.frames) == TOLD for p in done.run.phases for g in p.groups for r in g.rollouts}
    assert not [warning for warning in done.run.warnings if "spans of the agent" in warning]
    assert True in frames
    assert "use weather" in " ".join(lesson.summary32 for lesson in done.run.library.experiences)
