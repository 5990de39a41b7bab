"""The toy agent on Google's ADK, its model called by litellm."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from typing import Any

from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER

if toy.CONTENT and toy.TRACER == "own":
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from google.adk.agents import Agent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types


def main() -> None:
    provider = toy.new_provider()
    if toy.TRACER == "openinference":
        from openinference.instrumentation.google_adk import GoogleADKInstrumentor

        GoogleADKInstrumentor().instrument(tracer_provider=provider, config=toy.openinference_config())
    toy.report(lambda: asyncio.run(ask()))


def agent(name: str, model: str, system: str, **more: Any) -> Agent:
    given = {"api_base": f"{toy.URL}/v1", "api_key": "none", "max_retries": toy.RETRIES}
    if toy.STREAM:
        given["stream_options"] = {"include_usage": True}
    llm = LiteLlm(f"openai/{model}", **given)
    return Agent(name=name, description="Knows the weather.", model=llm, instruction=system, **more)


async def ask() -> dict[str, Any]:
    inner = agent("researcher", INNER, toy.SYSTEM_OF_INNER, tools=[toy.weather])
    more: dict[str, Any] = {"tools": [toy.weather]}
    if toy.CASE == "subagent":
        more = {"tools": [AgentTool(inner)]}
    elif toy.CASE == "handoff":
        more = {"sub_agents": [inner]}
    outer = agent("toy", OUTER, toy.SYSTEM, **more)
    who = {"user_id": toy.USER or "u-0", "session_id": toy.SESSION or "s-0"}
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="app", **who)
    runner = Runner(agent=outer, app_name="app", session_service=sessions)
    config = RunConfig(streaming_mode=StreamingMode.SSE if toy.STREAM else StreamingMode.NONE)
    message = types.Content(role="user", parts=[types.Part(text=toy.ASKED)])
    with toy.openinference_identity() if toy.TRACER == "openinference" else nullcontext():
        found = [one async for one in runner.run_async(**who, new_message=message, run_config=config)]
    turns = [one for one in found if one.usage_metadata and not one.partial]
    tokens = sum(one.usage_metadata.total_token_count for one in turns)
    return {"answer": found[-1].content.parts[0].text, "turns": len(turns), "tokens": tokens}


if __name__ == "__main__":
    main()
