"""One toy agent in several frameworks: asks a model for the weather, and gives it a tool.

Each is a callable of ``python:`` actors. Its model is the server that ``TOY_MODEL_URL`` names; its spans go
to the tracer provider of the process, as the framework's own instrumentation, or OpenInference's, writes
them.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from support.span_recorder import weather

MODEL = "toy-model"
TOOL = "Return the weather of a city."


def looked_up(city: str) -> str:
    """Return the weather of a city."""
    try:
        return weather(city)
    except LookupError as error:
        return str(error)


looked_up.__name__ = "weather"


def model_url() -> str:
    return os.environ["TOY_MODEL_URL"]


async def pydantic_ai(context: Any) -> str:
    """Ask an agent of pydantic-ai, which traces itself."""
    ai: Any = import_module("pydantic_ai")
    models: Any = import_module("pydantic_ai.models.openai")
    providers: Any = import_module("pydantic_ai.providers.openai")
    openai: Any = import_module("openai")
    async with openai.AsyncOpenAI(base_url=model_url(), api_key="none") as client:
        model = models.OpenAIChatModel(MODEL, provider=providers.OpenAIProvider(openai_client=client))
        agent = ai.Agent(model, name="toy", instructions=context.prompt.system)
        agent.instrument = True
        agent.tool_plain(looked_up)
        return str((await agent.run(context.prompt.user)).output)


async def openai_agents(context: Any) -> str:
    """Ask an agent of the OpenAI Agents SDK, which OpenInference traces."""
    agents: Any = import_module("agents")
    openai: Any = import_module("openai")
    instrumentation: Any = import_module("openinference.instrumentation.openai_agents")
    instrumentor = instrumentation.OpenAIAgentsInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.instrument()
    async with openai.AsyncOpenAI(base_url=model_url(), api_key="none") as client:
        agent = agents.Agent(
            name="toy",
            instructions=context.prompt.system,
            model=agents.OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
            tools=[agents.function_tool(looked_up)],
        )
        return str((await agents.Runner.run(agent, context.prompt.user)).final_output)


async def langgraph(context: Any) -> str:
    """Ask an agent of LangGraph, which OpenInference traces."""
    prebuilt: Any = import_module("langgraph.prebuilt")
    models: Any = import_module("langchain_openai")
    instrumentation: Any = import_module("openinference.instrumentation.langchain")
    instrumentor = instrumentation.LangChainInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.instrument()
    model = models.ChatOpenAI(model=MODEL, base_url=model_url(), api_key="none")
    agent = prebuilt.create_react_agent(model, [looked_up], prompt=context.prompt.system, name="toy")
    done = await agent.ainvoke({"messages": [("user", context.prompt.user)]})
    return str(done["messages"][-1].content)


AGENTS = {"pydantic-ai": pydantic_ai, "openai-agents": openai_agents, "langgraph": langgraph}
