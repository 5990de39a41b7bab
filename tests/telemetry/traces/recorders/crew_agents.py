"""The toy agent on crewAI: a crew of one task."""

from __future__ import annotations

from typing import Any

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor
from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER


def main() -> None:
    provider = toy.new_provider()
    CrewAIInstrumentor().instrument(tracer_provider=provider, config=toy.openinference_config())
    toy.report(ask)


def agent(role: str, model: str, system: str, tools: list[Any], **more: Any) -> Agent:
    llm = LLM(
        model=model,
        provider="openai",
        base_url=f"{toy.URL}/v1",
        api_key="none",
        max_retries=toy.RETRIES,
        stream=toy.STREAM,
    )
    return Agent(role=role, goal=system, backstory=system, llm=llm, tools=tools, max_retry_limit=0, **more)


def ask() -> dict[str, Any]:
    weather = tool("weather")(toy.weather)
    agents = [agent("toy", OUTER, toy.SYSTEM, [weather])]
    if toy.CASE == "subagent":
        inner = agent("researcher", INNER, toy.SYSTEM_OF_INNER, [weather])
        agents = [agent("toy", OUTER, toy.SYSTEM, [], allow_delegation=True), inner]
    task = Task(description=toy.ASKED, expected_output="The weather.", agent=agents[0])
    with toy.openinference_identity():
        done = Crew(agents=agents, tasks=[task]).kickoff()
    usage = done.token_usage
    return {"answer": done.raw, "turns": usage.successful_requests, "tokens": usage.total_tokens}


if __name__ == "__main__":
    main()
