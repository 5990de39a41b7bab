"""Record the spans of the toy agents of ``support/toy_agents.py``, each in one rollout, as OTLP JSON lines.

Run by hand in an environment of its own: ``pip install "pydantic-ai-slim[openai]==2.68.0"
openai-agents==0.24.0 openinference-instrumentation-openai-agents==2.6.0 langgraph==1.2.22 langchain-openai
openinference-instrumentation-langchain==0.1.80 opentelemetry-sdk==1.45.2``, and this project, then
``PYTHONPATH=tests python .../record_rollouts.py``. The model is the fake server, which looks in a
city that there is not, then in one that there is, and answers.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from support.fake_model import FakeModel
from support.span_recorder import ANSWER, QUESTION, Lines
from support.toy_agents import AGENTS
from support.toy_model import weather_model

HERE = Path(__file__).parent / "recorded" / "rollouts"


def main() -> None:
    if len(sys.argv) == 1:
        HERE.mkdir(exist_ok=True)
        for name in AGENTS:
            subprocess.run([sys.executable, __file__, name], check=True)
        return
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Lines(HERE / f"{sys.argv[1]}.jsonl")))
    trace.set_tracer_provider(provider)
    prompt = SimpleNamespace(system="You know the weather.", user=QUESTION)
    with FakeModel(weather_model) as server:
        os.environ |= {"TOY_MODEL_URL": server.base_url, "OPENAI_AGENTS_DISABLE_TRACING": "0"}
        said = asyncio.run(AGENTS[sys.argv[1]](SimpleNamespace(prompt=prompt)))
    assert said == ANSWER, said


if __name__ == "__main__":
    main()
