"""The toy agent on pydantic-ai, by logfire."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import logfire
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER

openai: Any = import_module("openai")


def main() -> None:
    logfire.configure(**toy.logfire_options())
    logfire.instrument_pydantic_ai(include_content=toy.CONTENT)
    toy.report(ask)


def agent(name: str, model: str, system: str) -> Any:
    client = openai.AsyncOpenAI(base_url=f"{toy.URL}/v1", api_key="none", max_retries=toy.RETRIES)
    chat = OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))
    return Agent(chat, name=name, instructions=system)


async def ask_researcher(input: str) -> str:  # noqa: A002
    """Ask who knows."""
    inner = agent("researcher", INNER, toy.SYSTEM_OF_INNER)
    inner.tool_plain(toy.weather)
    return str((await inner.run(input)).output)


def ask() -> dict[str, Any]:
    outer = agent("toy", OUTER, toy.SYSTEM)
    outer.tool_plain(sequential=True)(ask_researcher if toy.CASE == "subagent" else toy.weather)
    with toy.logfire_identity():
        if toy.STREAM:
            done = outer.run_stream_sync(toy.ASKED)
            answer = done.get_output()
        else:
            done = outer.run_sync(toy.ASKED)
            answer = done.output
    turns = [one for one in done.all_messages() if isinstance(one, ModelResponse)]
    return {"answer": answer, "turns": len(turns), "tokens": sum(one.usage.total_tokens for one in turns)}


if __name__ == "__main__":
    main()
