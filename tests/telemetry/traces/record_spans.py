"""Record the spans of one toy agent in several frameworks, offline, as OTLP JSON lines beside this script.

Run by hand: ``pip install pydantic-ai-slim==2.68.0 strands-agents==1.62.0 opentelemetry-sdk==1.45.1`` in an
environment of its own, then ``PYTHONPATH=tests python .../record_spans.py``. The agent is asked for
the weather, looks in a city that there is not, then in one that there is, and answers; a second run ends in
an error of its model.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from support.span_recorder import ANSWER, CALLS, QUESTION, Lines, weather

HERE = Path(__file__).parent / "recorded"
FRAMEWORKS = ("pydantic-ai", "strands", "strands-latest")


def run_pydantic_ai() -> None:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.models.instrumented import InstrumentationSettings

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if broken:
            raise RuntimeError("the model is down")
        if turn < len(CALLS):
            return ModelResponse(
                [ToolCallPart("weather", {"city": CALLS[turn]}, tool_call_id=f"call-{turn}")]
            )
        return ModelResponse([TextPart(ANSWER)])

    def looked_up(city: str) -> str:
        """Return the weather of a city."""
        try:
            return weather(city)
        except LookupError as error:
            raise ModelRetry(str(error)) from error

    broken = False
    model = FunctionModel(answer, model_name="toy-model")
    agent = Agent(model, name="toy", system_prompt="You know the weather.")
    agent.instrument = InstrumentationSettings()
    agent.tool_plain(name="weather", retries=2)(looked_up)
    assert agent.run_sync(QUESTION).output == ANSWER
    broken = True
    with suppress(RuntimeError):
        agent.run_sync(QUESTION)


def run_strands() -> None:
    from strands import Agent, tool
    from strands.models.model import Model

    class ToyModel(Model):
        config: ClassVar = {"model_id": "toy-model"}

        def update_config(self, **config: Any) -> None: ...

        def get_config(self) -> Any:
            return self.config

        def structured_output(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
            if broken:
                raise RuntimeError("the model is down")
            turn = sum(message["role"] == "assistant" for message in messages)
            for event in tool_call(turn) if turn < len(CALLS) else text():
                yield event
            usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
            yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}

    def tool_call(turn: int) -> Iterable[dict[str, Any]]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {"toolUse": {"name": "weather", "toolUseId": f"call-{turn}"}}}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"city": CALLS[turn]})}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}

    def text() -> Iterable[dict[str, Any]]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": ANSWER}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    def agent() -> Agent:
        return Agent(
            model=ToyModel(),
            name="toy",
            system_prompt="You know the weather.",
            tools=[tool(weather)],
            callback_handler=None,
        )

    broken = False
    assert str(agent()(QUESTION)).strip() == ANSWER
    broken = True
    with suppress(RuntimeError):
        agent()(QUESTION)


def main() -> None:
    if len(sys.argv) == 1:
        for name in FRAMEWORKS:
            opt_in = "gen_ai_latest_experimental,gen_ai_span_attributes_only" if "latest" in name else ""
            environ = os.environ | {"OTEL_SEMCONV_STABILITY_OPT_IN": opt_in}
            subprocess.run([sys.executable, __file__, name], env=environ, check=True)
        return
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Lines(HERE / f"{sys.argv[1]}.jsonl")))
    trace.set_tracer_provider(provider)
    asyncio.set_event_loop(asyncio.new_event_loop())
    run_pydantic_ai() if sys.argv[1] == "pydantic-ai" else run_strands()


if __name__ == "__main__":
    main()
