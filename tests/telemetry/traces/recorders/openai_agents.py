"""The toy agent on the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER

agents: Any = import_module("agents")
openai: Any = import_module("openai")


def main() -> None:
    provider = toy.new_provider() if toy.TRACER == "openinference" else traced_by_logfire()
    if toy.TRACER == "openinference":
        from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

        OpenAIAgentsInstrumentor().instrument(tracer_provider=provider, config=toy.openinference_config())
    toy.report(lambda: asyncio.run(ask(provider)))


def traced_by_logfire() -> Any:
    import logfire
    from opentelemetry import trace

    logfire.configure(**toy.logfire_options())
    logfire.instrument_openai_agents()
    return trace.get_tracer_provider()


def model(name: str, client: Any) -> Any:
    kind = agents.OpenAIResponsesModel
    if toy.CASE == "chat-stream":
        kind = agents.OpenAIChatCompletionsModel
    return kind(model=name, openai_client=client)


async def ask(provider: Any) -> dict[str, Any]:
    client = openai.AsyncOpenAI(base_url=f"{toy.URL}/v1", api_key="none", max_retries=toy.RETRIES)
    tool = agents.function_tool(toy.weather)
    inner = agents.Agent(
        name="researcher", instructions=toy.SYSTEM_OF_INNER, model=model(INNER, client), tools=[tool]
    )
    outer = agents.Agent(name="toy", instructions=toy.SYSTEM, model=model(OUTER, client), tools=[tool])
    if toy.CASE == "subagent":
        outer.tools = [inner.as_tool("ask_researcher", "Ask who knows.")]
    elif toy.CASE == "handoff":
        outer.handoffs = [inner]
    with toy.web_root(provider, when=toy.CASE == "web-dead"), whose():
        return await result_of(outer)


async def result_of(outer: Any) -> dict[str, Any]:
    if toy.STREAM:
        result: Any = agents.Runner.run_streamed(outer, toy.ASKED)
        async for _ in result.stream_events():
            pass
    else:
        result = await agents.Runner.run(outer, toy.ASKED)
    usage = result.context_wrapper.usage
    return {"answer": result.final_output, "turns": usage.requests, "tokens": usage.total_tokens}


def whose() -> Any:
    return toy.openinference_identity() if toy.TRACER == "openinference" else toy.logfire_identity()


if __name__ == "__main__":
    main()
