"""The toy agent on llama-index's FunctionAgent."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import MessageRole
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER


def main() -> None:
    LlamaIndexInstrumentor().instrument(tracer_provider=toy.new_provider(), config=toy.openinference_config())
    toy.report(lambda: asyncio.run(ask()))


def agent(name: str, model: str, system: str, tools: list[Any], **more: Any) -> FunctionAgent:
    llm = OpenAILike(
        model=model,
        api_base=f"{toy.URL}/v1",
        api_key="none",
        max_retries=toy.RETRIES,
        is_chat_model=True,
        is_function_calling_model=True,
        additional_kwargs={"stream_options": {"include_usage": True}} if toy.STREAM else {},
    )
    return FunctionAgent(
        name=name,
        description="Knows the weather.",
        system_prompt=system,
        llm=llm,
        tools=tools,
        streaming=toy.STREAM,
        **more,
    )


async def ask_researcher(input: str) -> str:  # noqa: A002
    """Ask who knows."""
    done = await agent("researcher", INNER, toy.SYSTEM_OF_INNER, [toy.weather]).run(input)
    return str(done)


async def ask() -> dict[str, Any]:
    inner = agent("researcher", INNER, toy.SYSTEM_OF_INNER, [toy.weather])
    tools = {"subagent": [ask_researcher], "handoff": []}.get(toy.CASE, [toy.weather])
    more = {"can_handoff_to": ["researcher"]} if toy.CASE == "handoff" else {}
    outer = agent("toy", OUTER, toy.SYSTEM, tools, **more)
    asked: Any = AgentWorkflow(agents=[outer, inner], root_agent="toy") if toy.CASE == "handoff" else outer
    context = Context(asked)
    with toy.openinference_identity():
        done = await asked.run(toy.ASKED, ctx=context)
    memory = await context.store.get("memory")
    turns = [one for one in await memory.aget() if one.role == MessageRole.ASSISTANT]
    return {"answer": str(done), "turns": len(turns)}


if __name__ == "__main__":
    main()
