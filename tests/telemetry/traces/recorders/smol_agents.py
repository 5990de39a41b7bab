"""The toy agent on smolagents."""

from __future__ import annotations

from typing import Any

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import OpenAIModel, ToolCallingAgent, tool
from support.traces.recording import toy
from support.traces.recording.stories import INNER, OUTER


def main() -> None:
    SmolagentsInstrumentor().instrument(tracer_provider=toy.new_provider(), config=toy.openinference_config())
    toy.report(ask)


def agent(name: str, model: str, tools: list[Any], **more: Any) -> Any:
    client = {"max_retries": toy.RETRIES}
    chat = OpenAIModel(model, api_base=f"{toy.URL}/v1", api_key="none", client_kwargs=client, retry=False)
    made = ToolCallingAgent(
        tools, chat, name=name, max_tool_threads=1, verbosity_level=0, max_steps=5, **more
    )
    made.prompt_templates["system_prompt"] = toy.SYSTEM  # theirs has 9,000 characters
    return made


def ask() -> dict[str, Any]:
    weather = tool(toy.weather)
    if toy.CASE == "subagent":
        inner = agent("researcher", INNER, [weather], description="Looks up the weather.")
        outer = agent("toy", OUTER, [], managed_agents=[inner], description="Knows the weather.")
    else:
        outer = agent("toy", OUTER, [weather], stream_outputs=toy.STREAM)
    with toy.openinference_identity():
        answer = outer.run(toy.ASKED)
    turns = [one for one in outer.memory.steps if getattr(one, "model_output_message", None)]
    tokens = outer.monitor.get_total_token_counts().total_tokens
    said = {"answer": answer, "turns": len(turns), "tokens": tokens}
    if toy.CASE == "subagent":
        said["results"] = {"researcher": turns[0].observations}
    return said


if __name__ == "__main__":
    main()
